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


def test_a_job_that_its_user_cancelled_since_we_looked_stays_cancelled(clusters: Clusters) -> None:
    cluster = clusters.of(Path("/"))
    port = CommandLineSlurm(conf=cluster.env["SLURM_CONF"])
    world = RealWorld(cluster=cluster, port=port)
    job = world.running(world.submit()).id
    late = LooksLate(conf=cluster.env["SLURM_CONF"])
    late.picture = port.jobs()
    world.cancel(job)
    late.requeue(job, frozenset())

    world.wait("it has ended", lambda: not world.job(job).is_completing)
    assert (world.job(job).state, world.job(job).restarts) == (JobState.CANCELLED, 0)


def test_a_cancelled_job_that_cleans_up_and_does_not_show_what_it_will_be_stays_cancelled(clusters: Clusters) -> None:
    """Until it has cleaned up, 22.05 shows nothing but that."""
    cluster = clusters.of(Path("/"))
    port = CommandLineSlurm(conf=cluster.env["SLURM_CONF"])
    world = RealWorld(cluster=cluster, port=port)
    job = world.running(world.submit())
    world.cancel(job.id)
    late = LooksLate(conf=cluster.env["SLURM_CONF"])
    late.picture = {job.id: replace(job, state=JobState.UNKNOWN, flags=frozenset({"COMPLETING"}))}
    with pytest.raises(Retryable, match="cleans up"):
        late.requeue(job.id, frozenset())

    world.wait("it has ended", lambda: not world.job(job.id).is_completing)
    assert (world.job(job.id).state, world.job(job.id).restarts) == (JobState.CANCELLED, 0)
