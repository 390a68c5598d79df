"""Who is evicted for quotas, and how: by Slurm's hand, or by signal, grace and requeue."""

import math
from dataclasses import replace
from typing import Any

import pytest

from steward.adapters.slurm import rules
from steward.model.accounting import Capabilities
from steward.model.action import CancelJob, MoveJob, NudgeJob, RequeueJob, SetQos, SignalJob
from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.policy.quota.turn import requeue_key
from tests.builders.picture import ON, Picture, n
from tests.builders.quota import LISTS, WEAK, tres
from tests.builders.quota_lent import all_lent, gone_in
from tests.builders.quota_site import a_site, borrowed_and_wanted_back, done, own, reserved, runs, settled, waits
from tests.builders.want import but


def lent_beside_free_nodes() -> Picture:
    """Two of three machines are owned, nobody may borrow the third; one team has borrowed all that the other owns."""
    site = runs(a_site(WEAK, own("a", 4), own("b", 4), machines=3), 1, "a", 4, on="n1")
    return waits(settled(runs(site, 2, "a", 4, "b", "n2")), 3, "b", 4)


def chosen_by_slurm(grace_s: float) -> Picture:
    """We expected job 3, the newest, to be evicted; Slurm gave job 2 its grace."""
    picture, _ = done(borrowed_and_wanted_back(LISTS))
    picture = replace(picture, want=replace(picture.want, quota=but(picture.want.quota, grace_s=grace_s)))
    picture = picture.after(1.0)
    return picture.change_job(2, preempted=picture.now)


def test_slurm_itself_takes_back_what_was_borrowed() -> None:
    picture, actions = done(borrowed_and_wanted_back(LISTS))
    assert not any(isinstance(action, RequeueJob | SignalJob) for action in actions)
    eviction = picture.memory.quota_jobs[JobId(3)].evictions[-1]
    assert (eviction.to_job, eviction.due) == (4, None)
    assert "whose quota covers it and lacks 2 GPUs of ml.g6.12xlarge, of which a had borrowed" in eviction.text
    assert JobId(2) not in picture.memory.quota_jobs
    assert done(picture)[1] == []


def test_without_slurms_preemption_the_newest_is_signalled_and_put_back_after_its_grace() -> None:
    picture, actions = done(borrowed_and_wanted_back(WEAK))
    assert [(type(each), getattr(each, "job", None)) for each in actions if not isinstance(each, SetQos)] == [
        (SignalJob, 3)
    ]
    picture, actions = done(picture.after(30))
    assert actions == []
    asked = picture.then(2 * 86400.0).then(60.0).memory.asked
    assert any(key.startswith("quota:signal:3:") for key in asked), "while it is there"
    picture, actions = done(picture.after(31))
    assert [each.job for each in actions if isinstance(each, RequeueJob)] == [3]
    picture = picture.requeued(3, qos="stw-a-b", eligible=picture.now + 120)
    picture, _ = done(picture)
    assert picture.memory.quota_jobs[JobId(3)].yielding is None
    assert picture.memory.quota_jobs[JobId(3)].count == 1
    assert JobId(2) not in picture.memory.quota_jobs


def test_a_job_on_a_node_that_falls_silent_is_put_back_when_the_node_is_heard_again() -> None:
    picture, _ = done(borrowed_and_wanted_back(WEAK))
    (node,) = picture.seen.jobs[JobId(3)].nodes
    silent, actions = done(picture.after(61).agent_lost(node, ago_s=0.5))
    assert [each for each in actions if isinstance(each, RequeueJob)] == []
    _, actions = done(silent.heard(node).after(1))
    assert [each.job for each in actions if isinstance(each, RequeueJob)] == [3]


def test_slurms_preemption_finds_first_whom_we_chose_first() -> None:
    """Two teams borrow. The one with the higher share is evicted, and would have borrowed nothing without its job."""
    site = a_site(LISTS, own("a", 2), own("b", 4), own("c", 2))
    site = runs(runs(site, 1, "a", 2), 2, "a", 3, "b", "n2")
    site = settled(runs(runs(site, 3, "c", 2), 4, "c", 1, "b", "n2"))
    picture, _ = done(waits(site, 5, "b", 3))
    assert picture.memory.quota_jobs.keys() == {2}
    for _ in range(3):
        assert picture.seen.accounting is not None
        qos = picture.seen.accounting.qos
        assert qos["stw-a-b"].priority < qos["stw-c-b"].priority
        picture, _ = done(picture)


