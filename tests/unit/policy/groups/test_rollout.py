"""Software updates: how the nodes are brought to the wanted version, batch by batch."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import LookAtAlarms
from steward.model.group import (
    BatchSize,
    GroupStatus,
    RolloutState,
    Version,
)
from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.model.memory import Incident
from steward.model.plan import Plan
from steward.model.slot import Hitch, Purpose, SlotStep
from steward.policy.draft import Draft
from steward.policy.facts.incidents import AGENTS
from steward.policy.groups.rollout import ALARMS_EVERY_S, move_rollouts, nodes_of
from tests.builders.api_cluster import ID, ApiPicture, an_api_cluster
from tests.builders.orders import a_software_update, after, deletion, group, rollout, with_rules
from tests.builders.picture import T0, names

IMAGE = "ami-0123456789abcdef0"


def an_update_of(count: int = 4, **fields: Any) -> ApiPicture:
    """Ordered for workers-1.. and not begun."""
    picture = with_rules(an_api_cluster(workers=count), alarms=("/sbin/alarms",))
    return after(a_software_update(**{"groups": (("workers", ""),), "image": IMAGE, **fields}), picture)


def moved(picture: ApiPicture) -> tuple[ApiPicture, Plan]:
    draft = Draft(picture.seen, picture.want, picture.memory, picture.seen.at)
    move_rollouts(draft)
    made = draft.plan()
    return replace(picture, memory=made.memory), made


def then(picture: ApiPicture, after_s: float = 1.0) -> ApiPicture:
    return moved(picture)[0].see(at=picture.seen.at + after_s)


def renewed(picture: ApiPicture) -> set[str]:
    slots = picture.memory.slots.values()
    return {slot.node.removeprefix("workers-") for slot in slots if slot.purpose is Purpose.RENEW}


def back(picture: ApiPicture) -> ApiPicture:
    """What was renewed serves again, made from the group's version."""
    for node in renewed(picture):
        picture = picture.slot(f"workers-{node}", purpose=Purpose.STAY, version=group(picture).version)
    return picture


def failing(picture: ApiPicture, node: str, tries: int, hitch: Hitch = Hitch.SCRIPT) -> ApiPicture:
    """The node came up with the present version, and its bring-up failed for the `tries`-th time."""
    return picture.slot(
        f"workers-{node}", purpose=Purpose.STAY, step=SlotStep.SETUP, version=group(picture).version, hitch=hitch,
        tries=tries, trouble="exit status 1",
    )  # fmt: skip


def test_without_batches_all_nodes_are_renewed_at_once() -> None:
    assert renewed(then(an_update_of(4))) == {"1", "2", "3", "4"}


def test_the_next_batch_waits_until_the_one_before_serves() -> None:
    picture = then(an_update_of(4, batch=BatchSize(count=2)))
    first = renewed(picture)
    assert len(first) == 2
    assert renewed(then(picture)) == first
    second = renewed(then(back(picture)))
    assert len(second) == 2
    assert not second & first


def test_no_batch_begins_while_many_agents_are_silent_for_one_cause() -> None:
    picture = an_update_of(batch=BatchSize(count=1))
    incident = Incident(kind=AGENTS, since=T0, nodes=names("workers-1", "workers-2"), text="2 of 4 agents went silent")

    def during(one: Incident) -> ApiPicture:
        return replace(picture, memory=replace(picture.memory, incidents={AGENTS: one}))

    assert renewed(then(during(incident))) == set()
    assert len(renewed(then(during(replace(incident, over=T0))))) == 1


def test_a_renewed_node_that_is_still_on_its_way_is_waited_for() -> None:
    picture = then(an_update_of(2, batch=BatchSize(count=1)))
    [node] = renewed(picture)
    coming = back(picture).slot(f"workers-{node}", step=SlotStep.WAITING)
    assert renewed(then(coming)) == set()


