"""Daemons are away while an owner's job waits: he gets his own back once. A file for itself, so that these stories are
told beside those of test_quota_killed.py: each takes minutes on a busy machine."""

import pytest

from steward_bed.faults import FaultKind
from tests.e2e.quota_bed import SOON_S, QuotaStory


@pytest.mark.quotas_stay
@pytest.mark.long
def test_an_owner_gets_his_own_back_once_while_slurmdbd_and_the_head_are_killed(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    kept = quotas.sleeps("guest", 4)
    quotas.wait_state(kept, "RUNNING", SOON_S)
    lent = quotas.sleeps("guest", 4)
    quotas.wait_state(lent, "RUNNING", SOON_S)
    quotas.hurt(FaultKind.KILL_SLURMDBD)
    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", 2 * SOON_S)
    quotas.hurt(FaultKind.KILL_HEAD)
    quotas.hurt(FaultKind.START_SLURMDBD)
    quotas.hurt(FaultKind.START_HEAD)
    quotas.wait("limits follow again", lambda: quotas.limits("stw-guest-b").get("gres/gpu:l4") == "0", 2 * SOON_S)
    assert [quotas.job(job).state for job in (kept, mine)] == ["RUNNING", "RUNNING"]
    quotas.end(mine)
    quotas.wait_state(lent, "RUNNING", 2 * SOON_S)
    assert (quotas.job(kept).restarts, quotas.job(lent).restarts) == (0, 1)


@pytest.mark.quotas_stay
@pytest.mark.long
def test_an_owner_gets_his_own_back_once_while_slurmctld_ends_and_starts_again(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    jobs = [quotas.sleeps("guest", 4)]
    quotas.wait_state(jobs[0], "RUNNING", SOON_S)
    jobs.append(quotas.sleeps("guest", 4))
    quotas.wait_state(jobs[1], "RUNNING", SOON_S)
    jobs.append(quotas.sleeps("owner", 4))
    quotas.hurt(FaultKind.RESTART_SLURMCTLD)
    quotas.wait("the owner's job runs", lambda: quotas.job(jobs[2]).state == "RUNNING", 3 * SOON_S)
    quotas.wait_says(jobs[1], f"was evicted for job {jobs[2]} of team owner")
    assert [quotas.job(job).restarts for job in jobs] == [0, 1, 0]