def test_nobody_is_evicted_for_a_job_that_starts_on_free_nodes() -> None:
    picture, actions = done(lent_beside_free_nodes())
    assert not any(isinstance(each, SignalJob | RequeueJob) for each in actions)
    picture = settled(runs(picture, 3, "b", 4, on="n3"))
    assert JobId(2) not in picture.memory.quota_jobs or not picture.memory.quota_jobs[JobId(2)].evictions


def test_who_may_not_use_what_is_free_gets_his_own_back() -> None:
    picture = lent_beside_free_nodes().change_job(3, excluded=frozenset({NodeName("n3")}), reason="Resources")
    _, actions = done(picture)
    assert [each.job for each in actions if isinstance(each, SignalJob)] == [2]


def test_when_slurm_does_not_preempt_we_make_room() -> None:
    picture, _ = done(borrowed_and_wanted_back(LISTS))
    picture, actions = done(picture.after(80))
    assert [type(each) for each in actions] == [SignalJob]


def test_when_slurm_chooses_another_job_that_one_is_evicted_and_none_beside_it() -> None:
    picture, _ = done(chosen_by_slurm(5.0))
    assert JobId(3) not in picture.memory.quota_jobs or not picture.memory.quota_jobs[JobId(3)].evictions
    told = picture.memory.quota_jobs[JobId(2)].evictions[-1]
    assert (told.to_job, told.due) == (4, None)
    assert told.text.startswith("is evicted for job 4 of team b, whose quota covers it")
    assert done(picture.after(1.0))[1] == []


def test_a_job_that_slurm_gave_its_grace_is_ended_without_another_when_slurm_takes_too_long() -> None:
    picture, _ = done(chosen_by_slurm(5.0))
    picture, actions = done(picture.after(5.0 + picture.want.quota.patience_s))
    assert [(type(each), getattr(each, "job", None)) for each in actions] == [(RequeueJob, 2)]


def test_a_reclaim_is_called_off_when_nobody_wants_it_any_more() -> None:
    picture, _ = done(borrowed_and_wanted_back(LISTS))
    picture = picture.change_job(4, state=JobState.CANCELLED, ended=picture.now)
    picture, _ = done(picture)
    assert JobId(3) not in picture.memory.quota_jobs or not picture.memory.quota_jobs[JobId(3)].evictions


@pytest.mark.parametrize(("error", "again"), [("not tried: the one before it hung", True), ("retry: no answer", False)])
def test_a_signal_that_was_not_tried_is_asked_for_again_and_no_other(error: str, again: bool) -> None:
    picture, actions = done(borrowed_and_wanted_back(WEAK))
    (signal,) = (each for each in actions if isinstance(each, SignalJob))
    _, actions = done(picture.after(6).see(failures={signal.key: error}))
    assert [each for each in actions if isinstance(each, SignalJob)] == [signal] * again


@pytest.mark.parametrize("opted_in", [False, True])
def test_a_job_without_a_script_is_cancelled_for_slurm_takes_none_back(opted_in: bool) -> None:
    picture = borrowed_and_wanted_back(WEAK).change_job(3, is_batch=False)
    picture, _ = done(picture.opted_in(3) if opted_in else picture)
    assert "cancelled, for Slurm requeues batch jobs only" in picture.memory.quota_jobs[JobId(3)].evictions[-1].text
    found = [each for each in picture.after(61).plan().actions if isinstance(each, CancelJob | RequeueJob)]
    assert [(type(each), each.job) for each in found] == [(CancelJob, 3)]


def test_a_job_whose_user_wants_no_requeue_is_cancelled_though_it_opted_in() -> None:
    """Only its steps would run again: Slurm refuses to requeue it, and would for ever."""
    picture = borrowed_and_wanted_back(WEAK).change_job(3, requeue=False)
    picture, _ = done(picture.opted_in(3, replace(ON, requeue=False)))
    found = [each for each in picture.after(61).plan().actions if isinstance(each, CancelJob | RequeueJob)]
    assert [(type(each), each.job) for each in found] == [(CancelJob, 3)]


