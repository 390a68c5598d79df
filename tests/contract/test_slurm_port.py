"""What every SlurmPort promises, on the fake and on real Slurm."""

from dataclasses import replace

import pytest

from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.mark import Mark
from steward.model.node import NodeBase
from steward.ports import Permanent, Retryable, Stale
from tests.contract.slurm_worlds import SlurmWorld, nudge

MARK = Mark(check="xid", action="drain", id="c1")
N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
NONE: frozenset[NodeName] = frozenset()


def test_a_picture_has_every_node_in_service_without_a_reason(slurm_world: SlurmWorld) -> None:
    nodes = slurm_world.port.nodes()

    assert set(nodes) == {N1, N2, N3}
    assert all(node.is_schedulable and node.reason is None for node in nodes.values())
    assert all(node.partitions == {"main"} and node.cpus == 4 and node.address for node in nodes.values())
    assert all(node.port > 0 and node.memory_mb == 500 for node in nodes.values())
    assert all(node.slurmd_started and node.boot_time for node in nodes.values())


def test_no_job_is_a_real_answer_only_when_the_controller_gave_it(slurm_world: SlurmWorld) -> None:
    slurm_world.port.jobs()
    slurm_world.break_off()
    try:
        with pytest.raises(Retryable):
            slurm_world.port.jobs()
        with pytest.raises(Retryable):
            slurm_world.port.nodes()
    finally:
        slurm_world.mend()


def test_a_running_job_is_read_with_where_and_how_it_runs(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(name="train", on="n2", exclude=["n3"]))

    assert (job.name, job.state, job.user_id, job.is_batch) == ("train", JobState.RUNNING, 0, True)
    assert (job.nodes, job.batch_host, job.excluded) == (frozenset({N2}), N2, frozenset({N3}))
    assert (job.restarts, job.requeue, job.node_count, job.partition) == (0, True, 1, "main")
    assert (job.time_limit_s, job.reservation) == (None, "")
    assert job.started is not None
    assert job.ended is None


@pytest.mark.parametrize("exit_status", [3 << 8, 11], ids=["exit 3", "signal 11"])
def test_a_failed_job_is_read_with_its_raw_wait_status(slurm_world: SlurmWorld, exit_status: int) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.finish(job, exit_status)
    slurm_world.wait("it failed", lambda: slurm_world.job(job).state is JobState.FAILED)

    assert slurm_world.job(job).exit_status == exit_status
    assert slurm_world.job(job).ended is not None


@pytest.mark.parametrize(
    "name", ["x JobState=FAILED UserId=root(0)", "a\nJobId=60000077 JobState=FAILED", "\x1f\x01|;'\"\\"]
)
def test_a_hostile_job_name_is_only_a_name(slurm_world: SlurmWorld, name: str) -> None:
    job = slurm_world.running(slurm_world.submit(name=name))

    assert job.name == name
    assert JobId(60_000_077) not in slurm_world.port.jobs()


def test_a_hostile_reason_is_only_a_reason(slurm_world: SlurmWorld) -> None:
    text = "x State=IDLE [root@2020-01-01] NodeName=n9"
    slurm_world.admin("n1", "drain", text)
    node = slurm_world.node("n1")

    assert node.is_drain
    assert node.reason is not None
    assert (node.reason.text, node.reason.user) == (text, "root")
    assert node.is_foreign


def test_draining_lets_the_job_go_on_and_leaves_our_mark(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(on="n1")).id
    slurm_world.port.drain(dict.fromkeys([N1, N2], MARK))

    assert slurm_world.node("n1").mark == slurm_world.node("n2").mark == MARK
    assert slurm_world.node("n1").is_drain
    assert slurm_world.node("n1").is_busy
    assert slurm_world.job(job).is_active
    assert slurm_world.node("n3").is_schedulable


def test_somebody_elses_drain_is_not_overwritten_and_nothing_else_is_done(slurm_world: SlurmWorld) -> None:
    slurm_world.admin("n1", "drain", "disk swap, ask Ann")

    with pytest.raises(Stale, match=r"n1.*root.*ask Ann"):
        slurm_world.port.drain(dict.fromkeys([N1, N2], MARK))
    with pytest.raises(Stale, match="ask Ann"):
        slurm_world.port.down(dict.fromkeys([N1], MARK))
    assert slurm_world.node("n1").base is NodeBase.IDLE
    assert slurm_world.node("n2").is_schedulable


