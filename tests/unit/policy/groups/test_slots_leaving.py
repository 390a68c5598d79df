"""Slots on their way out: drained first, backed up, ended; and what is not ours to end."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import (
    BackUpNode,
    DownNode,
    DrainNode,
    ForgetNode,
    LaunchInstance,
    RequeueJob,
    SignalJob,
    TerminateInstance,
)
from steward.model.ask import AskKind
from steward.model.capacity_policy import Pool
from steward.model.group import Goal, GroupStatus
from steward.model.ids import InstanceId
from steward.model.instance import Instance, InstanceState
from steward.model.node import NodeBase
from steward.model.resume_mode import ResumeMode
from steward.model.slot import Purpose, SlotStep
from tests.builders.capacity import NODE, a_slot_at, asked, nothing_there, planned, slot, the, with_group, with_slot
from tests.builders.picture import T0, Picture, n
from tests.builders.want import but

TOKEN = "abcdef012345-1-0"
LEAVES = "steward:scale:leave:abcdef012345"
BACKUP = f"backup:{TOKEN}:i-1:0"


def leaving(step: SlotStep = SlotStep.SERVING, purpose: Purpose = Purpose.LEAVE, **rules: Any) -> Picture:
    """The group shall have none; its only node leaves."""
    picture = with_slot(a_slot_at(step, **rules), purpose=purpose, has_served=True, deadline=T0)
    return with_group(picture, goal=Goal(target=0), good=Goal(target=0)) if purpose is Purpose.LEAVE else picture


def drained(picture: Picture) -> Picture:
    return picture.drained(NODE, LEAVES).node(NODE, flags=frozenset({"DRAIN", "DYNAMIC_NORM"}))


def test_a_node_leaves_at_once_without_a_deadline_but_takes_no_new_job_before() -> None:
    picture = leaving().node(NODE, base=NodeBase.ALLOCATED)
    assert planned(picture) == [DrainNode]
    assert str(the(DrainNode, picture).mark) == LEAVES
    out = drained(picture.then(1)).node(NODE, base=NodeBase.ALLOCATED)
    assert planned(out) == [DownNode]
    down = out.then(1).node(NODE, base=NodeBase.DOWN)
    assert planned(down) == [TerminateInstance]


def test_with_a_deadline_its_jobs_are_waited_for() -> None:
    picture = leaving(drain_deadline_s=600.0).node(NODE, base=NodeBase.ALLOCATED)
    out = drained(picture.then(1)).node(NODE, base=NodeBase.ALLOCATED).then()
    assert slot(out.after(590).then(), NODE).step is SlotStep.DRAIN
    assert planned(out.after(600)) == [DownNode]
    assert planned(out.node(NODE, base=NodeBase.IDLE)) == [DownNode]  # they ended sooner


def test_a_software_update_waits_as_long_as_it_is_told_to() -> None:
    picture = leaving(purpose=Purpose.RENEW, update_drain_deadline_s=500.0)
    assert slot(picture.then(), NODE).deadline == T0 + 500.0


def test_opted_in_jobs_get_their_signal_and_the_grace_before_the_end() -> None:
    picture = leaving(checkpoint_signal="USR1", checkpoint_grace_s=60.0).job(7, on=(NODE,)).opted_in(7)
    on_it = picture.node(NODE, base=NodeBase.ALLOCATED)
    out = drained(on_it.then(1)).node(NODE, base=NodeBase.ALLOCATED)
    assert (the(SignalJob, on_it).job, the(SignalJob, on_it).signal) == (7, "USR1")
    assert DownNode not in planned(out)
    assert SignalJob not in planned(out)  # once
    days = leaving(checkpoint_signal="USR1", checkpoint_grace_s=4 * 86400.0).job(7, on=(NODE,)).opted_in(7)
    waits = drained(days.node(NODE, base=NodeBase.ALLOCATED).then(1)).node(NODE, base=NodeBase.ALLOCATED)
    assert SignalJob not in planned(waits.then(2 * 86400.0).then(60.0))
    assert DownNode in planned(out.after(60.0))


def test_a_job_that_ends_by_its_signal_is_requeued() -> None:
    picture = leaving(checkpoint_signal="USR1", checkpoint_grace_s=60.0).job(7, on=(NODE,)).opted_in(7)
    out = drained(picture.node(NODE, base=NodeBase.ALLOCATED).then(1)).node(NODE, base=NodeBase.ALLOCATED).then(5)
    saved = out.ask(AskKind.BATCH, node=NODE, status=10)
    assert the(RequeueJob, saved).why.rule == "resume.told"


def test_jobs_that_did_not_opt_in_get_no_signal_and_no_grace() -> None:
    picture = leaving(checkpoint_signal="USR1").job(7, on=(NODE,)).node(NODE, base=NodeBase.ALLOCATED)
    assert planned(picture) == [DrainNode]
    assert slot(picture.then(), NODE).deadline == T0


@pytest.mark.parametrize("said", [{"uid": 1001}, {"mode": ResumeMode.parse("0")}], ids=["a stranger", "its refusal"])
def test_a_job_that_a_stranger_opted_in_or_that_opted_out_gets_no_signal(said: dict[str, Any]) -> None:
    """The signal ends a program that does not expect it."""
    picture = leaving(checkpoint_signal="USR1").job(7, on=(NODE,)).opted_in(7, **said)
    assert planned(picture.node(NODE, base=NodeBase.ALLOCATED)) == [DrainNode]


def test_with_a_long_deadline_the_signal_comes_when_the_grace_is_left() -> None:
    rules: dict[str, Any] = {"drain_deadline_s": 600.0, "checkpoint_signal": "USR1", "checkpoint_grace_s": 60.0}
    picture = leaving(**rules).job(7, on=(NODE,)).opted_in(7).node(NODE, base=NodeBase.ALLOCATED)
    out = drained(picture.then()).node(NODE, base=NodeBase.ALLOCATED)
    assert SignalJob not in planned(out.after(539))
    assert SignalJob in planned(out.after(541))


def test_a_backup_runs_before_the_end_and_its_failure_stops_the_end_until_a_person_asks_again() -> None:
    picture = leaving(SlotStep.BACKUP, backup=("/sbin/save", "%n"))
    assert planned(picture) == [BackUpNode]
    failed = asked(picture.then(), BACKUP, "disk full").then(1)
    assert slot(failed, NODE).trouble == "backup failed: disk full"
    assert planned(failed.after(100_000)) == []
    again = with_slot(failed, trouble="", tries=1)
    assert the(BackUpNode, again).key != BACKUP


def test_after_the_backup_the_instance_goes() -> None:
    picture = leaving(SlotStep.BACKUP, backup=("/sbin/save", "%n")).see(done=frozenset({BACKUP}))
    assert slot(picture.then(), NODE).step is SlotStep.END


def test_a_slot_that_never_served_is_not_backed_up() -> None:
    picture = with_slot(leaving(SlotStep.BACKUP, backup=("/sbin/save", "%n")), has_served=False)
    assert slot(picture.then(), NODE).step is SlotStep.END


def test_what_was_saved_is_restored_on_the_next_machine_before_it_serves() -> None:
    saved = leaving(SlotStep.BACKUP, purpose=Purpose.RENEW, backup=("/sbin/save", "%n")).then()
    came = with_slot(saved, step=SlotStep.VERIFY, purpose=Purpose.STAY, entered=saved.now - 1).checked(NODE)
    assert the(BackUpNode, came).restore
    assert slot(came.then(), NODE).step is SlotStep.VERIFY
    done = came.then().see(done=frozenset({f"restore:{TOKEN}:i-1"})).checked(NODE)
    assert slot(done.then(), NODE).step is SlotStep.RETURN


def waiting_for_its_restore() -> Picture:
    """It was backed up, and there is no machine for the next one yet."""
    saved = leaving(SlotStep.BACKUP, purpose=Purpose.RENEW, backup=("/sbin/save", "%n")).then()
    return with_slot(nothing_there(saved), step=SlotStep.WAITING, purpose=Purpose.STAY, instance=None, next_try=T0 * 2)


def is_restored(picture: Picture) -> bool:
    """Once its machine is there."""
    there = a_slot_at(SlotStep.VERIFY).seen
    came = picture.see(nodes=there.nodes, agents=there.agents, instances=there.instances).agent(NODE, connected=True)
    record = {"step": SlotStep.VERIFY, "entered": picture.now - 1, "instance": InstanceId("i-1"), "next_try": 0.0}
    return BackUpNode in planned(with_slot(came, **record).checked(NODE))


def test_it_is_restored_however_long_the_next_machine_takes() -> None:
    picture = waiting_for_its_restore()
    for _ in range(4):
        picture = picture.then(20 * 3600.0)
        assert is_restored(picture)


def test_it_is_restored_by_a_head_that_was_away_or_paused_for_days() -> None:
    assert is_restored(waiting_for_its_restore().then(3 * 86_400.0).then(1.0))
    paused = waiting_for_its_restore().then()
    paused = replace(paused, memory=replace(paused.memory, paused=True)).then(3 * 86_400.0).then(1.0)
    assert is_restored(replace(paused, memory=replace(paused.memory, paused=False)))


def test_slurm_forgets_a_dynamic_node_when_its_machine_is_gone() -> None:
    picture = drained(leaving(SlotStep.END)).node(NODE, base=NodeBase.DOWN).see(instances={}, agents={})
    assert planned(picture) == [ForgetNode]
    assert picture.see(nodes={}).plan().memory.slots == {}


def test_it_is_asked_to_even_when_the_clock_was_set_forward_meanwhile() -> None:
    picture = drained(leaving(SlotStep.END)).node(NODE, base=NodeBase.DOWN).see(instances={}, agents={})
    an_hour_later = picture.after(3600.0)
    assert planned(an_hour_later) == [ForgetNode]
    assert n(NODE) in an_hour_later.plan().memory.slots


def test_a_node_that_slurm_does_not_forget_holds_its_slot_for_half_a_minute() -> None:
    picture = drained(leaving(SlotStep.END)).node(NODE, base=NodeBase.DOWN).see(instances={}, agents={}).then()
    assert n(NODE) in picture.after(29.0).plan().memory.slots
    assert picture.after(30.0).plan().memory.slots == {}


def test_a_node_of_a_pool_stays_in_slurm_out_of_service() -> None:
    picture = drained(leaving(SlotStep.END)).node(NODE, base=NodeBase.DOWN).see(instances={}, agents={})
    pools = {"workers": Pool(group="workers", nodes=(n(NODE),))}
    of_pool = replace(picture, want=replace(picture.want, capacity=but(picture.want.capacity, pools=pools)))
    decided = of_pool.plan()
    assert (decided.actions, dict(decided.memory.slots)) == ((), {})


def test_a_machine_made_anew_is_launched_with_another_token_after_the_old_one_is_gone() -> None:
    picture = leaving(SlotStep.END, purpose=Purpose.RENEW)
    assert LaunchInstance not in planned(picture)
    empty = nothing_there(picture).then()
    assert (slot(empty, NODE).purpose, slot(empty, NODE).token) == (Purpose.STAY, "abcdef012345-1-1")
    assert planned(nothing_there(picture)) == [LaunchInstance]


def test_a_launch_that_may_still_make_a_machine_is_waited_for() -> None:
    key = f"launch:{TOKEN}:{T0 - 10:.3f}"
    picture = with_slot(asked(nothing_there(leaving(SlotStep.END)), key), instance=None, launched=T0 - 10)
    assert n(NODE) in picture.plan().memory.slots
    assert n(NODE) not in picture.after(60).plan().memory.slots
    assert n(NODE) not in asked(picture, key, "capacity: none left").plan().memory.slots


def test_one_whose_machine_came_and_was_ended_leaves_at_once() -> None:
    """The provider has answered both the launch and the end."""
    key = f"launch:{TOKEN}:{T0 - 10:.3f}"
    there = with_slot(asked(leaving(SlotStep.END), key), instance=None, launched=T0 - 10).see(nodes={}, agents={})
    assert planned(there) == [TerminateInstance]
    assert planned(there.then(1).see(instances={})) == []
    assert n(NODE) not in there.then(1).see(instances={}).plan().memory.slots


def test_another_machine_under_the_name_is_not_ended() -> None:
    other = Instance(id=InstanceId("i-x"), node=n(NODE), state=InstanceState.RUNNING, token="of-somebody")
    picture = drained(leaving(SlotStep.END)).node(NODE, base=NodeBase.DOWN)
    both = picture.see(instances={**picture.seen.instances, other.id: other})
    assert [a.instance for a in both.plan().actions if isinstance(a, TerminateInstance)] == ["i-1"]
    assert "instance.foreign" in [event.kind for event in both.plan().events]


def test_a_fixed_machine_is_never_ended() -> None:
    pools = {"workers": Pool(group="workers", nodes=(n(NODE),), fixed=True)}
    picture = drained(leaving(SlotStep.END, pools=pools)).node(NODE, base=NodeBase.ALLOCATED)
    assert planned(picture) == [DownNode]
    assert picture.then(1).node(NODE, base=NodeBase.DOWN).plan().memory.slots == {}


def test_a_machine_that_its_provider_takes_away_is_replaced_in_time() -> None:
    whole = a_slot_at(SlotStep.SERVING, checkpoint_signal="USR1", checkpoint_grace_s=60.0)
    told = {i.id: replace(i, interrupted="spot, in 2 min") for i in whole.seen.instances.values()}
    picture = whole.see(instances=told).job(7, on=(NODE,)).opted_in(7).then(1)
    assert slot(picture, NODE).purpose is Purpose.RENEW
    assert slot(picture.then(), NODE).deadline in (T0 + 60.0, T0 + 61.0)


def renewing(**rules: Any) -> Picture:
    """It drains for a software update, and job 7 runs on it, which may do so for a day."""
    picture = leaving(purpose=Purpose.RENEW, **rules).job(7, on=(NODE,)).opted_in(7)
    begun = picture.node(NODE, base=NodeBase.ALLOCATED).then(60)
    assert slot(begun, NODE).deadline == T0 + 86_400.0
    return begun.drained(NODE, "steward:update:renew:abcdef012345").node(
        NODE, base=NodeBase.ALLOCATED, flags=frozenset({"DRAIN", "DYNAMIC_NORM"})
    )


@pytest.mark.parametrize("status", [GroupStatus.DELETING, GroupStatus.IN_SERVICE], ids=["deleted", "scaled down"])
def test_a_node_that_drains_for_an_update_when_it_is_to_leave_has_the_time_of_one_that_leaves(
    status: GroupStatus,
) -> None:
    gone = with_group(renewing(), status=status, goal=Goal(target=0), good=Goal(target=0))
    assert planned(gone) == [DownNode]
    later = with_group(renewing(drain_deadline_s=600.0), status=status, goal=Goal(target=0), good=Goal(target=0))
    assert slot(later.then(30).then(30), NODE).deadline == T0 + 60 + 600.0


def test_its_opted_in_jobs_get_their_signal_and_the_grace() -> None:
    picture = renewing(checkpoint_signal="USR1", checkpoint_grace_s=60.0)
    gone = with_group(picture, status=GroupStatus.DELETING, goal=Goal(target=0))
    assert planned(gone) == [SignalJob]
    assert planned(gone.then(59)) == []
    assert planned(gone.then(60)) == [DownNode]


def test_a_node_that_leaves_keeps_an_earlier_deadline() -> None:
    picture = with_slot(renewing(drain_deadline_s=600.0), deadline=T0 + 61.0)
    gone = with_group(picture, status=GroupStatus.DELETING, goal=Goal(target=0))
    assert slot(gone.then(), NODE).deadline == T0 + 61.0


def test_a_rollback_of_the_group_does_not_wait_for_an_update_either() -> None:
    short = with_group(
        renewing(), status=GroupStatus.UPDATING, goal=Goal(target=2, minimum=2), good=Goal(target=0), minimum_since=0.0
    )
    assert slot(short.then(), NODE).purpose is Purpose.LEAVE
    assert planned(short) == [DownNode]


def test_a_machine_that_its_provider_takes_away_while_it_drains_for_an_update_has_its_jobs_signalled() -> None:
    picture = renewing(checkpoint_signal="USR1", checkpoint_grace_s=60.0)
    told = {i.id: replace(i, interrupted="spot, in 2 min") for i in picture.seen.instances.values()}
    taken = picture.see(instances=told)
    assert planned(taken) == [SignalJob]
    assert "instance.interrupted" in [event.kind for event in taken.plan().events]
    later = taken.then(30)
    assert slot(later.then(), NODE).deadline == T0 + 60 + 60.0
    assert "instance.interrupted" not in [event.kind for event in later.plan().events]
    assert planned(taken.then(60)) == [DownNode]
