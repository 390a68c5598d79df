"""Fixed machines that are lost: one that is there again and passes its checks serves again; a power cycle is tried
where the site has a command; what was never done is neither told nor counted as done."""

from dataclasses import replace

import pytest

from steward.model.action import LaunchInstance, RebootInstance, ReturnNode, TerminateInstance
from steward.model.case import CaseStep
from steward.model.health import Advice, Incarnation, Severity
from steward.model.ids import BootId, InstanceId
from steward.model.node import NodeBase
from steward.policy.draft import Draft
from steward.views.node_verdict import node_verdict
from tests.builders.picture import Picture, n
from tests.builders.site import AGAIN_S, a_site, actions, broken, case_of, free, serving, text_of

FRESH = Incarnation(instance=InstanceId("i-n2"), boot=BootId("boot-2"))


def held(**more: object) -> Picture:
    """Lost for a while, with nobody who could replace or reboot it."""
    picture = broken(a_site(**more)).then(1)  # type: ignore[arg-type]
    assert case_of(picture).step is CaseStep.HELD
    return picture.after(300)


def back(picture: Picture, who: Incarnation = FRESH) -> Picture:
    """It is there again, after a boot; Slurm has it down until somebody gives it back."""
    return picture.node("n2", responding=True, slurmd_started=picture.now).heard("n2").agent("n2", incarnation=who)


@pytest.mark.parametrize("boot", ["boot-2", "boot-n2"])
def test_a_lost_machine_that_is_there_again_is_checked_and_serves(boot: str) -> None:
    picture = back(held(), replace(FRESH, boot=BootId(boot))).then(1)
    assert case_of(picture).step is CaseStep.VERIFY
    picture = picture.checked("n2").then(1)
    assert (ReturnNode, "n2") in actions(picture.after(AGAIN_S))
    picture = free(picture, "n2").then(1).then(1)
    assert case_of(picture).step is CaseStep.CLOSED
    assert case_of(picture).returned is not None


def test_one_that_fails_its_check_is_left_to_a_person_until_the_check_passes() -> None:
    sick = back(held()).failing("n2", Severity.DEGRADED, event=False).then(1)
    assert case_of(sick).step is CaseStep.HELD
    well = sick.agent("n2", findings=()).then(1)
    assert case_of(well).step is CaseStep.VERIFY


def test_one_that_is_lost_again_and_again_is_left_to_a_person_who_is_told_why() -> None:
    picture = a_site()
    for _ in range(3):
        picture = back(broken(picture).then(1).after(300)).then(1)
        picture = free(picture.checked("n2").then(1), "n2").then(1).then(1)
        assert case_of(picture).step is CaseStep.CLOSED
        picture = picture.after(60)
    picture = back(broken(picture).then(1).after(300)).then(1)
    assert case_of(picture).step is CaseStep.HELD
    assert "n2 was lost 3 times in 7 days" in text_of(picture, "n2")


def test_where_a_spare_serves_meanwhile_it_does_until_the_machine_is_back() -> None:
    picture = serving(broken(a_site("s1"))).then(1)
    assert case_of(picture).step is CaseStep.HELD
    checking = back(picture.after(300)).then(1)
    assert case_of(checking).step is CaseStep.VERIFY
    assert (TerminateInstance, "s1") not in actions(checking.after(AGAIN_S))
    done = free(checking.checked("n2").then(1), "n2").then(1).then(1)
    assert case_of(done).step is CaseStep.CLOSED
    assert (TerminateInstance, "s1") in actions(done.after(AGAIN_S))


def test_one_that_comes_back_while_a_spare_is_looked_for_takes_none() -> None:
    picture = broken(a_site("s1").node("s1", responding=False)).then(1).then(1)
    assert case_of(picture).step is CaseStep.LAUNCH
    picture = back(picture.after(60)).then(1)
    assert case_of(picture).step is CaseStep.VERIFY
    assert not [action for action in picture.plan().actions if isinstance(action, LaunchInstance)]


def test_a_lost_machine_is_power_cycled_where_the_site_has_a_command() -> None:
    picture = broken(a_site(reboots=True)).then(1)
    assert case_of(picture).rung is Advice.REBOOT
    [reboot] = [action for action in picture.after(AGAIN_S).plan().actions if isinstance(action, RebootInstance)]
    assert reboot.instance == "static-n2"
    picture = back(picture.after(60)).then(1)
    picture = picture.checked("n2").then(1)
    assert (ReturnNode, "n2") in actions(picture.after(AGAIN_S))


def test_a_power_cycle_that_does_not_help_is_left_to_a_person_and_the_machine_may_still_come() -> None:
    picture = broken(a_site(reboots=True, launch_timeout_s=100)).then(1).wait(101)
    assert case_of(picture).step is CaseStep.HELD
    assert case_of(back(picture.after(60)).then(1)).step is CaseStep.VERIFY


def test_a_reboot_that_was_never_done_is_not_counted_and_not_told_as_done() -> None:
    picture = broken(a_site(reboots=True, launch_timeout_s=3600)).then(1)
    told = list[str]()
    for _ in range(12):
        told += [event.text for event in picture.plan().events]
        asked = [action for action in picture.plan().actions if isinstance(action, RebootInstance)]
        failures = {action.key: "n2 was not rebooted: rc 1" for action in asked}
        picture = picture.then(1.0)
        picture = picture.see(failures={**picture.seen.failures, **failures}).after(61)
    assert case_of(picture).step is CaseStep.HELD
    assert "n2: launch -> launch: the reboot could not be carried out" in told
    assert not any("did not help" in text for text in told)
    assert picture.memory.remedies == {}
    assert picture.memory.history == {}


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("Action:Reboot", "its provider has no command that reboots a machine: reboot n2 by hand, then give it back"),
        ("Action:Replace", "its machine is fixed and no spare is named for it: repair n2 by hand, then give it back"),
    ],
)
def test_an_admins_command_that_nobody_can_carry_out_is_refused_at_once(command: str, why: str) -> None:
    picture = a_site().drained("n2", command, "FAIL")
    plan = picture.plan()
    told = [event.text for event in plan.events if event.kind == "case.withheld"]
    assert told == [f"n2: would be repaired (an admin asked for {command}), but {why}"]
    assert not plan.memory.cases
    assert picture.seen.nodes[n("n2")].base is NodeBase.DOWN or not plan.actions


@pytest.mark.parametrize(
    ("site", "offered"),
    [
        (a_site(), ""),
        (a_site(reboots=True), ", or reason=Action:Reboot"),
        (a_site("s1"), ", or reason=Action:Replace"),
        (a_site("s1").node("s1", partitions=frozenset({"other"})).node("n2", partitions=frozenset({"main"})), ""),
    ],
)
def test_a_person_is_offered_only_what_can_be_carried_out_there(site: Picture, offered: str) -> None:
    picture = broken(site).then(1)
    [case] = picture.memory.cases.values()
    picture = replace(picture, memory=replace(picture.memory, cases={case.id: replace(case, step=CaseStep.HELD)}))
    resume = "`scontrol update nodename=n2 state=resume`"
    assert f"Waits for a person: {resume}{offered}." in text_of(picture, "n2")
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    assert node_verdict(n("n2"), draft).next == f"a person looks at it, then {resume}{offered}"


def test_a_finding_whose_advice_is_a_reboot_goes_on_to_the_next_rung_where_nobody_can_do_it() -> None:
    picture = a_site("s1").failing("n2", advice=Advice.REBOOT).then().marked("n2").then(1)
    assert case_of(picture).rung is Advice.REPLACE
    assert (LaunchInstance, "s1") in actions(picture.after(AGAIN_S))