def test_slurms_own_words_about_a_silent_node_may_be_overwritten(slurm_world: SlurmWorld) -> None:
    slurm_world.admin("n1", "down", "Not responding")
    slurm_world.port.down(dict.fromkeys([N1], MARK))

    assert slurm_world.node("n1").mark == MARK


def test_down_is_drained_too_and_its_job_waits_for_another_node(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(on="n1")).id
    slurm_world.port.down(dict.fromkeys([N1], MARK))

    node = slurm_world.node("n1")  # a live slurmd that registers now lifts DOWN (ReturnToService=2), never the drain
    assert node.is_drain
    assert not node.is_schedulable
    assert node.mark == MARK
    assert slurm_world.pending(job).restarts == 1


def test_nodes_with_marks_of_their_own_are_taken_out_by_one_call(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(on="n1")).id
    marks = {N1: MARK, N2: replace(MARK, id="c2"), NodeName("n3"): replace(MARK, check="gpu.count", id="c3-ab12")}
    slurm_world.port.drain({name: marks[name] for name in (N2, NodeName("n3"))})
    slurm_world.port.down(marks)

    found = {name: slurm_world.node(name) for name in marks}
    assert {name: node.mark for name, node in found.items()} == marks
    assert all(node.is_drain for node in found.values())
    assert slurm_world.pending(job).restarts == 1


def test_of_nodes_with_marks_of_their_own_none_is_taken_when_one_is_somebody_elses(slurm_world: SlurmWorld) -> None:
    slurm_world.admin("n1", "drain", "disk swap, ask Ann")

    with pytest.raises(Stale, match="ask Ann"):
        slurm_world.port.down({N2: MARK, N1: replace(MARK, id="c2")})
    assert slurm_world.node("n2").is_schedulable


def test_a_node_with_our_mark_is_given_back_and_has_no_reason_then(slurm_world: SlurmWorld) -> None:
    slurm_world.port.down(dict.fromkeys([N1], MARK))
    slurm_world.port.give_back([N1], MARK)

    slurm_world.wait("n1 is in service", lambda: slurm_world.node("n1").is_schedulable)
    assert slurm_world.node("n1").reason is None


def test_a_node_that_an_admin_took_over_is_not_given_back(slurm_world: SlurmWorld) -> None:
    slurm_world.port.drain(dict.fromkeys([N1], MARK))
    slurm_world.admin("n1", "drain", "mine now")

    with pytest.raises(Stale, match="mine now"):
        slurm_world.port.give_back([N1], MARK)
    assert slurm_world.node("n1").is_drain


def test_a_node_in_service_is_not_given_back_again(slurm_world: SlurmWorld) -> None:
    with pytest.raises(Stale):
        slurm_world.port.give_back([N1], MARK)
    with pytest.raises(Stale):
        slurm_world.port.give_back([NodeName("n99")], MARK)


def test_a_node_given_to_us_by_an_admins_command_is_given_back(slurm_world: SlurmWorld) -> None:
    slurm_world.admin("n1", "fail", "Action:Replace")
    with pytest.raises(Stale):
        slurm_world.port.give_back([N1], MARK)
    slurm_world.port.give_back([N1], MARK, "Action:Replace")

    slurm_world.wait("n1 is in service", lambda: slurm_world.node("n1").is_schedulable)


def test_a_running_job_is_requeued_and_gets_its_exclude_list_by_the_nudge(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(on="n1")).id
    slurm_world.port.requeue(job, frozenset({N3}))
    pending = slurm_world.pending(job)
    nudge(slurm_world, job, frozenset({N3}))
    running = slurm_world.running(job)

    assert (pending.restarts, pending.nodes) == (1, NONE)
    assert running.excluded == frozenset({N3})


def test_a_failed_job_is_requeued_with_its_exclude_list(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(on="n1")).id
    slurm_world.finish(job, 1 << 8)
    slurm_world.wait("it failed", lambda: slurm_world.job(job).state is JobState.FAILED)
    slurm_world.port.requeue(job, frozenset({N3}))

    assert slurm_world.pending(job).excluded == frozenset({N3})


