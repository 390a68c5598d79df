"""The owner's job is gone before the grace of the borrower is over."""

import time
from collections.abc import Iterator

import pytest

from steward_bed.bed import Bed
from tests.e2e.groups_bed import Access, configure, rewrite
from tests.e2e.quota_bed import SOON_S, QuotaStory

pytestmark = pytest.mark.quotas_stay

SLOW_S = 8.0
"""A grace in which a person can cancel a job."""


@pytest.fixture(scope="module")
def slow_grace(quota_bed: tuple[Bed, Access]) -> Iterator[None]:
    bed, _ = quota_bed
    before = configure(bed, {"quota": {"grace_s": SLOW_S}})
    yield
    rewrite(bed, before)


def test_a_borrower_stays_and_reads_so_when_the_owners_job_is_cancelled_within_the_grace(
    slow_grace: None, quotas: QuotaStory
) -> None:
    """It ignores signals. Slurm (23.02 and newer) goes on with what it began: there the events say that it went."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    own = quotas.sleeps("guest", 4)
    quotas.wait_state(own, "RUNNING", SOON_S)
    lent = quotas.ignores_signals("guest", 4)
    quotas.wait_state(lent, "RUNNING", SOON_S)
    began = time.time()
    mine = quotas.sleeps("owner", 4)
    quotas.wait("the borrower is told", lambda: quotas.events("quota.evicting", since=began), SOON_S)
    quotas.wait_says(lent, f"is evicted for job {mine} of team owner")
    quotas.end(mine)
    quotas.wait("the end is told", lambda: len(quotas.events("quota.", since=began)) > 1, 3 * SOON_S)
    (_, end) = quotas.events("quota.", since=began)
    if quotas.makes_room_itself:
        assert end["text"] == f"job {lent} is not to be evicted any more: job {mine} does not wait any more"
        assert (end["kind"], quotas.job(lent).state, quotas.job(lent).restarts) == ("quota.called_off", "RUNNING", 0)
        assert "evicted for job" not in quotas.explain(str(lent))
    else:
        assert end["kind"] == "quota.evicted"
        quotas.wait_says(lent, f"was evicted for job {mine} of team owner")
    assert quotas.job(own).state == "RUNNING"
