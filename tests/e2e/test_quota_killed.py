"""Daemons die while something is taken back: its owner gets it once, whoever is away meanwhile."""

import time

import pytest

from steward_bed.faults import FaultKind
from tests.e2e.quota_bed import SOON_S, QuotaStory

LATER_S = 8
"""Until the owner's job may start: time for slurmctld to write it to its files (at most 5 s), and not much more."""
KINDS = {
    "slurmctld": (FaultKind.KILL_SLURMCTLD, FaultKind.START_SLURMCTLD),
    "slurmdbd": (FaultKind.KILL_SLURMDBD, FaultKind.START_SLURMDBD),
}


@pytest.mark.quotas_stay
@pytest.mark.long
@pytest.mark.parametrize("daemon", KINDS)
def test_what_is_taken_back_changes_hands_once_though_a_daemon_is_killed_meanwhile(
    quotas: QuotaStory, daemon: str
) -> None:
    """The borrower has been chosen and not let go yet: it ignores signals until the time to kill is over."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    kept = quotas.sleeps("guest", 4)
    quotas.wait_state(kept, "RUNNING", SOON_S)
    lent = quotas.ignores_signals("guest", 4)
    quotas.wait_state(lent, "RUNNING", SOON_S)
    began = time.time()
    mine = quotas.sleeps("owner", 4, f"--begin=now+{LATER_S}")
    quotas.wait("the borrower was chosen", lambda: quotas.events("quota.evicting", since=began), SOON_S)
    kill, start = KINDS[daemon]
    quotas.hurt(kill)
    time.sleep(2.0)  # what is written meanwhile has nobody who takes it
    quotas.hurt(start)

    quotas.wait("the owner's job runs", lambda: quotas.job(mine).state == "RUNNING", 3 * SOON_S)
    quotas.wait_says(lent, f"was evicted for job {mine} of team owner")
    assert [quotas.job(job).state for job in (kept, lent)] == ["RUNNING", "PENDING"]
    quotas.wait("limits follow", lambda: quotas.limits("stw-guest-b").get("gres/gpu:l4") == "0", 2 * SOON_S)
    quotas.end(mine)
    quotas.wait_state(lent, "RUNNING", 2 * SOON_S)
    assert [quotas.job(job).restarts for job in (kept, lent)] == [0, 1]
    told = [event["kind"] for event in quotas.events("quota.evict", since=began)]
    assert sorted(told) == ["quota.evicted", "quota.evicting"]
