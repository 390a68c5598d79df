"""Replica jobs of elastic runs under quotas: they borrow, and they go first."""

import pytest

from steward.model.accounting import Capabilities
from steward.model.action import MoveJob, SignalJob
from steward.model.elastic import replica_comment
from steward.model.ids import JobId
from tests.builders.quota import LISTS, WEAK
from tests.builders.quota_site import a_site, done, runs, settled, waits


@pytest.mark.parametrize(("can", "gpus"), [(LISTS, 2), (LISTS, 100), (WEAK, 2)])
def test_a_replica_of_an_elastic_run_only_borrows(can: Capabilities, gpus: int) -> None:
    """Also where its team's quota would cover it, and while it may not run."""
    replica = replica_comment(JobId(1), "abc")
    picture = waits(runs(a_site(can), 1, "a", 1), 2, "a", gpus, comment=replica)
    _, actions = done(picture)
    assert [(each.job, each.qos) for each in actions if isinstance(each, MoveJob)] == [(2, ("stw-a-b",))]


def test_replicas_of_elastic_runs_give_way_before_whole_jobs() -> None:
    replica = replica_comment(JobId(1), "abc")
    picture = runs(runs(a_site(WEAK), 1, "a", 4), 2, "a", 2, "b", "n2", started=1000.0, comment=replica)
    picture = settled(runs(picture, 3, "a", 2, "b", "n2", started=2000.0))
    _, actions = done(waits(picture, 4, "b", 2))
    assert [each.job for each in actions if isinstance(each, SignalJob)] == [2]
