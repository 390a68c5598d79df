"""CurrentCount: what counts as there."""

from dataclasses import replace

import pytest

from steward.model.group import Role
from steward.model.slot import SlotStep
from steward.policy.facts.serving import current_counts
from tests.builders.api_cluster import ApiPicture, a_group, an_api_cluster


def count(picture: ApiPicture, group: str = "workers") -> int:
    return current_counts(picture.memory, picture.seen)[group]


def test_nodes_in_service_count() -> None:
    assert count(an_api_cluster(workers=3)) == 3


@pytest.mark.parametrize("step", [step for step in SlotStep if step is not SlotStep.SERVING])
def test_a_node_on_its_way_in_or_out_does_not(step: SlotStep) -> None:
    assert count(an_api_cluster(workers=3).slot("workers-2", step=step)) == 2


def test_a_drained_a_silent_and_a_missing_node_do_not() -> None:
    picture = (
        an_api_cluster(workers=4).node("workers-1", flags=frozenset({"DRAIN"})).node("workers-2", responding=False)
    )
    assert count(picture.without_node("workers-3")) == 1


def test_a_node_under_repair_does_not() -> None:
    assert count(an_api_cluster(workers=3).repaired("workers-3")) == 2


def test_a_login_node_counts_while_its_agent_is_connected() -> None:
    picture = an_api_cluster(workers=2).without_node("workers-1").without_node("workers-2")
    logins = picture.group(a_group("workers", role=Role.LOGIN))
    assert count(logins) == 2
    assert count(logins.agent("workers-1", connected=False)) == 1


def test_the_controller_is_always_there() -> None:
    picture = an_api_cluster(workers=1).without_node("workers-1").agent("workers-1", connected=False)
    assert count(picture.group(a_group("workers", role=Role.CONTROLLER))) == 1


def test_slots_of_a_group_that_is_gone_count_for_none() -> None:
    picture = an_api_cluster(workers=2)
    assert not current_counts(replace(picture.memory, groups={}), picture.seen)
