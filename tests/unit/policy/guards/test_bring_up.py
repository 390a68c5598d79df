"""The breaker of bring-ups: when a group asks for no more machines, what goes on, and how it goes on again."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import LaunchInstance
from steward.model.group import Goal, GroupStatus, Version
from steward.model.ids import InstanceId
from steward.model.order import Refusal
from steward.model.setup import Lifecycle
from steward.model.slot import Hitch, SlotStep
from steward.policy.controls import reset_breakers, resume_actions
from steward.policy.guards.bring_up import scope_of
from tests.builders.capacity import NODE, a_slot_at, asked, nothing_there, slot, with_group, with_slot
from tests.builders.picture import Picture, a_cluster

SCOPE = scope_of("workers")


def coming(**rules: Any) -> Picture:
    """The group's only slot has a machine whose agent is awaited; the others of its size are not made yet."""
    return a_slot_at(SlotStep.PROVISION, slot={"instance": InstanceId("i-1")}, **rules).see(agents={})


def given_up(picture: Picture, times: int = 1, every_s: float = 700.0) -> Picture:
    """So many machines in a row whose agents did not come in time; then no machine is there."""
    for _ in range(times):
        launches = slot(picture, NODE).launches + 1
        late = {"step": SlotStep.PROVISION, "entered": picture.now - 10_000, "instance": InstanceId("i-1")}
        picture = with_slot(picture, launches=launches, **late).then(every_s)
    return nothing_there(with_slot(picture, step=SlotStep.WAITING, instance=None, next_try=0.0))


def launches(picture: Picture) -> bool:
    """Whether a machine is asked for, with enough time for the slot's turn to come."""
    return any(isinstance(action, LaunchInstance) for action in picture.after(60.0).plan().actions)


def tripped(**rules: Any) -> Picture:
    picture = given_up(coming(**rules), 3)
    assert set(picture.memory.breakers) == {SCOPE}
    return picture


def test_a_group_whose_machines_fail_three_times_in_a_row_asks_for_no_more() -> None:
    assert launches(given_up(coming(), 2))
    assert not launches(tripped())


def test_it_is_told_once_with_what_to_do() -> None:
    picture = given_up(coming(), 2)
    late = with_slot(picture, step=SlotStep.PROVISION, entered=0.0, instance=InstanceId("i-1"), launches=9)
    told = [event for event in late.plan().events if event.kind == "breaker.tripped"]
    assert len(told) == 1
    assert "3 bring-ups in a row failed (limit 3)" in told[0].text
    assert f"steward breaker reset {SCOPE}" in told[0].text


def test_a_machine_that_served_meanwhile_begins_the_row_anew() -> None:
    picture = given_up(coming(), 2)
    assert SCOPE not in given_up(with_slot(picture, served=picture.now)).memory.breakers


def test_five_within_an_hour_are_too_many_whatever_served_between_them() -> None:
    picture = coming()
    for _ in range(4):
        picture = given_up(picture, every_s=300.0)
        picture = with_slot(picture, served=picture.now)
        assert SCOPE not in picture.memory.breakers
    assert "5 bring-ups failed within an hour" in given_up(picture).memory.breakers[SCOPE].text


def test_five_in_more_than_an_hour_are_not() -> None:
    picture = coming()
    for _ in range(6):
        picture = given_up(picture, every_s=1000.0)
        picture = with_slot(picture, served=picture.now)
    assert picture.memory.breakers == {}


def test_a_large_group_bears_a_share_of_failures() -> None:
    large = with_group(coming(), goal=Goal(target=60), good=Goal(target=60))
    assert SCOPE not in given_up(large, 5).memory.breakers
    assert SCOPE in given_up(large, 6).memory.breakers


def test_the_limits_are_settings() -> None:
    assert SCOPE in given_up(coming(bringup_failures=1), 1).memory.breakers


def test_want_of_capacity_is_nobodys_fault() -> None:
    picture = coming()
    for _ in range(6):
        launching = with_slot(nothing_there(picture), step=SlotStep.LAUNCH, launched=picture.now, instance=None)
        key = f"launch:{slot(launching, NODE).token}:{picture.now:.3f}"
        picture = asked(launching, key, "capacity: none left").then(60.0)
        assert slot(picture, NODE).hitch is Hitch.CAPACITY
        assert picture.memory.breakers == {}


def test_machines_that_fail_while_agents_everywhere_are_silent_do_not_count() -> None:
    others, picture = a_cluster().seen, coming()
    outage = picture.see(nodes={**others.nodes, **picture.seen.nodes}, agents=others.agents)
    assert given_up(outage.agent_lost("n1", "n2", "n3"), 4).memory.breakers == {}


def test_a_software_update_has_its_own_limit() -> None:
    updating = with_group(coming(), status=GroupStatus.SYSTEM_UPDATING)
    assert given_up(updating, 4).memory.breakers == {}


def test_a_reset_lets_the_group_go_on_and_counts_from_then_on() -> None:
    picture = tripped()
    reset = replace(picture, memory=reset_breakers(picture.memory, SCOPE, picture.now)).after(1.0)
    assert launches(reset)
    assert SCOPE not in given_up(reset, 2).memory.breakers
    assert SCOPE in given_up(reset, 3).memory.breakers


def test_resuming_actions_resets_it_too_and_a_second_reset_is_refused() -> None:
    picture = tripped()
    memory = resume_actions(picture.memory, picture.now)
    assert launches(replace(picture, memory=memory))
    with pytest.raises(Refusal, match="is not tripped"):
        reset_breakers(memory, SCOPE, picture.now)


@pytest.mark.parametrize(
    "change",
    [{"version": Version(serial=2)}, {"lifecycle": Lifecycle(source="file:///mended", on_create="go.sh")}],
    ids=["version", "scripts"],
)
def test_machines_that_are_made_otherwise_begin_without_failures(change: dict[str, Any]) -> None:
    other = with_group(tripped(), **change)
    assert launches(other)
    assert other.then().memory.breakers == {}


def test_a_group_that_is_gone_leaves_no_breaker() -> None:
    picture = tripped()
    gone = replace(picture, memory=replace(picture.memory, groups={}, slots={}))
    assert gone.then().memory.breakers == {}


def test_time_alone_closes_nothing() -> None:
    assert not launches(tripped().after(30_000.0))


def test_machines_that_were_given_up_a_day_ago_are_forgotten() -> None:
    picture = given_up(coming(), 2)
    assert SCOPE in given_up(picture).memory.breakers
    later = given_up(picture.after(86_400.0))
    assert SCOPE not in later.memory.breakers
    assert len(later.memory.groups["workers"].given_up) == 1
