"""What every SlurmPort promises about when a job runs: its time limit, its end by it, and a turn that is put off."""

import pytest

from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.ports import Stale
from tests.contract.slurm_worlds import SlurmWorld, a_nudge, nudge

N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
NONE: frozenset[NodeName] = frozenset()


def test_a_time_limit_is_read_in_seconds(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(minutes=90))

    assert job.time_limit_s == 5400.0


def test_a_job_that_is_put_off_does_not_run_before_its_time_or_the_next_nudge(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.port.requeue(job, NONE)
    slurm_world.pending(job)
    nudge(slurm_world, job, frozenset({N1, N2}), delay_s=300.0)
    put_off = slurm_world.job(job)
    assert put_off.is_pending
    assert put_off.eligible is not None

    nudge(slurm_world, job, frozenset({N1, N2}))
    running = slurm_world.running(job)
    assert running.nodes == {N3}
    assert running.started is not None
    assert running.started < put_off.eligible - 100.0


def test_a_job_whose_time_limit_is_over_can_be_requeued(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(minutes=5)).id
    slurm_world.time_out(job)
    slurm_world.wait("its time is over", lambda: slurm_world.job(job).state is JobState.TIMEOUT, 60.0)
    slurm_world.wait("it has cleaned up", lambda: slurm_world.job(job).is_over)

    slurm_world.port.requeue(job, NONE)
    assert slurm_world.pending(job).restarts == 1
    nudge(slurm_world, job, NONE)
    assert slurm_world.running(job).restarts == 1


def test_of_several_nudges_those_of_jobs_that_wait_are_done_and_the_others_are_left(slurm_world: SlurmWorld) -> None:
    runs = slurm_world.running(slurm_world.submit(on="n1")).id
    waiting = [slurm_world.submit(hold=True, exclude=["n1"]) for _ in range(2)]
    for job in waiting:
        slurm_world.pending(job)
    gone, earlier = JobId(999999), a_nudge(waiting[0], frozenset({N2}), restart=7)
    only_n3 = frozenset({N1, N2})
    later = [a_nudge(job, only_n3, delay_s=300.0) for job in (*waiting, gone)]
    slurm_world.port.nudge([a_nudge(runs, only_n3), *later, earlier])
    slurm_world.port.nudge([a_nudge(runs, only_n3), a_nudge(gone, only_n3)])

    assert [slurm_world.job(job).excluded for job in (runs, *waiting)] == [NONE, only_n3, only_n3]


def test_what_was_meant_for_an_earlier_run_does_nothing_to_the_next(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.port.requeue(job, NONE, restart=0)
    slurm_world.pending(job)
    with pytest.raises(Stale, match="restarted meanwhile"):
        nudge(slurm_world, job, NONE, restart=0)
    nudge(slurm_world, job, NONE, restart=1)
    slurm_world.running(job)
    with pytest.raises(Stale, match="restarted meanwhile"):
        slurm_world.port.requeue(job, NONE, restart=0)
    assert slurm_world.job(job).is_active
