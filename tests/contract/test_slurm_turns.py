"""What every SlurmPort promises about when a job runs: its time limit, its end by it, and a turn that is put off."""

import pytest

from steward.model.ids import NodeName
from steward.model.job import JobState
from steward.ports import Stale
from tests.contract.slurm_worlds import SlurmWorld

N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
NONE: frozenset[NodeName] = frozenset()


def test_a_time_limit_is_read_in_seconds(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(minutes=90))

    assert job.time_limit_s == 5400.0


def test_a_job_that_is_put_off_does_not_run_before_its_time_or_the_next_nudge(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.port.requeue(job, NONE)
    slurm_world.pending(job)
    slurm_world.port.nudge(job, frozenset({N1, N2}), release=False, delay_s=300.0)
    put_off = slurm_world.job(job)
    assert put_off.is_pending
    assert put_off.eligible is not None

    slurm_world.port.nudge(job, frozenset({N1, N2}), release=False)
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
    slurm_world.port.nudge(job, NONE, release=False)
    assert slurm_world.running(job).restarts == 1


def test_what_was_meant_for_an_earlier_run_does_nothing_to_the_next(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.port.requeue(job, NONE, restart=0)
    slurm_world.pending(job)
    with pytest.raises(Stale, match="restarted meanwhile"):
        slurm_world.port.nudge(job, NONE, release=False, restart=0)
    slurm_world.port.nudge(job, NONE, release=False, restart=1)
    slurm_world.running(job)
    with pytest.raises(Stale, match="restarted meanwhile"):
        slurm_world.port.requeue(job, NONE, restart=0)
    assert slurm_world.job(job).is_active
