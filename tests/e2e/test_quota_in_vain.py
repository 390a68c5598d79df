"""Limits that are not Steward's: what somebody borrowed is not taken back for a job that they would hold up all the
same. And accounts one below the other, on a Slurm that counts them so."""

import time

import pytest

from steward.testbed.accounting import sacctmgr
from tests.e2e.quota_bed import GRACE_S, SOON_S, SWEEP_S, TYPE, USER, QuotaStory

LONG_S = 2 * SWEEP_S + 5.0 + 4 * GRACE_S + 10.0
"""Longer than Steward waits for Slurm to make room, and then for a grace."""


@pytest.mark.parametrize("whose", ["the user's", "a QOS of the site's"])
def test_nothing_is_taken_back_for_a_job_that_a_limit_of_the_sites_holds_up(quotas: QuotaStory, whose: str) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    options, reason = [], "AssocGrpCpuLimit"
    if whose == "the user's":
        words = ("modify", "user", "where", f"name={USER}", "account=owner", "set", "grptres=cpu=1")
        sacctmgr(quotas.bed, *words)
    else:
        sacctmgr(quotas.bed, "add", "qos", "small", "grptres=gres/gpu=1")
        sacctmgr(quotas.bed, "modify", "account", "where", "name=owner", "set", "qos+=small")
        options, reason = ["--qos=small"], "QOSGrpGRES"
    first = quotas.sleeps("owner", 1, *options, user=USER)
    quotas.wait_state(first, "RUNNING", SOON_S)
    lent = [quotas.sleeps("guest", gpus, user=USER) for gpus in (4, 3)]
    for job in lent:
        quotas.wait_state(job, "RUNNING", SOON_S)
    more = quotas.sleeps("owner", 2, *options, user=USER)
    quotas.wait("the site's limit holds it up", lambda: quotas.job(more).fields["Reason"] == reason, SOON_S)
    until = time.monotonic() + LONG_S
    while time.monotonic() < until:
        assert [quotas.job(job).state for job in lent] == ["RUNNING", "RUNNING"]
        time.sleep(0.5)


def test_a_job_in_a_qos_of_the_sites_has_room_beside_a_team_whose_account_is_below(quotas: QuotaStory) -> None:
    """Slurm counts the account below in the ceiling; a QOS that limits the same takes the ceiling's place."""
    quotas.account("lab", "vision")
    sacctmgr(quotas.bed, "modify", "account", "where", "name=vision", "set", "parent=lab")
    gpus = {"InstanceType": TYPE, "Accelerators": 4}
    quotas.wait_in_force(*(quotas.create(team, gpus, percent=0) for team in ("lab", "vision")))
    quotas.wait_state(quotas.sleeps("vision", 4, user=USER), "RUNNING", SOON_S)
    quotas.wait_state(quotas.sleeps("lab", 4, "--qos=normal", user=USER), "RUNNING", SOON_S)