def test_where_slurm_refuses_a_requeue_another_job_is_evicted() -> None:
    """What a job keeps is not promised to the owner's job any more."""
    picture = runs(runs(a_site(WEAK), 1, "a", 4), 2, "a", 2, "b", "n2", started=1000.0)
    picture = waits(settled(runs(picture, 3, "a", 2, "b", "n2", started=2000.0)), 4, "b", 2)
    picture, _ = done(picture)
    picture, actions = done(picture.after(61))
    (requeue,) = (each for each in actions if isinstance(each, RequeueJob))
    assert requeue.job == 3
    plan = (
        picture.after(6).see(failures={str(requeue.key): "refused: Requested operation is presently disabled"}).plan()
    )
    assert "quota.refused" in {event.kind for event in plan.events}
    assert [each.job for each in plan.actions if isinstance(each, SignalJob)] == [2]
    assert plan.memory.quota_jobs[JobId(3)].yielding is None
    no_answer = picture.after(6).see(failures={str(requeue.key): "retry: no answer"}).plan()
    assert [each.job for each in no_answer.actions if isinstance(each, SignalJob | RequeueJob)] == [3]


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.UNKNOWN], ids=["as PENDING", "as 22.05 shows it"])
def test_a_victim_that_still_cleans_up_is_not_asked_for_again_nor_is_another(state: JobState) -> None:
    picture, _ = done(borrowed_and_wanted_back(WEAK))
    picture, _ = done(picture.after(61))
    cleaning = {"flags": frozenset({"COMPLETING"}), "restarts": 1, "state": state}
    picture = picture.change_job(3, **cleaning)
    for _ in range(3):
        picture, actions = done(picture.after(1))
        assert not any(isinstance(action, SignalJob | RequeueJob) for action in actions)
    memory = picture.memory.quota_jobs[JobId(3)]
    assert (memory.count, memory.yielding is not None) == (1, True)
    assert JobId(2) not in picture.memory.quota_jobs


@pytest.mark.parametrize(
    ("state", "flags"),
    [(JobState.RUNNING, ()), (JobState.PENDING, ("COMPLETING",)), (JobState.CANCELLED, ("COMPLETING",))],
)
def test_a_heterogeneous_job_is_evicted_once_however_late_its_parts_let_go(
    state: JobState, flags: tuple[str, ...]
) -> None:
    """Its first part waits again while another still cleans up: that is no new job that could be evicted."""
    picture = runs(a_site(WEAK), 1, "a", 4)
    for id in (5, 6):
        picture = runs(picture, id, "a", 2, "b", "n2", het_job_id=JobId(5), started=2000.0)
    picture = waits(settled(picture), 9, "b", 4)
    picture, _ = done(picture)
    assert picture.memory.quota_jobs[JobId(5)].count == 1
    picture = picture.change_job(5, state=JobState.PENDING, restarts=1, nodes=frozenset(), started=None)
    picture = picture.change_job(6, state=state, flags=frozenset(flags))
    for _ in range(4):
        picture, _ = done(picture.after(2))
    assert (picture.memory.quota_jobs[JobId(5)].count, len(picture.memory.quota_jobs[JobId(5)].evictions)) == (1, 1)
    picture = picture.change_job(6, state=JobState.PENDING, restarts=1, nodes=frozenset(), flags=frozenset())
    picture, _ = done(picture)
    assert picture.memory.quota_jobs[JobId(5)].yielding is None


def test_a_job_on_a_broken_node_is_not_evicted_for_nothing() -> None:
    """The newest is on a node that takes no jobs: what it would free is nobody's."""
    site = runs(a_site(WEAK, own("a", 2), own("b", 6)), 1, "a", 2, "g", "n1")
    site = runs(runs(site, 2, "a", 2, "b", "n1", started=1000.0), 3, "a", 4, "b", "n2", started=2000.0)
    _, actions = done(waits(settled(site.drained("n2", "somebody's")), 4, "b", 2))
    assert [each.job for each in actions if isinstance(each, SignalJob)] == [2]


