"""Spares wait out of service, serve for broken nodes of a site with fixed machines, and go back."""

import pytest

from steward.model.action import DownNode, DrainNode, LaunchInstance, ReturnNode, TerminateInstance
from steward.model.case import CaseStep
from steward.model.ids import JobId
from steward.model.mark import SPARE
from steward.model.node import NodeBase
from steward.model.observed import Freshness
from steward.model.resume import JobMemory
from steward.model.setting_types import RepairMode
from steward.policy.draft import Draft
from steward.policy.job.exclude import LATE_KILL_S, told_again_until
from tests.builders.picture import ON, T0, USER, Picture, names
from tests.builders.site import (
    AGAIN_S,
    HOLD,
    a_site,
    actions,
    broken,
    case_of,
    free,
    lent,
    serving,
    taken_back,
    text_of,
)


def test_spares_in_service_are_held_with_one_mark() -> None:
    planned = a_site("s1", "s2", held=False).actions()
    assert [(type(a), a.mark) for a in planned if isinstance(a, DrainNode)] == [(DrainNode, SPARE)] * 2
    assert HOLD == "steward:spare:hold:pool"


def test_a_held_spare_is_left_as_it_is_and_is_no_orphan() -> None:
    decided = a_site("s1").plan()
    assert decided.actions == ()
    assert decided.events == ()


def test_a_spare_on_which_jobs_run_takes_no_more_of_them() -> None:
    assert actions(a_site("s1", held=False).node("s1", base=NodeBase.ALLOCATED)) == [(DrainNode, "s1")]


@pytest.mark.parametrize("reason", ["fan broken", "Action:Replce"])
def test_a_spare_that_somebody_else_took_out_is_not_touched(reason: str) -> None:
    assert a_site("s1").drained("s1", reason).actions() == []


@pytest.mark.parametrize("blind", ["report", "old list"])
def test_nothing_is_held_when_nodes_may_not_be_touched_or_loans_are_unknown(blind: str) -> None:
    picture = a_site("s1", held=False, mode=RepairMode.ACT if blind != "report" else RepairMode.REPORT)
    if blind == "old list":
        picture = picture.see(provider=Freshness.OLD)
    assert picture.actions() == []


def test_a_sound_spare_is_taken_for_a_broken_node_and_no_machine_is_ended() -> None:
    (action,) = broken(a_site("s1")).actions()
    assert isinstance(action, LaunchInstance)
    assert (action.slot.node, action.slot.instead_of, action.slot.group) == ("s1", "n2", "main")


def two_kinds(*spares: str) -> Picture:
    """n4 and s1 are of another partition than the other nodes and spares."""
    picture = a_site("s1", *spares, concurrent_min=2)
    for name in ("n4", "s1"):
        picture = picture.node(name, partitions=frozenset({"cpu", "all"}))
    return picture


def test_a_spare_of_another_partition_is_not_taken() -> None:
    assert actions(broken(two_kinds("s2"))) == [(LaunchInstance, "s2")]


def test_a_spare_that_shares_one_partition_is_taken() -> None:
    picture = two_kinds().node("n2", partitions=frozenset({"main", "all"}))
    assert actions(broken(picture)) == [(LaunchInstance, "s1")]


def test_an_older_case_that_cannot_use_a_spare_does_not_keep_it_from_another() -> None:
    picture = broken(broken(two_kinds("s2"), "n2").then(1), "n4")
    assert actions(picture) == [(LaunchInstance, "s1")]


def test_two_cases_never_choose_the_same_spare() -> None:
    """n2 is the older one; n4 could take either."""
    picture = two_kinds("s2").node("n4", partitions=frozenset({"cpu", "main"}))
    picture = picture.lost("n4", "n2").then().marked("n2").marked("n4")
    taken = [name for kind, name in actions(picture) if kind is LaunchInstance]
    assert sorted(taken) == ["s1", "s2"]


def test_the_spare_is_checked_before_it_serves() -> None:
    picture = lent(broken(a_site("s1")))
    assert case_of(picture).step is CaseStep.VERIFY
    checked = picture.checked("s1")
    assert actions(checked) == [(ReturnNode, "s1")]
    (action,) = checked.actions()
    assert isinstance(action, ReturnNode)
    assert action.mark == SPARE


