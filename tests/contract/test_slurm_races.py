"""What happens to a job between our look at Slurm and our act."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.ports import Retryable
from tests.contract.conftest import Clusters
from tests.contract.slurm_worlds import RealWorld


class LooksLate(CommandLineSlurm):
    """Its picture of the jobs is the one that it is given."""

    picture: Mapping[JobId, Job]

    def job(self, job: JobId) -> Job:
        return self.picture[job]


@pytest.fixture
def world(clusters: Clusters) -> RealWorld:
    cluster = clusters.of(Path("/"))
    return RealWorld(cluster=cluster, port=CommandLineSlurm(conf=cluster.env["SLURM_CONF"]))


@pytest.fixture
def late(world: RealWorld) -> LooksLate:
    return LooksLate(conf=world.cluster.env["SLURM_CONF"])


def stays_cancelled(world: RealWorld, job: JobId) -> None:
    world.wait("it has ended", lambda: not world.job(job).is_completing)
    assert (world.job(job).state, world.job(job).restarts) == (JobState.CANCELLED, 0)


def test_a_job_that_its_user_cancelled_since_we_looked_stays_cancelled(world: RealWorld, late: LooksLate) -> None:
    job = world.running(world.submit())
    late.picture = {job.id: job}
    world.cancel(job.id)
    late.requeue(job.id, frozenset())

    stays_cancelled(world, job.id)


def test_a_cancelled_job_that_cleans_up_and_does_not_show_what_it_will_be_stays_cancelled(
    world: RealWorld, late: LooksLate
) -> None:
    """Until it has cleaned up, 22.05 shows nothing but that."""
    job = world.running(world.submit())
    late.picture = {job.id: replace(job, state=JobState.UNKNOWN, flags=frozenset({"COMPLETING"}))}
    world.cancel(job.id)
    with pytest.raises(Retryable, match="cleans up"):
        late.requeue(job.id, frozenset())

    stays_cancelled(world, job.id)