@pytest.mark.parametrize("qos", ["stw-a-b", "normal"], ids=["ours", "one that its user chose"])
def test_a_job_that_was_evicted_is_hurried_on_when_there_is_room_again(qos: str) -> None:
    picture = was_evicted(WEAK).change_job(3, qos=qos)
    assert not any(isinstance(action, NudgeJob) for action in picture.after(8).plan().actions)
    ended = picture.change_job(4, state=JobState.COMPLETED, nodes=frozenset(), ended=picture.now)
    plan = done(ended)[0].after(3).plan()
    assert [action.job for action in plan.actions if isinstance(action, NudgeJob)] == [3]
    assert qos != "normal" or not any(isinstance(action, MoveJob) for action in plan.actions)


def was_evicted(can: Capabilities) -> Picture:
    """Job 3 was put back for job 4 of the owner, and Slurm lets it wait for two minutes."""
    picture, _ = done(borrowed_and_wanted_back(can))
    picture, _ = done(picture.after(61))
    picture = picture.requeued(3, qos="stw-a-b", eligible=picture.now + 120)
    return settled(runs(settled(picture), 4, "b", 2, on="n2"))


def test_a_start_time_that_its_user_set_is_waited_for() -> None:
    picture = was_evicted(WEAK).change_job(3, eligible=was_evicted(WEAK).now + 900)
    ended = picture.change_job(4, state=JobState.COMPLETED, nodes=frozenset(), ended=picture.now)
    assert not any(isinstance(action, NudgeJob) for action in done(ended)[0].after(3).plan().actions)


@pytest.mark.parametrize(
    "reason",
    [
        "AssocGrpCPURunMinutesLimit",
        "AssocGrpGRESMinutes",
        "AssocGrpJobsLimit",
        "AssocGrpNodeLimit",
        "AssocMaxJobsLimit",
        "AssocMaxWallDurationPerJobLimit",
        "JobArrayTaskLimit",
        "QOSMaxGRESPerUser",
        "QOSMaxJobsPerUserLimit",
        "QOSTimeLimit",
        "ReqNodeNotAvail",
        "Reservation",
    ],
)
@pytest.mark.parametrize("can", [WEAK, LISTS], ids=["weak", "lists"])
def test_nobody_is_evicted_for_a_job_that_slurm_holds_up_for_another_reason(can: Capabilities, reason: str) -> None:
    """What it would get would stay idle."""
    assert gone_in(waits(all_lent(can), 9, "b", 4, reason=reason), 70) == set()


@pytest.mark.parametrize(("drained", "gone"), [("", {2, 3}), ("n2", set())])
def test_slurms_word_that_nodes_are_not_available_counts_while_they_are_not(drained: str, gone: set[int]) -> None:
    """Behind a job that Slurm could not start it looks at no other one: the word may be of long ago."""
    fields = {"reason": "ReqNodeNotAvail", "required": frozenset({n("n2")}), "unavailable": frozenset({n("n2")})}
    site = waits(all_lent(WEAK), 9, "b", 4, **fields)
    assert gone_in(site.node(drained, base=NodeBase.MIXED, flags=frozenset({"DRAIN"})) if drained else site, 2) == gone


@pytest.mark.parametrize("reason", ["None", "Resources", "Priority"])
def test_others_are_evicted_for_a_job_that_waits_for_nodes(reason: str) -> None:
    assert gone_in(waits(all_lent(WEAK), 9, "b", 4, reason=reason), 2) == {2, 3}


@pytest.mark.parametrize(("most", "gone"), [(1, set()), (2, {4}), (3, {3, 4}), (0, {2, 3, 4})])
def test_an_array_takes_back_what_the_tasks_need_that_it_may_run_at_once(most: int, gone: set[int]) -> None:
    """`--array=0-3%1`: one task runs, three wait."""
    site = runs(a_site(WEAK), 1, "a", 4)
    for id in (2, 3, 4):
        site = runs(site, id, "a", 1, "b", "n2", started=1000.0 * id)
    site = runs(site, 20, "b", 1, on="n2", array_job_id=JobId(21), array_task=0)
    rest = {"array_job_id": JobId(21), "waiting_tasks": 3, "most_tasks": most}
    reason = "JobArrayTaskLimit" if most else "Priority"
    assert gone_in(waits(settled(site), 21, "b", 1, reason=reason, **rest), 2) == gone


