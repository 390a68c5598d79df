"""New jobs at which Slurm's backfill has not looked yet: no job is evicted for what they may take or keep."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.accounting import Capabilities
from steward.model.action import SignalJob
from steward.model.ids import JobId
from tests.builders.picture import Picture, n
from tests.builders.quota import WEAK
from tests.builders.quota_lent import NEW, all_lent, beside_a_new_job, gone_in
from tests.builders.quota_site import a_site, done, own, runs, settled, waits


def behind_a_new_job(can: Capabilities = WEAK, first: dict[str, Any] | None = None, **second: Any) -> Picture:
    """The same job 8 came now, and backfill, which looks every 30 s, has not planned it."""
    site = all_lent(replace(can, backfill_s=30.0))
    new = {"node_count": 2, "priority": 5, "reason": "Resources", "eligible": site.now, **(first or {})}
    account = new.pop("account", "b")
    site = waits(site, 8, "b", 2, **new).change_job(8, account=account)
    return waits(site, 9, "b", 2, **{"priority": 5, "reason": "Priority", "time_limit_s": 600.0, **second})


@pytest.mark.parametrize(
    ("first", "second", "gone"),
    [
        ({}, {}, set()),
        ({}, {"time_limit_s": None}, set()),
        ({"reason": "Priority"}, {}, set()),
        ({"account": "other", "qos": "normal"}, {}, set()),
        ({"account": "other", "qos": "normal", "reason": "AssocGrpGRES"}, {}, {3}),
        ({}, {"priority": 7}, {3}),
        ({"eligible": 1.0}, {}, {3}),
        ({"partition": "other"}, {}, {3}),
        ({"required": frozenset({n("n1")}), "node_count": 1}, {}, {3}),
    ],
    ids=["new", "endless", "not looked at", "of no team", "limited", "comes later", "old", "partition", "other nodes"],
)
def test_nobody_is_evicted_behind_a_new_job_without_room_until_backfill_has_planned_it(
    first: dict[str, Any], second: dict[str, Any], gone: set[int]
) -> None:
    assert gone_in(behind_a_new_job(WEAK, first, **second), 2) == gone


def test_an_owner_waits_for_the_plan_of_a_job_that_comes_first_no_longer_than_one_round_of_backfill() -> None:
    """It ends sooner where the plan is read sooner."""
    site = behind_a_new_job()
    assert gone_in(site, 12) == set()
    assert gone_in(site, 20) == {3}
    plan = {"planned": frozenset({n("n1"), n("n2")}), "started": site.now + 3600.0}
    assert gone_in(site.change_job(8, **plan), 2) == {3}


@pytest.mark.parametrize(
    ("second", "gone"),
    [
        ({}, set()),
        ({"reason": "None"}, set()),
        ({"reason": "Resources"}, {2}),
        ({"time_limit_s": 400 * 86400.0}, {2}),
        ({"eligible": 1.0}, {2}),
        ({"excluded": frozenset({n("n2")})}, {2}),
        ({"priority": 7}, {2}),
    ],
    ids=["shorter", "not looked at", "no room", "longer", "old", "other nodes", "first"],
)
def test_nobody_is_evicted_where_a_new_job_may_take_what_is_free_until_backfill_has_looked_at_it(
    second: dict[str, Any], gone: set[int]
) -> None:
    """Seen on 22.05: it began there within the grace, and the owner's job had no room when the borrower was gone."""
    assert gone_in(beside_a_new_job(**second), 2) == gone


def test_a_new_job_that_has_no_room_on_what_is_free_takes_nothing() -> None:
    assert gone_in(beside_a_new_job().change_job(9, requested="cpu=2,mem=2G,node=1,gres/gpu=2,gres/gpu:l4=2"), 2) == {2}


def two_nodes_beside_a_smaller_job(**smaller: Any) -> Picture:
    """Team a borrowed half of each node, job by job. Job 8 wants a GPU, job 9 came after it and wants one on each."""
    site = a_site(replace(WEAK, backfill_s=30.0), own("a", 0), own("b", 4), own("c", 4))
    for id, node in ((1, "n1"), (2, "n1"), (3, "n2"), (4, "n2")):
        site = runs(site, id, "a", 2, "b", node)
    new = {"priority": 5, "reason": "Resources", "eligible": settled(site).now}
    site = waits(settled(site), 8, "c", 1, **{**new, **smaller})
    parts = [waits(site, 9, "b", 1, **new, het_job_id=JobId(9))]
    return waits(parts[0], 10, "b", 1, **new, het_job_id=JobId(9))


def test_nobody_is_evicted_for_a_job_on_several_nodes_until_new_smaller_ones_have_started() -> None:
    """Seen on 22.05: three of them began together on a node that was freed for a part of it."""
    assert len(gone_in(two_nodes_beside_a_smaller_job(), 2)) == 1
    assert len(gone_in(two_nodes_beside_a_smaller_job(eligible=1.0), 2)) == 2
    assert len(gone_in(two_nodes_beside_a_smaller_job(), 20)) == 2


def test_an_owner_waits_for_new_jobs_no_longer_than_one_round_of_backfill_however_many_come() -> None:
    site = beside_a_new_job()
    assert gone_in(site, 12) == set()
    gone = set[int]()
    for id in range(10, 18):
        site, actions = done(site.after(4.0))
        gone |= {each.job for each in actions if isinstance(each, SignalJob)}
        site = waits(site, id, "b", 1, **NEW, eligible=site.now)
    assert gone == {2}


def test_a_job_behind_new_jobs_that_get_room_waits_for_no_plan() -> None:
    site = all_lent(replace(WEAK, backfill_s=30.0))
    for id in (8, 9):
        site = waits(site, id, "b", 2, reason="Priority", eligible=site.now, priority=5)
    assert gone_in(site, 2) == {2, 3}
