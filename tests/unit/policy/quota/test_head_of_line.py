"""A demand that cannot be met now holds nobody up, and ends nobody's job; what can be met takes what it needs."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.accounting import Capabilities
from steward.model.action import RequeueJob, SignalJob
from steward.model.fit import Fit, FitState, Question
from steward.model.ids import JobId, NodeName
from steward.policy.draft import Draft
from steward.policy.quota.decide import UnitRuling
from steward.policy.quota.turn import take_turn
from tests.builders.picture import Picture
from tests.builders.quota import LISTS, MARKS, WEAK
from tests.builders.quota_site import a_site, done, limited, own, runs, settled, waits, with_partition
from tests.builders.want import but

CANS = pytest.mark.parametrize("can", [LISTS, MARKS, WEAK], ids=["lists", "marks", "weak"])


def told_to_go(picture: Picture) -> list[int]:
    """By us, or left to Slurm."""
    picture, _ = done(picture)
    return sorted(id for id, memory in picture.memory.quota_jobs.items() if memory.yielding)


def rulings(picture: Picture) -> dict[int, UnitRuling]:
    turn = take_turn(Draft(picture.seen, picture.want, picture.memory, picture.now))
    assert turn is not None
    return {int(id): ruling for id, ruling in turn.rulings.items()}


def busy(can: Capabilities) -> Picture:
    """Four machines. Vision runs twelve jobs of one GPU on three, eight of them borrowed; speech has the fourth."""
    site = a_site(can, own("robots", 4), own("speech", 8), own("vision", 4), machines=4)
    for id in range(1, 13):
        end = "g" if id <= 4 else "b"
        site = runs(site, id, "vision", 1, end, f"n{(id - 1) // 4 + 1}", started=1000.0 * id)
    return settled(runs(site, 20, "speech", 4, on="n4"))


@CANS
def test_a_job_that_fits_nowhere_does_not_hold_up_its_team(can: Capabilities) -> None:
    """A job of four nodes, then one of one GPU and one of two."""
    site = waits(busy(can), 31, "robots", 4, node_count=4, reason="Resources")
    site = waits(waits(site, 32, "robots", 1, reason="Priority"), 33, "robots", 2, reason="Priority")
    found = rulings(site)
    assert {id: (found[id].may_run, found[id].hopeless) for id in found} == {
        31: (True, True), 32: (True, False), 33: (True, False),
    }  # fmt: skip
    assert len(told_to_go(site)) == 3


def test_a_team_whose_jobs_start_in_order_waits_for_the_first() -> None:
    site = busy(WEAK)
    site = replace(site, want=replace(site.want, quota=but(site.want.quota, strict=["robots"])))
    site = waits(waits(site, 31, "robots", 4, node_count=4, reason="Resources"), 32, "robots", 1, reason="Priority")
    assert not rulings(site)[32].may_run
    assert told_to_go(site) == []


def test_a_job_that_another_limit_holds_up_does_not_hold_up_its_team() -> None:
    site = limited(waits(busy(WEAK), 31, "robots", 4, reason="QOSGrpGRES"))
    site = waits(site, 32, "robots", 1, reason="Resources")
    assert rulings(site)[32].may_run
    assert len(told_to_go(site)) == 1


@pytest.mark.parametrize("reason", ["Resources", "QOSGrpGRES"])
def test_what_a_hopeless_borrower_cannot_use_is_lent_to_others(reason: str) -> None:
    """Two GPUs are free on each of two machines, and the others there are owned."""
    site = a_site(WEAK, own("a", 4), own("b", 2), own("c", 2))
    site = settled(runs(runs(site, 1, "a", 2, on="n1"), 2, "a", 2, on="n2"))
    site = waits(waits(limited(site), 3, "b", 4, reason=reason), 4, "c", 2, reason="QOSGrpGRES")
    site = waits(site, 5, "c", 2, reason="QOSGrpGRES")
    found = rulings(site)
    assert (found[3].may_run, found[3].hopeless) == (False, True)
    assert (found[4].may_run, found[5].may_run) == (True, True)


@CANS
@pytest.mark.parametrize("reason", ["Resources", "QOSGrpGRES"])
def test_an_owner_gets_a_node_though_a_limit_that_has_room_is_its_reason(can: Capabilities, reason: str) -> None:
    """Four GPUs are free in all; the borrowed one on the second machine keeps it from having four on one."""
    site = with_partition(a_site(can, own("a", 2), own("b", 6)))
    site = runs(runs(site, 1, "a", 2), 2, "a", 1, "b", started=1000.0)
    site = settled(runs(site, 3, "a", 1, "b", "n2", started=900.0))
    assert told_to_go(waits(site, 9, "b", 4, reason=reason)) == [3]


SHAPES: dict[str, dict[str, Any]] = {
    "a node full of owned jobs": {"required": frozenset({NodeName("n4")})},
    "that and another": {"required": frozenset({NodeName("n4"), NodeName("n1")}), "node_count": 2},
    "all nodes but owned ones excluded": {"excluded": frozenset(map(NodeName, ("n1", "n2", "n3")))},
    "a feature of no node": {"features": "big"},
    "one of all and one of no node": {"features": "ml.g6.12xlarge&big"},
    "another type of GPU": {"requested": "cpu=1,mem=1G,node=1,gres/gpu=1,gres/gpu:h100=1"},
    "more on a node than there is": {"requested": "cpu=49,mem=1G,node=1,gres/gpu=1,gres/gpu:l4=1"},
}


@CANS
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_nobody_is_ended_for_a_job_that_would_not_start_all_the_same(can: Capabilities, shape: dict[str, Any]) -> None:
    site = waits(busy(can), 31, "robots", 1, reason="Resources").change_job(31, **shape)
    assert told_to_go(site) == []
    assert told_to_go(site.change_job(31, reason="None")) == []


def test_an_exclusive_job_gets_a_machine_of_its_own() -> None:
    """On n1 four owned jobs run, on n2 and n3 four borrowed ones each."""
    site = waits(busy(WEAK), 31, "robots", 1, exclusive=True, reason="Resources")
    assert told_to_go(site) == [9, 10, 11, 12]
    assert told_to_go(site.change_job(31, required=frozenset({NodeName("n1")}))) == []
    assert told_to_go(site.change_job(31, required=frozenset({NodeName("n2")}))) == [5, 6, 7, 8]


def test_a_job_of_a_total_takes_it_where_it_may_run() -> None:
    total = {"is_total": True, "reason": "Resources"}
    assert len(told_to_go(waits(busy(WEAK), 31, "robots", 4, **total))) == 4
    at_n2 = {**total, "excluded": frozenset(map(NodeName, ("n1", "n3", "n4")))}
    assert told_to_go(waits(busy(WEAK), 31, "robots", 3, **at_n2)) == [6, 7, 8]
    only = {**total, "excluded": frozenset(map(NodeName, ("n2", "n3", "n4")))}
    assert told_to_go(waits(busy(WEAK), 31, "robots", 3, **only)) == []


def in_debt() -> Picture:
    """Vision has all machines, four GPUs more than all teams lend together."""
    site = a_site(WEAK, own("robots", 4), own("speech", 4), own("vision", 4), machines=4)
    for id in range(1, 17):
        site = runs(site, id, "vision", 1, "g" if id <= 4 else "b", f"n{(id - 1) // 4 + 1}", started=1000.0 * id)
    return settled(site)


def test_an_old_debt_is_no_reason_to_end_more_jobs_than_the_owner_needs() -> None:
    assert told_to_go(waits(in_debt(), 31, "robots", 1)) == [16]
    assert told_to_go(waits(in_debt(), 31, "robots", 3, reason="Resources")) == [14, 15, 16]


def test_the_reason_is_what_the_job_needs() -> None:
    picture, actions = done(waits(in_debt(), 31, "robots", 3, reason="Resources"))
    assert {each.job for each in actions if isinstance(each, SignalJob | RequeueJob)} == {14, 15, 16}
    texts = {memory.evictions[-1].text for memory in picture.memory.quota_jobs.values()}
    assert all("lacks 3 GPUs of ml.g6.12xlarge, of which vision" in text for text in texts)
    site = waits(busy(WEAK), 31, "robots", 3, required=frozenset({NodeName("n2")}), reason="Resources")
    picture, _ = done(runs(site.change_job(12, nodes=frozenset()), 12, "vision", 1, "b", "n3"))
    assert sorted(picture.memory.quota_jobs) == [6, 7, 8]


@pytest.mark.parametrize(("state", "gone"), [(FitState.NEVER, 0), (FitState.LATER, 1), (FitState.UNKNOWN, 1)])
def test_slurm_is_asked_before_anybody_has_to_go(state: FitState, gone: int) -> None:
    """It may know what we do not: licenses, switches, GPUs that are bound to sockets."""
    site = waits(busy(WEAK), 31, "robots", 1, reason="Resources")
    (question,) = site.plan().questions
    assert question == Question(job=JobId(31), without=frozenset(map(NodeName, ("n1", "n2", "n4"))))
    assert len(told_to_go(site.see(fits={question: Fit(state=state, at=site.now)}))) == gone
