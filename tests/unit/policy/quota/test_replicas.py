"""Replica jobs of elastic runs under quotas: they borrow, and they go first."""

import pytest

from steward.model.accounting import Capabilities
from steward.model.action import CancelJob, MoveJob, SetQos, SignalJob
from steward.model.elastic import replica_comment
from steward.model.ids import JobId
from tests.builders.quota import LISTS, MARKS, WEAK
from tests.builders.quota_site import a_site, borrowed_and_wanted_back, done, runs, settled, waits

REPLICA = replica_comment(JobId(9), "r1")


@pytest.mark.parametrize(("can", "gpus"), [(LISTS, 2), (LISTS, 100), (WEAK, 2)])
def test_a_replica_of_an_elastic_run_only_borrows(can: Capabilities, gpus: int) -> None:
    """Also where its team's quota would cover it, and while it may not run."""
    picture = waits(runs(a_site(can), 1, "a", 1), 2, "a", gpus, comment=REPLICA)
    _, actions = done(picture)
    assert [(each.job, each.qos) for each in actions if isinstance(each, MoveJob)] == [(2, ("stw-a-b",))]


def test_replicas_of_elastic_runs_are_evicted_before_whole_jobs() -> None:
    picture = runs(runs(a_site(WEAK), 1, "a", 4), 2, "a", 2, "b", "n2", started=1000.0, comment=REPLICA)
    picture = settled(runs(picture, 3, "a", 2, "b", "n2", started=2000.0))
    _, actions = done(waits(picture, 4, "b", 2))
    assert [each.job for each in actions if isinstance(each, SignalJob)] == [2]


def test_a_replica_is_evicted_before_a_newer_whole_job() -> None:
    picture = borrowed_and_wanted_back(WEAK).change_job(2, comment=REPLICA, requeue=False)
    picture, actions = done(picture)
    assert [(type(each), getattr(each, "job", None)) for each in actions if not isinstance(each, SetQos)] == [
        (SignalJob, 2)
    ]
    later = picture.after(61).plan().actions
    assert [each.job for each in later if isinstance(each, CancelJob)] == [2]


@pytest.mark.parametrize("can", [LISTS, MARKS, WEAK])
def test_a_replica_waits_as_borrowed_although_its_quota_would_cover_it(can: Capabilities) -> None:
    picture = waits(a_site(can), 4, "a", 2, comment=REPLICA)
    _, actions = done(picture)
    assert [each.qos for each in actions if isinstance(each, MoveJob)] == [("stw-a-b",)]
    quiet = waits(a_site(can), 4, "a", 2, comment=REPLICA, qos="stw-a-b")
    assert [each for each in done(quiet)[1] if isinstance(each, MoveJob)] == []
