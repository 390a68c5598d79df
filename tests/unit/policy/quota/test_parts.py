"""Heterogeneous jobs: Slurm keeps nodes for the first of its parts from now on, though the others find none."""

from typing import Any

import pytest

from steward.model.accounting import Capabilities
from steward.model.action import MoveJob, NudgeJob
from steward.model.job import JobState
from steward.model.quota import Strategy
from tests.builders.picture import Picture, names
from tests.builders.quota import MARKS, WEAK, tres
from tests.builders.quota_lent import BEHIND, FIRST, SECOND, gone_in, of_two_parts, one_node_free, one_node_lent
from tests.builders.quota_site import a_site, done, own, runs, settled, waits


@pytest.mark.parametrize(
    ("first", "behind", "gone"),
    [
        ({}, {}, set()),
        ({}, {"gpus": 4}, set()),
        ({}, {"priority": 10}, {3}),
        ({"reason": "JobHeldUser"}, {}, {3}),
        ({"reason": "Dependency"}, {}, {3}),
        ({"partition": "other"}, {}, {3}),
        ({"first": 3}, {}, {3}),
        ({"first": 3}, {"gpus": 4}, set()),
        ({"excluded": names("n2")}, {}, {3}),
    ],
    ids=["both", "a node", "first", "held", "not ready", "partition", "too large", "not for a node", "elsewhere"],
)
def test_nobody_goes_where_slurm_would_keep_what_is_freed_for_a_part_of_a_job_that_comes_first(
    first: dict[str, Any], behind: dict[str, Any], gone: set[int]
) -> None:
    """Seen on 22.05: a borrower went, and Slurm kept the node for a part of a job that waits for another node."""
    site = of_two_parts(one_node_lent(), "b", **first)
    behind = {"priority": 5, "reason": "Priority", **behind}
    assert gone_in(waits(site, BEHIND, "b", behind.pop("gpus", 2), **behind), 2) == gone


def test_a_job_behind_such_a_one_gets_another_node_than_that_which_slurm_may_keep() -> None:
    """n4 has room for it already, and Slurm keeps it for the part."""
    site = one_node_lent(machines=4).change_job(6, requested=tres(1), allocated=tres(1))
    site = of_two_parts(site, "b", second=4, required=names("n1"))
    site = site.change_job(FIRST, required=frozenset(), planned=names("n4"), started=site.now)
    assert gone_in(waits(site, BEHIND, "b", 1, priority=5, reason="Priority"), 2) == {3}


@pytest.mark.parametrize("can", [WEAK, MARKS], ids=["weak", "marks"])
def test_a_job_in_parts_borrows_only_where_all_of_its_parts_find_nodes(can: Capabilities) -> None:
    """Slurm would keep a node for one of them, which no owner could use then."""
    waiting = of_two_parts(one_node_free(can), "a")
    assert [each.qos for each in done(waiting)[1] if isinstance(each, MoveJob)] == [("stw-a-b",)] * 2, "none kept in g"
    assert borrowed_limit(settled(waiting), "a") == 0
    both = settled(waiting.change_job(2, state=JobState.COMPLETED, nodes=frozenset(), ended=waiting.now))
    assert borrowed_limit(both, "a") == 2


def borrowed_limit(picture: Picture, team: str) -> int:
    assert picture.seen.accounting is not None
    return picture.seen.accounting.qos[f"stw-{team}-b"].limits["gres/gpu"]


def test_a_job_in_parts_that_its_quota_does_not_cover_stays_where_its_team_may_not_borrow() -> None:
    lends = own("a", 4, strategy=Strategy.LEND, borrow_absolute=())
    site = settled(runs(a_site(WEAK, lends, own("b", 4)), 1, "a", 3))
    assert not [each for each in done(of_two_parts(site, "a"))[1] if isinstance(each, MoveJob)]


@pytest.mark.parametrize(
    ("first", "second", "nudged"),
    [
        ({"reason": "BeginTime"}, {}, {FIRST}),
        ({"reason": "BeginTime"}, {"reason": "BeginTime"}, set()),
        ({"reason": "JobHeldUser"}, {}, set()),
        ({"reason": "BeginTime", "submitted": -10.0, "eligible": 50.0}, {}, set()),
        ({"reason": "BeginTime", "eligible": 1000.0}, {}, set()),
    ],
    ids=["a part that was taken back", "both begin later", "held", "as its user asked", "much later"],
)
def test_a_job_of_which_a_part_could_not_start_does_not_wait_for_slurms_two_minutes(
    first: dict[str, float | str], second: dict[str, str], nudged: set[int]
) -> None:
    """Seen on 26.05: Slurm took back the part that it had started, and borrowers had gone for it in vain. Times here
    are from now on."""
    site = one_node_free()
    given = {"eligible": 120.0, "submitted": -300.0, **first}
    times = {name: site.now + float(at) for name, at in given.items() if name != "reason"}
    site = of_two_parts(site, "b", submitted=site.now - 300.0, eligible=site.now - 300.0)
    site = site.change_job(FIRST, **{**first, **times}).change_job(SECOND, **second)
    if second:
        site = site.change_job(SECOND, **times)
    site = done(site)[0].after(1.0)
    assert {each.job for each in site.plan().actions if isinstance(each, NudgeJob)} == nudged
