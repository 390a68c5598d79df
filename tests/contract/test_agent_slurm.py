"""What the agent asks Slurm by itself, on a real one."""

import os
import signal
from collections.abc import Iterator

import pytest

from steward.adapters.node.jobs_here import JobsHere
from steward.adapters.node.probe import LocalProbes
from steward.checks import memory, services
from steward.checks.check import Check, Facts, Judgement, Past
from steward.checks.limits import Limits
from steward.model.health import Outcome
from steward.model.ids import JobId, NodeName
from steward.ports import Retryable
from tests.contract.cluster import Cluster, running
from tests.contract.installed import missing

NODE = NodeName("n1")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Its own: these tests kill its daemons."""
    if absent := missing():
        pytest.skip(f"no real Slurm: {', '.join(absent)} not installed")
    with running(("n1",)) as one:
        yield one


def verdict(check: Check, cluster: Cluster, node: NodeName = NODE) -> Judgement:
    facts = Facts(node=node, limits=Limits(), slurm_conf=cluster.env["SLURM_CONF"])
    probes = LocalProbes(skew_s=lambda: None)
    return check.verdict(tuple(probes.look(probe) for probe in check.probes(facts)), facts, Past())


def test_a_running_job_is_not_over_and_is_on_its_node(cluster: Cluster) -> None:
    job = cluster.sbatch("-w", NODE)
    cluster.wait_job(job, "RUNNING")
    jobs = JobsHere(cluster.env["SLURM_CONF"])
    assert not jobs.is_over(JobId(job), restart=0)
    assert jobs.is_over(JobId(job), restart=1)
    assert jobs.on(NODE) == {job: os.geteuid()}
    cluster.run("scancel", str(job))
    cluster.wait("the job is over", lambda: jobs.is_over(JobId(job), restart=0))
    cluster.wait("the node is empty", lambda: jobs.on(NODE) == {})


def test_a_requeued_job_is_over(cluster: Cluster) -> None:
    job = cluster.sbatch("-w", NODE)
    cluster.wait_job(job, "RUNNING")
    jobs = JobsHere(cluster.env["SLURM_CONF"])
    assert jobs.restarts(JobId(job)) == 0
    cluster.run("scontrol", "requeue", str(job))
    assert jobs.is_over(JobId(job), restart=0)
    assert jobs.restarts(JobId(job)) == 1
    cluster.run("scancel", str(job))


def test_a_job_that_slurm_does_not_know_is_over(cluster: Cluster) -> None:
    jobs = JobsHere(cluster.env["SLURM_CONF"])
    assert jobs.is_over(JobId(999999), restart=0)
    with pytest.raises(Retryable):
        jobs.restarts(JobId(999999))


def test_the_nodes_memory_is_compared_with_what_slurm_conf_says(cluster: Cluster) -> None:
    seen = verdict(memory.MEMORY, cluster)
    assert seen.outcome is Outcome.PASSED
    assert seen.text.endswith("Slurm's RealMemory is 500 MB")
    assert verdict(memory.MEMORY, cluster, NodeName("nobody")).outcome is Outcome.UNKNOWN


def test_slurmd_is_seen_to_answer_and_nothing_of_it_is_left_in_its_log(cluster: Cluster) -> None:
    log = cluster.path("n1.out")
    before = log.read_text()
    assert verdict(services.SLURMD, cluster).outcome is Outcome.PASSED
    assert "error" not in log.read_text().removeprefix(before)


def test_a_frozen_slurmd_is_unknown_and_a_dead_one_has_failed(cluster: Cluster) -> None:
    cluster.daemons[NODE].send_signal(signal.SIGSTOP)
    assert verdict(services.SLURMD, cluster).outcome is Outcome.UNKNOWN
    cluster.stop(NODE)
    assert verdict(services.SLURMD, cluster).outcome is Outcome.FAILED
    cluster.start_slurmd(NODE)
    cluster.wait("slurmd answers again", lambda: verdict(services.SLURMD, cluster).outcome is Outcome.PASSED)


def test_without_slurmctld_nothing_is_known_about_jobs_but_slurmd_is_still_seen(cluster: Cluster) -> None:
    """The last one: it takes slurmctld away."""
    cluster.stop("slurmctld")
    assert verdict(services.SLURMD, cluster).outcome is Outcome.PASSED
    with pytest.raises(Retryable):
        JobsHere(cluster.env["SLURM_CONF"]).is_over(JobId(1), restart=0)
