"""Want of spares, spares that are no good, and the rungs before them: reboots of fixed machines."""

import pytest

from steward.model.action import LaunchInstance, RebootInstance, ReturnNode, TerminateInstance
from steward.model.case import CaseStep
from steward.model.health import Advice, Incarnation, Severity
from steward.model.ids import BootId, InstanceId
from steward.model.instance import InstanceState
from tests.builders.picture import Picture
from tests.builders.site import AGAIN_S, HOLD, a_site, actions, broken, case_of, lent, machine, serving, text_of


def test_without_a_free_spare_capacity_is_told_to_be_wanting_with_growing_patience() -> None:
    picture = a_site("s1", breaker_min=9)
    picture = broken(serving(broken(picture)), "n4").then(1)
    waits = []
    for _ in range(4):
        waits.append(round(case_of(picture, "n4").next_try - picture.now) + 1)
        assert picture.actions() == []
        picture = picture.after(waits[-1]).then(1)
    assert waits == [60, 120, 300, 600]
    assert "waits for a spare; capacity: no spare is free (s1 serves for n2)" in text_of(picture, "n4")


def test_the_first_want_is_an_event() -> None:
    picture = a_site("s1").drained("s1", "mine").lost("n2").then().marked("n2")
    told = [e.text for _ in range(1) for e in (*picture.plan().events, *picture.then(1).plan().events)]
    assert "n2: capacity: no spare is free (s1 is out of service, but not by Steward); again in 60 s" in told


def test_a_spare_that_becomes_free_is_taken_at_once() -> None:
    picture = broken(a_site("s1").drained("s1", "mine")).after(3)
    assert picture.actions() == []
    assert actions(picture.drained("s1", HOLD)) == [(LaunchInstance, "s1")]


@pytest.mark.parametrize("ill", ["no agent", "check", "off", "Slurm"])
def test_an_unsound_spare_is_passed_over(ill: str) -> None:
    picture = broken(a_site("s1", "s2"))
    if ill == "no agent":
        picture = picture.agent("s1", connected=False)
    elif ill == "check":
        picture = picture.failing("s1", Severity.DEGRADED, event=False)
    elif ill == "off":
        off = machine("s1", state=InstanceState.STOPPED)
        picture = picture.see(instances={**picture.seen.instances, off.id: off})
    else:
        picture = picture.node("s1", responding=False)
    assert (LaunchInstance, "s2") in actions(picture)


def test_two_broken_nodes_ask_for_two_spares() -> None:
    picture = a_site("s1", "s2", concurrent_min=2).lost("n2", "n4").then().marked("n2").marked("n4")
    assert actions(picture) == [(LaunchInstance, "s1"), (LaunchInstance, "s2")]


def test_a_spare_that_fails_its_verification_is_given_up_for_another() -> None:
    picture = lent(broken(a_site("s1", "s2", verify_timeout_s=20.0))).failing("s1", Severity.SUSPECT)
    picture = picture.agent("s1", findings=()).wait(21)
    assert case_of(picture).launches == 1
    assert case_of(picture).stand_in is None
    planned = actions(picture.after(AGAIN_S))
    assert (TerminateInstance, "s1") in planned
    assert (LaunchInstance, "s2") in planned


def test_a_spare_that_slurm_does_not_take_back_stands_in_for_nobody() -> None:
    picture = lent(broken(a_site("s1"))).checked("s1").wait(61)
    assert (case_of(picture).step, case_of(picture).stand_in) == (CaseStep.HELD, None)
    assert (TerminateInstance, "s1") in actions(picture.after(AGAIN_S))


def test_a_spare_that_an_admin_takes_meanwhile_is_given_up() -> None:
    picture = lent(broken(a_site("s1", "s2"))).drained("s1", "mine").then(1)
    assert case_of(picture).launches == 1


@pytest.mark.parametrize("spares", [(), ("s1",)])
def test_where_no_spare_can_be_hoped_for_a_person_is_asked_at_once(spares: tuple[str, ...]) -> None:
    name = spares[0] if spares else "n2"
    picture = broken(a_site(*spares), name).then(1)
    assert case_of(picture, name).step is CaseStep.HELD
    assert picture.actions() == []


def test_where_each_spare_is_of_another_partition_a_person_is_asked_at_once() -> None:
    picture = broken(a_site("s1").node("s1", partitions=frozenset({"cpu"}))).then(1)
    assert case_of(picture).step is CaseStep.HELD
    assert picture.actions() == []


def test_a_spare_of_another_partition_is_told_while_the_fitting_one_is_awaited() -> None:
    picture = a_site("s1", "s2").node("s1", partitions=frozenset({"cpu"})).drained("s2", "mine")
    told = text_of(broken(picture).then(1), "n2")
    assert "s1 shares no partition with n2; s2 is out of service, but not by Steward" in told


def rebooting() -> Picture:
    return a_site("s1", reboots=True).failing("n2", advice=Advice.REBOOT).then().marked("n2")


def test_a_reboot_is_asked_of_the_machine_behind_the_node() -> None:
    (action,) = rebooting().actions()
    assert isinstance(action, RebootInstance)
    assert action.instance == "static-n2"


def test_a_rebooted_node_returns_under_its_own_name() -> None:
    picture = rebooting().then(1)
    who = Incarnation(instance=InstanceId("i-n2"), boot=BootId("boot-2"))
    picture = picture.agent("n2", incarnation=who, findings=()).then(1)
    picture = picture.checked("n2").node("n2", slurmd_started=picture.now)
    assert actions(picture) == [(ReturnNode, "n2")]


def test_a_reboot_that_does_not_help_takes_a_spare() -> None:
    picture = rebooting().repair(launch_timeout_s=100).wait(101)
    assert (LaunchInstance, "s1") in actions(picture.after(AGAIN_S))


def test_an_admin_reboots_the_mended_node_and_the_spare_goes_back() -> None:
    picture = serving(broken(a_site("s1", reboots=True))).after(10)
    picture = picture.drained("n2", "Action:Reboot", "FAIL").then().then(1)
    assert case_of(picture).rung is Advice.REBOOT
    assert case_of(picture).stand_in is None
    assert not [a for a in picture.plan().actions if isinstance(a, TerminateInstance)]


def test_a_machine_that_its_site_calls_off_is_lost_by_two_witnesses() -> None:
    off = machine("n2", state=InstanceState.STOPPED)
    picture = a_site("s1").agent_lost("n2")
    assert not case_opened(picture)
    assert case_opened(picture.see(instances={**picture.seen.instances, off.id: off}))


def case_opened(picture: Picture) -> bool:
    return any(event.kind == "case.opened" for event in picture.plan().events)
