"""Limits that are not Steward's: what somebody borrowed is not taken back for a job that they would hold up all the
same, also before Slurm says so."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.quota_bed import SOON_S, SWEEP_S, USER, QuotaStory

pytestmark = pytest.mark.quotas_stay

SEEN_S = 2 * SWEEP_S
"""Longer than Steward may take to see a job."""
READ_S = 16.0
"""It reads limits that only slurmdbd has every ten seconds, or when it looks next."""


@contextmanager
def limits_of_the_sites(quotas: QuotaStory) -> Iterator[None]:
    """One CPU for a user of team owner, and one GPU for all jobs in QOS small."""
    user = ("modify", "user", "where", f"name={USER}", "account=owner", "set")
    account = ("modify", "account", "where", "name=owner", "set")
    quotas.sacctmgr(*user, "grptres=cpu=1")
    quotas.sacctmgr("add", "qos", "small", "grptres=gres/gpu=1")
    quotas.sacctmgr(*account, "qos+=small")
    began = time.time()
    quotas.wait("Steward has read them", lambda: time.time() > began + READ_S)
    try:
        yield
    finally:
        quotas.sacctmgr(*user, "grptres=cpu=-1")
        quotas.sacctmgr(*account, "qos-=small")


def test_nothing_is_taken_back_for_jobs_that_limits_of_the_sites_hold_up(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    small = "--qos=small"
    with limits_of_the_sites(quotas):
        for job in (quotas.sleeps("owner", 1, user=USER), quotas.sleeps("owner", 1, small)):
            quotas.wait_state(job, "RUNNING", SOON_S)
        lent = [quotas.sleeps("guest", gpus) for gpus in (4, 2)]
        for job in lent:
            quotas.wait_state(job, "RUNNING", SOON_S)
        began = time.time()
        held_up = {
            quotas.sleeps("owner", 1, user=USER): "AssocGrpCpuLimit",
            quotas.sleeps("owner", 1, small): "QOSGrpGRES",
        }
        quotas.wait(
            "Slurm names both limits", lambda: {j: quotas.job(j).fields["Reason"] for j in held_up} == held_up, SOON_S
        )
        quotas.wait("Steward has seen it", lambda: time.time() > began + SEEN_S)
        assert [quotas.job(job).state for job in lent] == ["RUNNING", "RUNNING"]
        assert quotas.events("quota.evicting", since=began) == []


def test_a_job_that_fits_nowhere_ends_nobodys_job_and_holds_up_nobody_of_its_team(quotas: QuotaStory) -> None:
    """Guest's own job has n1, which the owner's first job names; what guest borrowed is on n2."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    own = quotas.sleeps("guest", 4, "--nodelist=n1")
    quotas.wait_state(own, "RUNNING", SOON_S)
    lent = [quotas.sleeps("guest", 1) for _ in range(4)]
    for job in lent:
        quotas.wait_state(job, "RUNNING", SOON_S)
    began = time.time()
    first = quotas.sleeps("owner", 2, "--nodelist=n1")
    quotas.wait_says(first, "no node that it may use would have room for it")
    assert quotas.events("quota.evicting", since=began) == []
    second = quotas.sleeps("owner", 3)
    quotas.wait_state(second, "RUNNING", SOON_S)
    assert [quotas.job(job).state for job in lent].count("RUNNING") == 1
    assert quotas.job(own).state == "RUNNING"


def test_nobody_is_evicted_for_a_job_that_slurm_keeps_behind_another_one(quotas: QuotaStory) -> None:
    """The owner's first job needs both machines, of which guest's own job has one for an hour. Slurm plans it for then,
    and lets nobody begin before it who would not be done by then."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    own = quotas.sleeps("guest", 4, "--nodelist=n1", "--time=60")
    quotas.wait_state(own, "RUNNING", SOON_S)
    lent = [quotas.sleeps("guest", 1, "--time=60") for _ in range(4)]
    for job in lent:
        quotas.wait_state(job, "RUNNING", SOON_S)
    began = time.time()
    first = quotas.asks("owner", "--gres=gpu:l4:1", "--nodes=2", "--ntasks=2", "--mem=1G", "--time=60")
    quotas.wait_says(first, "no node that it may use would have room for it")
    longer = quotas.sleeps("owner", 2, "--time=120")
    quotas.wait("Steward has seen it", lambda: time.time() > began + SEEN_S)
    assert quotas.events("quota.evicting", since=began) == [], quotas.explain(str(longer))
    shorter = quotas.sleeps("owner", 1, "--time=10")
    quotas.wait_state(shorter, "RUNNING", SOON_S)
    assert [quotas.job(job).state for job in lent].count("RUNNING") == 3