def test_a_failed_job_is_requeued_under_its_id(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.finish(job, 1 << 8)
    slurm_world.wait("it failed", lambda: slurm_world.job(job).state is JobState.FAILED)
    slurm_world.port.requeue(job, NONE)

    assert slurm_world.pending(job).restarts == 1


def test_a_job_is_not_requeued_twice(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.port.requeue(job, NONE)
    slurm_world.pending(job)

    with pytest.raises(Stale):
        slurm_world.port.requeue(job, NONE)
    assert slurm_world.job(job).restarts == 1


def test_a_cancelled_job_is_not_brought_back(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.cancel(job)
    slurm_world.wait("it is cancelled", lambda: slurm_world.job(job).state is JobState.CANCELLED)

    with pytest.raises(Stale, match="CANCELLED"):
        slurm_world.port.requeue(job, NONE)
    assert slurm_world.job(job).state is JobState.CANCELLED


def test_a_job_that_ended_well_is_run_again_only_when_it_was_told_to_make_room_before(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.finish(job, 0)
    slurm_world.wait("it ended well", lambda: slurm_world.job(job).state is JobState.COMPLETED)
    ended = slurm_world.job(job).ended
    assert ended is not None
    slurm_world.wait("it is cleaned up", lambda: slurm_world.job(job).is_over)
    for late in (None, ended + 1.0):
        with pytest.raises(Stale, match="COMPLETED"):
            slurm_world.port.requeue(job, NONE, restart=0, told_at=late)
    slurm_world.port.requeue(job, NONE, restart=0, told_at=ended + 0.5)

    assert slurm_world.pending(job).restarts == 1


def test_an_unknown_job_is_stale_for_every_write(slurm_world: SlurmWorld) -> None:
    with pytest.raises(Stale):
        slurm_world.port.requeue(JobId(999999), NONE)
    with pytest.raises(Stale):
        nudge(slurm_world, JobId(999999), NONE)
    with pytest.raises(Stale):
        slurm_world.port.allow_requeue(JobId(999999))


def test_a_job_without_requeue_comes_back_only_when_that_was_allowed(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(requeue=False)).id
    assert not slurm_world.job(job).requeue
    with pytest.raises(Permanent):
        slurm_world.port.requeue(job, NONE)

    slurm_world.port.allow_requeue(job)
    assert slurm_world.job(job).requeue
    slurm_world.port.requeue(job, NONE)
    assert slurm_world.pending(job).restarts == 1


def test_a_nudged_job_runs_soon_and_not_where_it_is_excluded(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.port.requeue(job, NONE)
    slurm_world.pending(job)
    nudge(slurm_world, job, frozenset({N1, N2}))

    assert slurm_world.running(job).nodes == {N3}
    with pytest.raises(Stale):
        nudge(slurm_world, job, NONE)


def test_an_empty_exclude_list_lifts_the_old_one(slurm_world: SlurmWorld) -> None:
    job = slurm_world.submit(hold=True, exclude=["n1"])
    slurm_world.wait("it is there", lambda: slurm_world.job(job).excluded == {N1})
    nudge(slurm_world, job, NONE)

    assert slurm_world.job(job).excluded == NONE


def test_what_a_person_requeued_and_holds_is_never_lifted(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.hold_after_requeue(job)
    assert slurm_world.pending(job).is_held
    nudge(slurm_world, job, NONE)
    with pytest.raises(Stale, match="is held"):
        nudge(slurm_world, job, NONE, release=True)
    slurm_world.step()
    assert slurm_world.job(job).is_pending


def test_a_users_hold_is_never_lifted(slurm_world: SlurmWorld) -> None:
    job = slurm_world.submit(hold=True)
    slurm_world.pending(job)

    with pytest.raises(Stale, match="is held"):
        nudge(slurm_world, job, NONE, release=True)
    assert slurm_world.job(job).is_pending


def test_requeueing_the_last_task_of_an_array_leaves_the_others_alone(slurm_world: SlurmWorld) -> None:
    tasks = slurm_world.submit_array(3)
    last = tasks[3]
    assert slurm_world.job(last).array_job_id == last
    slurm_world.port.requeue(last, NONE)
    assert slurm_world.pending(last).restarts == 1
    nudge(slurm_world, last, frozenset({N1}))

    assert slurm_world.job(last).excluded == {N1}
    assert slurm_world.job(tasks[1]).excluded == NONE
    assert slurm_world.job(tasks[1]).is_active
    assert slurm_world.job(tasks[2]).is_active


def test_it_says_what_it_is_in_one_line(slurm_world: SlurmWorld) -> None:
    assert "Slurm" in slurm_world.port.describe()
    assert "\n" not in slurm_world.port.describe()