def test_between_batches_the_wait_is_kept() -> None:
    picture = back(then(an_update_of(4, batch=BatchSize(count=2), wait_s=60.0)))
    waiting, made = moved(picture)
    assert renewed(waiting) == set()
    assert made.wake_at == picture.seen.at + 60
    assert renewed(then(waiting.see(at=picture.seen.at + 59))) == set()
    assert len(renewed(then(waiting.see(at=picture.seen.at + 60)))) == 2


def test_the_update_is_done_when_every_node_has_the_version() -> None:
    picture = then(back(then(an_update_of(4))))
    assert (rollout(picture).state, group(picture).status) == (RolloutState.SUCCEEDED, GroupStatus.IN_SERVICE)
    assert rollout(picture).finished == picture.seen.at - 1
    assert group(picture).version.image == IMAGE


def test_an_empty_group_is_done_at_once() -> None:
    picture = an_update_of(0)
    assert rollout(then(picture)).state is RolloutState.SUCCEEDED


def test_a_node_that_is_being_made_from_the_old_version_is_begun_anew_at_once() -> None:
    picture = an_update_of(4, batch=BatchSize(count=1)).slot("workers-4", step=SlotStep.SETUP, has_served=False)
    assert "4" in renewed(then(picture))


def test_a_slot_that_waits_for_capacity_does_not_hold_the_update_up() -> None:
    picture = an_update_of(3).slot("workers-3", step=SlotStep.WAITING, has_served=False, instance=None)
    assert rollout(then(back(then(picture)))).state is RolloutState.SUCCEEDED


def test_an_update_that_waits_for_a_node_that_nobody_has_a_machine_for_goes_on_without_it_when_it_is_deleted() -> None:
    lost = {"step": SlotStep.WAITING, "instance": None, "hitch": Hitch.CAPACITY}
    picture = then(an_update_of(4, batch=BatchSize(count=1)).slot("workers-4", **lost))
    assert renewed(picture) == set()
    without = after(deletion(ids=(), logical_ids=(f"{ID}-4",)), picture)
    assert len(renewed(then(without))) == 1


def test_idle_nodes_are_updated_before_busy_ones() -> None:
    job = Job(id=JobId(7), name="train", user_id=1000, state=JobState.RUNNING, nodes=names("workers-3", "workers-4"))
    picture = an_update_of(4, batch=BatchSize(count=2)).see(jobs={job.id: job})
    assert renewed(then(picture)) == {"1", "2"}


def test_too_many_failed_bring_ups_roll_back() -> None:
    picture = then(an_update_of(4, batch=BatchSize(count=2)))
    for tries in (1, 2):
        picture = then(failing(picture, "4", tries))
        assert rollout(picture).state is RolloutState.IN_PROGRESS
    picture = then(failing(picture, "4", 3))
    assert rollout(picture).state is RolloutState.ROLLBACK_IN_PROGRESS
    assert group(picture).version == Version()
    assert "4" in renewed(picture)
    assert "exit status 1" in rollout(picture).why


def test_one_failure_counts_once_however_often_it_is_looked_at() -> None:
    picture = failing(then(an_update_of(4)), "4", 1)
    for _ in range(5):
        picture = then(picture)
    assert rollout(picture).failures == 1


@pytest.mark.parametrize("hitch", [Hitch.CAPACITY, Hitch.QUOTA, Hitch.OTHER])
def test_want_of_capacity_and_a_provider_that_does_not_answer_are_not_the_versions_fault(hitch: Hitch) -> None:
    picture = then(an_update_of(4))
    for tries in range(1, 6):
        picture = then(failing(picture, "4", tries, hitch))
    assert rollout(picture).failures == 0


def test_a_version_that_the_provider_refuses_is_rolled_back() -> None:
    picture = then(an_update_of(4))
    for node in ("1", "2", "3"):
        picture = failing(picture, node, 1, Hitch.REFUSED).slot(f"workers-{node}", step=SlotStep.WAITING, instance=None)
    picture = then(picture)
    assert (rollout(picture).state, group(picture).version) == (RolloutState.ROLLBACK_IN_PROGRESS, Version())