def test_when_the_spare_serves_the_broken_node_is_left_to_a_person_with_our_mark() -> None:
    picture = serving(broken(a_site("s1")))
    case = case_of(picture)
    assert (case.step, case.stand_in, case.returned) == (CaseStep.HELD, "s1", picture.now - 1)
    assert picture.wait(3600).actions() == []


def test_explain_says_who_serves_and_what_a_person_is_to_do() -> None:
    picture = serving(broken(a_site("s1")))
    for part in ("Spare s1 serves in its place", "repair n2", "`scontrol update nodename=n2 state=resume`"):
        assert part in text_of(picture, "n2")
    assert "A spare that serves for n2" in text_of(picture, "s1")
    assert "we keep it out of service" in text_of(a_site("s1"), "s1")


def test_the_spare_goes_back_when_a_person_returns_the_mended_node() -> None:
    picture = serving(broken(a_site("s1")))
    picture = free(picture, "n2").agent("n2", connected=True, lost_at=None).then(1)
    assert case_of(picture).step is CaseStep.CLOSED
    assert actions(picture.then(6)) == [(TerminateInstance, "s1")]
    assert actions(taken_back(picture)) == [(DrainNode, "s1")]


@pytest.mark.long
def test_the_spare_goes_on_serving_while_an_admin_has_the_broken_node() -> None:
    picture = serving(broken(a_site("s1"))).down("n2", "ticket 4711: board").then(1)
    assert case_of(picture).step is CaseStep.CLOSED
    assert picture.wait(8 * 86400, every_s=600).actions() == []
    assert "spare s1 served" in text_of(picture, "n2")


def test_the_spare_goes_on_serving_when_the_returned_node_is_broken_still() -> None:
    picture = free(serving(broken(a_site("s1"))), "n2").lost("n2")
    assert actions(picture) == [(DownNode, "n2")]
    assert [kind for kind, _ in actions(picture.then(1)) if kind is TerminateInstance] == []


def test_a_spare_that_never_came_to_serve_goes_back_when_an_admin_takes_the_node() -> None:
    picture = lent(broken(a_site("s1"))).down("n2", "ticket 4711: board")
    assert actions(picture) == [(TerminateInstance, "s1")]


def test_a_job_keeps_off_the_mended_node_until_slurm_has_forgotten_its_lost_run() -> None:
    picture = serving(broken(a_site("s1"))).wait(3600)
    picture = free(picture, "n2").agent("n2", connected=True, lost_at=None).then(1)
    lost = JobMemory(id=JobId(7), uid=USER, mode=ON, opted_at=T0, restarts=1, excised=names("n2"))
    now = Draft(picture.seen, picture.want, picture.memory, picture.now)
    assert told_again_until(lost, now) == {"n2": picture.now - 1 + LATE_KILL_S}


def test_a_node_that_breaks_again_keeps_the_spare_that_serves_for_it() -> None:
    picture = serving(broken(a_site("s1", "s2"))).drained("n2", "Action:Replace", "FAIL").after(5)
    picture = picture.drained("n2", "Action:Replace", "FAIL").then().then(1)
    assert (case_of(picture).stand_in, case_of(picture).trigger.value) == ("s1", "admin")
    picture = picture.checked("s1").then(1)
    assert case_of(picture).step is CaseStep.HELD
    assert actions(picture.after(1)) == []


def test_a_broken_spare_that_serves_gets_a_spare_itself() -> None:
    picture = serving(broken(a_site("s1", "s2", breaker_min=3)))
    picture = broken(picture, "s1")
    assert actions(picture) == [(LaunchInstance, "s2")]


def test_a_spare_that_serves_for_a_spare_goes_back_when_that_one_is_needed_no_longer() -> None:
    picture = serving(broken(serving(broken(a_site("s1", "s2", breaker_min=3))), "s1"), "s2", "s1")
    mended = free(picture, "n2").agent("n2", connected=True, lost_at=None).then(AGAIN_S)
    assert actions(mended) == [(TerminateInstance, "s1")]
    assert actions(taken_back(mended)) == [(TerminateInstance, "s2")]
    assert actions(taken_back(taken_back(mended), "s2")) == [(DrainNode, "s2")]


def test_stood_in_nodes_do_not_trip_the_breaker() -> None:
    picture = serving(broken(serving(broken(a_site("s1", "s2"))), "n4"), "s2", "n4")
    assert (DownNode, "n5") in actions(picture.lost("n5"))
