"""Who may ask for a deep check, of what, and when."""

from dataclasses import replace

import pytest

from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepRun
from steward.model.order import CheckDeep, Refusal, RefusalKind, StartHealthCheck
from steward.model.slot import SlotStep
from steward.policy.orders import carry_out
from tests.builders.capacity import NODE, a_slot_at
from tests.builders.deep import ALL, a_run, done, with_run
from tests.builders.picture import Picture, a_cluster, n, names
from tests.builders.want import but


def ordered(picture: Picture, order: CheckDeep | StartHealthCheck) -> list[DeepRun]:
    carried = carry_out(order, picture.memory, picture.seen, picture.want)
    assert set(carried.answer.runs) <= carried.memory.deeps.keys()
    return [carried.memory.deeps[id] for id in carried.answer.runs]


def ask(*nodes: str, kinds: tuple[str, ...] = ()) -> CheckDeep:
    return CheckDeep(who="ann", nodes=nodes, kinds=kinds)


def through_api(*ids: str, checks: tuple[str, ...] = ("InstanceStress",)) -> StartHealthCheck:
    return StartHealthCheck(who="ann", cluster="demo", wishes=(("workers", ids, checks),))


def test_named_nodes_are_asked_for_as_one_run_of_all_kinds() -> None:
    (run,) = ordered(a_cluster(), ask("n1", "n2"))
    assert (run.cause, run.who, run.nodes, run.kinds) == (DeepCause.ASKED, "ann", names("n1", "n2"), ALL)


def test_a_kind_may_be_chosen() -> None:
    (run,) = ordered(a_cluster(), ask("n1", kinds=("InstanceStress",)))
    assert run.kinds == {DeepKind.STRESS}


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (ask("n99"), "no node n99"),
        (ask("n99", "n98", "n97"), r"no node n\[97-99\]"),
        (ask(), "at least one"),
        (ask("n1", kinds=("Dance",)), "Dance: no such"),
    ],
)
def test_what_there_is_not_is_refused(order: CheckDeep, says: str) -> None:
    with pytest.raises(Refusal, match=says):
        ordered(a_cluster(), order)


def test_one_request_at_a_time() -> None:
    with pytest.raises(Refusal, match="d1 was asked for before") as refusal:
        ordered(with_run(a_cluster(), a_run("n2")), ask("n1"))
    assert refusal.value.kind is RefusalKind.CONFLICT


@pytest.mark.parametrize("other", [done(DeepResult.PASSED, "n2"), a_run("n2", cause=DeepCause.SWEEP)])
def test_an_earlier_one_that_is_over_or_was_not_asked_for_is_no_hindrance(other: DeepRun) -> None:
    assert ordered(with_run(a_cluster(), other), ask("n1"))


def test_nothing_is_begun_where_deep_checks_are_switched_off() -> None:
    picture = a_cluster()
    off = replace(picture, want=replace(picture.want, deep=but(picture.want.deep, enabled=False)))
    with pytest.raises(Refusal, match=r"deep\.enabled"):
        ordered(off, ask("n1"))


def test_the_api_asks_for_the_nodes_of_its_instances() -> None:
    (run,) = ordered(a_slot_at(SlotStep.SERVING), through_api("i-1"))
    assert (run.nodes, run.kinds) == (names(NODE), frozenset({DeepKind.STRESS}))


def test_without_ids_the_api_means_the_whole_group() -> None:
    (run,) = ordered(a_slot_at(SlotStep.SERVING), through_api())
    assert run.nodes == {n(NODE)}


def test_an_instance_that_does_not_serve_is_not_checked() -> None:
    with pytest.raises(Refusal, match="None of the instances is in service"):
        ordered(a_slot_at(SlotStep.SETUP), through_api("i-1"))


def test_an_instance_that_the_group_does_not_have_is_refused() -> None:
    with pytest.raises(Refusal, match="has no instance i-9"):
        ordered(a_slot_at(SlotStep.SERVING), through_api("i-9"))