@pytest.mark.parametrize(("machines", "gone"), [(2, set()), (3, {3, 4})])
def test_each_part_of_a_heterogeneous_job_gets_nodes_of_its_own(machines: int, gone: set[int]) -> None:
    """What team a borrowed is on n2, and on n3 where there is one."""
    site = runs(a_site(WEAK, own("a", 4), own("b", 4), machines=machines), 1, "a", 4)
    site = runs(runs(site, 2, "a", 2, "b", "n2", started=1000.0), 3, "a", 2, "b", "n2", started=2000.0)
    site = settled(runs(site, 4, "a", 4, "b", "n3", started=3000.0) if machines == 3 else site)
    for id in (5, 6):
        site = waits(site, id, "b", 1, het_job_id=JobId(5), reason="Resources")
    assert gone_in(site, 2) == gone
    told = {memory.evictions[-1].text for memory in done(site)[0].memory.quota_jobs.values()}
    part = "a node with 1 GPU of ml.g6.12xlarge free"
    assert all(f"lacks nodes of their own for its parts: {part} and {part}, of which a" in text for text in told)
    assert len(told) == (1 if gone else 0)


@pytest.mark.parametrize("part", [5, 6])
@pytest.mark.parametrize("reason", ["PartitionConfig", "Dependency", "JobHeldUser"])
def test_no_job_is_evicted_for_a_heterogeneous_job_of_which_one_part_may_not_start(part: int, reason: str) -> None:
    """Slurm starts its parts together."""
    site = runs(a_site(WEAK, own("a", 4), own("b", 4), machines=3), 1, "a", 4)
    site = runs(runs(site, 2, "a", 2, "b", "n2", started=1000.0), 3, "a", 2, "b", "n2", started=2000.0)
    site = settled(runs(site, 4, "a", 4, "b", "n3", started=3000.0))
    for id in (5, 6):
        site = waits(site, id, "b", 1, het_job_id=JobId(5), reason="Resources")
    assert gone_in(site, 2) == {3, 4}
    assert gone_in(site.change_job(part, reason=reason), 2) == set()


@pytest.mark.parametrize(
    ("first", "second", "gone"),
    [
        ({}, {}, set()),
        ({}, {"time_limit_s": None}, set()),
        ({}, {"time_limit_s": 600.0}, {3}),
        ({}, {"priority": 7}, {3}),
        ({"priority": 3}, {}, {3}),
        ({"planned": frozenset()}, {}, {3}),
        ({"planned": frozenset({n("n1")})}, {}, {3}),
        ({"partition": "other"}, {}, {3}),
    ],
    ids=["longer", "endless", "done by then", "comes first", "comes later", "no plan", "elsewhere", "partition"],
)
def test_nobody_is_evicted_where_slurm_keeps_the_nodes_for_a_job_that_comes_first(
    first: dict[str, Any], second: dict[str, Any], gone: set[int]
) -> None:
    """Job 8 needs both nodes, of which team a owns one and has it for an hour more."""
    site, both = all_lent(WEAK), frozenset({n("n1"), n("n2")})
    plan = {"planned": both, "node_count": 2, "priority": 5, "reason": "Resources", **first}
    site = waits(site, 8, "b", 2, **plan).change_job(8, started=site.now + 3600.0)
    site = waits(site, 9, "b", 2, **{"priority": 5, "reason": "Priority", "time_limit_s": 7200.0, **second})
    assert gone_in(site, 2) == gone


SIGNAL = f"quota:signal:3:0:{borrowed_and_wanted_back(WEAK).now:.0f}"
REQUEUE = requeue_key(borrowed_and_wanted_back(WEAK).seen.jobs[JobId(3)])


def ended_well(after_s: float, **seen: Any) -> Picture:
    """The victim got its signal; it ended with status 0 so many seconds after that was decided."""
    picture, actions = done(borrowed_and_wanted_back(WEAK))
    told = picture.now - 1.0
    assert [each.job for each in actions if isinstance(each, SignalJob)] == [3]
    ended = math.floor(told + after_s)
    return picture.see(**seen).change_job(3, state=JobState.COMPLETED, nodes=frozenset(), ended=ended).after(2.0)