def rolled_back(picture: ApiPicture) -> ApiPicture:
    for tries in (1, 2, 3):
        picture = then(failing(picture, "4", tries))
    return picture


def test_a_rollback_brings_the_updated_nodes_back_in_its_own_batches() -> None:
    picture = then(an_update_of(4, batch=BatchSize(count=2), rollback_batch=BatchSize(count=1)))
    picture = then(back(picture))
    assert renewed(picture) == {"1", "2"}
    picture = rolled_back(back(picture))
    assert renewed(picture) == {"4"}
    picture = back(picture).slot("workers-4", step=SlotStep.SERVING, hitch=Hitch.NONE, tries=0)
    for left in (2, 1, 0):
        picture = then(picture)
        assert len(renewed(picture)) == 1
        picture = back(picture)
        assert sum(slot.version.image == IMAGE for slot in picture.memory.slots.values()) == left
    picture = then(picture)
    assert (rollout(picture).state, group(picture).status) == (RolloutState.ROLLBACK_COMPLETE, GroupStatus.IN_SERVICE)
    assert group(picture).version == Version()
    assert "rolled back" in group(picture).message


def test_a_rollback_whose_bring_ups_fail_too_has_failed() -> None:
    picture = rolled_back(then(an_update_of(4)))
    for tries in (1, 2, 3):
        picture = then(failing(picture, "4", tries))
    assert (rollout(picture).state, group(picture).status) == (RolloutState.FAILED, GroupStatus.IN_SERVICE)


def test_alarms_are_asked_about_while_the_update_runs() -> None:
    picture, made = moved(an_update_of(4, alarms=("hot",)))
    [look] = made.actions
    assert isinstance(look, LookAtAlarms)
    assert look.alarms == ("hot",)
    assert moved(picture)[1].actions == ()
    assert len(moved(picture.see(at=T0 + ALARMS_EVERY_S))[1].actions) == 1


def test_a_firing_alarm_rolls_back_and_a_broken_alarm_command_does_not() -> None:
    picture, made = moved(an_update_of(4, alarms=("hot",)))
    key = made.actions[0].key
    broken = then(picture.see(failures={key: "nobody knows which alarms fire: rc=1"}))
    assert rollout(broken).state is RolloutState.IN_PROGRESS
    firing = then(picture.see(failures={key: "firing: hot"}))
    assert rollout(firing).state is RolloutState.ROLLBACK_IN_PROGRESS
    assert "hot" in rollout(firing).why


def test_nothing_moves_while_a_person_paused_us() -> None:
    picture = an_update_of(4).remember(paused=True)
    assert renewed(then(picture)) == set()


def test_a_group_that_is_deleted_in_the_middle_is_left_to_its_end() -> None:
    picture = an_update_of(4).change_group("workers", status=GroupStatus.DELETING)
    assert renewed(then(picture)) == set()


@pytest.mark.parametrize(
    ("size", "members", "nodes"),
    [
        (None, 7, 7),
        (BatchSize(count=3), 7, 3),
        (BatchSize(percent=50), 7, 4),
        (BatchSize(percent=1), 7, 1),
        (BatchSize(percent=100), 7, 7),
        (BatchSize(percent=20), 0, 1),
    ],
)
def test_a_percentage_is_rounded_up_to_whole_nodes(size: BatchSize | None, members: int, nodes: int) -> None:
    assert nodes_of(size, members) == nodes


def test_the_story_is_told_in_events() -> None:
    picture, made = moved(an_update_of(2))
    assert [event.kind for event in made.events] == ["rollout.begun", "rollout.batch"]
    assert [event.kind for event in moved(back(picture))[1].events] == ["rollout.over"]