@pytest.mark.parametrize("after_s", [0.0, 20.0])
def test_a_job_that_saves_on_its_signal_and_ends_well_is_put_back(after_s: float) -> None:
    picture, actions = done(ended_well(after_s))
    (action,) = (each for each in actions if isinstance(each, RequeueJob))
    rules.is_the_run(picture.seen.jobs[JobId(3)], action.restart)
    rules.may_requeue(picture.seen.jobs[JobId(3)], told_at=action.told_at)
    picture = picture.requeued(3, qos="stw-a-b", eligible=picture.now + 120)
    plan = picture.plan()
    assert plan.memory.quota_jobs[JobId(3)].yielding is None
    assert next(each.text for each in plan.events if each.kind == "quota.evicted").endswith("put back into the queue")


def ended_and_cleans_up(state: JobState) -> Picture:
    """The victim got its signal and ended on it; Slurm has its node until it is cleaned up."""
    picture, _ = done(borrowed_and_wanted_back(WEAK))
    return picture.change_job(3, state=state, flags=frozenset({"COMPLETING"}), ended=picture.now).after(2.0)


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.COMPLETED])
def test_a_job_that_ends_on_its_signal_is_put_back_while_slurm_cleans_up_after_it(state: JobState) -> None:
    """Slurm ignores a scancel of a job that has ended: from its requeue on, its user can cancel it again."""
    picture, actions = done(ended_and_cleans_up(state))
    (action,) = (each for each in actions if isinstance(each, RequeueJob))
    rules.may_requeue(picture.seen.jobs[JobId(3)], told_at=action.told_at)
    assert not any(isinstance(each, RequeueJob) for each in done(picture)[1]), "once"
    back = picture.requeued(3, qos="stw-a-b", flags=frozenset({"COMPLETING"}))
    cancelled = back.change_job(3, state=JobState.CANCELLED, ended=back.now)
    for cleaned in (back.change_job(3, flags=frozenset()), cancelled, cancelled.change_job(3, flags=frozenset())):
        picture, actions = done(cleaned.after(1.0))
        assert not any(isinstance(each, RequeueJob) for each in actions)
    assert picture.memory.quota_jobs[JobId(3)].yielding is None


def test_where_slurm_refuses_that_it_is_put_back_when_slurm_has_cleaned_up() -> None:
    cleans_up, _ = done(ended_and_cleans_up(JobState.FAILED))
    refused = cleans_up.see(failures={REQUEUE: "refused: still completing"}).after(10.0)
    over = refused.change_job(3, flags=frozenset(), nodes=frozenset())
    assert [each.job for each in done(over)[1] if isinstance(each, RequeueJob)] == [3]


@pytest.mark.parametrize(
    "fields",
    [{"state": JobState.CANCELLED}, {"requeue": False}, {"is_batch": False}, {"state": JobState.TIMEOUT}],
    ids=["cancelled", "no requeue", "no script", "its time is over"],
)
def test_no_other_job_is_put_back_while_it_cleans_up(fields: dict[str, Any]) -> None:
    _, actions = done(ended_and_cleans_up(JobState.FAILED).change_job(3, **fields))
    assert not any(isinstance(each, RequeueJob) for each in actions)


def test_nor_is_one_on_a_node_that_fell_silent_for_its_gpus_would_leak() -> None:
    picture = ended_and_cleans_up(JobState.FAILED)
    (node,) = picture.seen.jobs[JobId(3)].nodes
    silent, actions = done(picture.agent_lost(node, ago_s=0.5))
    assert not any(isinstance(each, RequeueJob) for each in actions)
    _, actions = done(silent.heard(node).after(1))
    assert [each.job for each in actions if isinstance(each, RequeueJob)] == [3]


def test_a_new_job_with_the_number_of_one_that_was_evicted_has_nothing_of_its_past() -> None:
    picture, _ = done(borrowed_and_wanted_back(WEAK))
    picture = picture.requeued(3, qos="stw-a-b", submitted=picture.now, eligible=picture.now + 120)
    back, _ = done(picture.after(61.0))
    assert back.memory.quota_jobs[JobId(3)].count == 1
    gone = back.see(jobs={id: job for id, job in back.seen.jobs.items() if id != 3}).after(60.0)
    picture, _ = done(gone)
    new, _ = done(runs(picture, 3, "b", 1, on="n1", submitted=picture.now, started=picture.now))
    assert JobId(3) not in new.memory.quota_jobs
    older = back.change_job(3, state=JobState.RUNNING, restarts=0, submitted=1.0, reason="", nodes=frozenset({n("n2")}))
    assert done(older)[0].memory.quota_jobs[JobId(3)].count == 1, "slurmctld shows it as before the eviction"


@pytest.mark.parametrize(
    ("after_s", "failed"),
    [
        (-1.0, {}),
        (0.0, {SIGNAL: "stale: job 3 is COMPLETED, it does not run"}),
        (5.0, {SIGNAL: "retry: no answer"}),
        (5.0, {f"{REQUEUE}:ended": "refused: no"}),
    ],
    ids=["ended before", "ended when the signal came", "perhaps not told", "Slurm refuses"],
)
def test_a_job_that_may_have_ended_well_without_its_signal_is_never_run_again(
    after_s: float, failed: dict[str, str]
) -> None:
    plan = ended_well(after_s, failures=failed).plan()
    assert not any(isinstance(each, RequeueJob) for each in plan.actions)
    (text,) = (each.text for each in plan.events if each.kind == "quota.evicted")
    assert text.endswith("; it ended well by itself, and is not run again")
    assert plan.memory.quota_jobs[JobId(3)].yielding is None


@pytest.mark.parametrize(
    ("state", "end"),
    [
        (JobState.CANCELLED, "it was cancelled meanwhile"),
        (JobState.TIMEOUT, "its time limit ended it"),
        (JobState.OUT_OF_MEMORY, "it ran out of memory"),
    ],
)
def test_a_job_that_ends_otherwise_in_its_grace_stays_ended_and_that_is_told(state: JobState, end: str) -> None:
    """Its user cancels it, for one."""
    picture, _ = done(borrowed_and_wanted_back(WEAK))
    plan = picture.change_job(3, state=state, nodes=frozenset(), ended=picture.now).after(2.0).plan()
    assert not any(isinstance(each, RequeueJob) for each in plan.actions)
    (text,) = (each.text for each in plan.events if each.kind == "quota.evicted")
    assert text.endswith(f"; {end}, and is not run again")


def all_lent_beside_a_reservation(**fields: Any) -> Picture:
    """Team a has borrowed the one machine that takes jobs."""
    site = a_site(WEAK, own("a", 0), own("b", 4), own("c", 4), machines=2)
    return reserved(settled(runs(site, 2, "a", 4, "b", "n1", started=1000.0)), "n2", **fields)


@pytest.mark.parametrize(
    ("fields", "gone"),
    [({}, {2}), ({"cpus": 48}, {2}), ({"cpus": 8}, set()), ({"is_magnetic": True}, set()), ({"starts": 9e9}, set())],
    ids=["whole", "all its CPUs", "some of its CPUs", "its users need not name it", "later"],
)
def test_what_a_reservation_has_does_not_keep_an_owner_from_his_own(fields: dict[str, Any], gone: set[int]) -> None:
    picture = waits(all_lent_beside_a_reservation(**fields), 9, "b", 4, reason="Resources")
    assert gone_in(picture, 2) == gone


def test_nobody_is_evicted_for_a_job_that_waits_for_nodes_of_its_reservation() -> None:
    picture = waits(all_lent_beside_a_reservation(), 9, "b", 4, reason="Resources", reservation="course")
    assert gone_in(picture, 40) == set()


def nobody_wants_it_any_more() -> Picture:
    """The victim has its signal, then the owner's job is cancelled."""
    picture, _ = done(borrowed_and_wanted_back(WEAK))
    return picture.after(5.0).change_job(4, state=JobState.CANCELLED, ended=picture.now)


def told(picture: Picture) -> list[tuple[str, str]]:
    """Event -> what it says, of quotas, in this turn."""
    return [(each.kind, each.text) for each in picture.plan().events if each.kind.startswith("quota.evict")]


def test_events_tell_what_happened_and_what_was_called_off() -> None:
    ((kind, text),) = told(borrowed_and_wanted_back(WEAK))
    assert kind == "quota.evicting"
    assert text.startswith("job 3 is to be evicted for job 4 of team b")
    assert text.endswith("; in 60 s it is put back into the queue")
    picture = nobody_wants_it_any_more().after(120.0)
    (event,) = (each for each in picture.plan().events if each.kind == "quota.called_off")
    assert event.text == "job 3 is not to be evicted any more: job 4 does not wait any more"


def test_what_is_left_to_slurm_is_told_when_slurm_begins_and_not_where_it_never_did() -> None:
    assert told(borrowed_and_wanted_back(LISTS)) == []
    picture, _ = done(borrowed_and_wanted_back(LISTS))
    began = picture.change_job(3, preempted=picture.now)
    assert [kind for kind, _ in told(began)] == ["quota.evicting"]
    for ended in (JobState.COMPLETED, JobState.CANCELLED):
        over = picture.change_job(3, state=ended, nodes=frozenset(), ended=picture.now)
        assert told(over) == []
        assert not done(over)[0].memory.quota_jobs[JobId(3)].evictions


def test_what_slurm_began_is_not_called_off_and_is_told_as_it_ends() -> None:
    """Slurm ends the job after its grace though the owner's job is gone by then."""
    picture, _ = done(borrowed_and_wanted_back(LISTS))
    picture, _ = done(picture.change_job(3, preempted=picture.now))
    gone = picture.change_job(4, state=JobState.CANCELLED, ended=picture.now)
    assert [kind for kind, _ in told(gone)] == []
    picture, _ = done(gone)
    back = picture.change_job(3, state=JobState.PENDING, nodes=frozenset(), restarts=1, preempted=None)
    ((kind, text),) = told(back)
    assert (kind, text.startswith("job 3 was evicted for job 4 of team b")) == ("quota.evicted", True)


def test_a_job_that_was_signalled_is_spared_when_nobody_wants_it_any_more_and_signalled_when_somebody_does() -> None:
    picture = nobody_wants_it_any_more()
    assert gone_in(picture, 80) == set()
    for _ in range(80):
        picture, _ = done(picture.after(1.0))
    assert not picture.memory.quota_jobs[JobId(3)].evictions
    picture, actions = done(waits(picture, 9, "b", 2))
    assert [(type(each), each.job) for each in actions if isinstance(each, SignalJob | RequeueJob)] == [(SignalJob, 3)]
    assert gone_in(picture.after(50), 10) == {3}


@pytest.mark.parametrize("can", [WEAK, LISTS], ids=["by us", "by Slurm"])
def test_a_slurmctld_that_comes_back_with_old_reasons_calls_nothing_off(can: Capabilities) -> None:
    """It was killed just after the owner's start time had come, and has not looked at that job since."""
    picture, _ = done(borrowed_and_wanted_back(can))
    chosen = picture.memory.quota_jobs[JobId(3)].evictions
    restored = picture.after(200).change_job(4, reason="BeginTime", eligible=picture.now)
    restored, actions = done(restored)
    assert (restored.memory.quota_jobs[JobId(3)].evictions, actions) == (chosen, [])
    looked, actions = done(restored.after(3).change_job(4, reason="Resources"))
    assert [type(each) for each in actions] == [SignalJob if can is LISTS else RequeueJob]
    assert looked.memory.quota_jobs[JobId(3)].count == 1


@pytest.mark.parametrize("after_s", [30.0, 80.0], ids=["within its grace", "slowly"])
def test_a_job_that_ends_for_its_signal_is_put_back_although_nobody_wants_it_any_more(after_s: float) -> None:
    picture, _ = done(nobody_wants_it_any_more().after(after_s))
    ended = {"state": JobState.COMPLETED, "nodes": frozenset(), "ended": math.floor(picture.now)}
    _, actions = done(picture.change_job(3, **ended))
    assert [each.job for each in actions if isinstance(each, RequeueJob)] == [3]


def test_slurms_victim_on_nodes_that_the_waiting_job_may_not_use_went_for_another_one() -> None:
    """Seen on 26.05: an event named a job of another partition, and the team that Slurm had served was not told."""
    less = all_lent(LISTS).change_job(1, requested=tres(3), allocated=tres(3))
    picture, _ = done(waits(less, 9, "b", 4))
    assert [id for id, memory in picture.memory.quota_jobs.items() if memory.yielding]
    other = replace(picture.seen.nodes[n("n1")], partitions=frozenset({"other"}))
    picture = picture.see(nodes={**picture.seen.nodes, other.name: other})
    picture = runs(picture, 5, "a", 1, "b", partition="other")
    picture, _ = done(picture.change_job(5, preempted=picture.now))
    known = picture.memory.quota_jobs
    assert [id for id, memory in known.items() if memory.yielding] == [3, 2]
