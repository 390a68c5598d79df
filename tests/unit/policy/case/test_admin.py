"""`Action:Replace` and `Action:Reboot` are commands; nearly is not, and everything else is hands off."""

from dataclasses import replace

import pytest

from steward.model.action import DownNode, DrainNode, RebootInstance, ReturnNode, TerminateInstance
from steward.model.case import CaseStep, Trigger
from steward.model.health import Incarnation, Severity
from steward.model.ids import BootId, InstanceId
from steward.model.node import NodeBase
from steward.model.setting_types import RepairMode
from steward.policy.controls import pause, resume_actions
from tests.builders.picture import Picture, a_cluster, action_types


def steps(picture: Picture) -> list[tuple[Trigger, CaseStep]]:
    return [(case.trigger, case.step) for case in picture.then().memory.cases.values()]


@pytest.mark.parametrize("flag", ["FAIL", "DRAIN"])
@pytest.mark.parametrize("reason", ["Action:Replace", "Action:Replace : Not responding"])
def test_a_command_replaces_the_node(flag: str, reason: str) -> None:
    assert action_types(a_cluster().drained("n2", reason, flag).plan()) == [TerminateInstance]


def test_a_command_reboots_the_node() -> None:
    assert action_types(a_cluster().drained("n2", "Action:Reboot", "FAIL").plan()) == [RebootInstance]


def test_the_admins_reason_is_neither_overwritten_nor_a_hindrance_to_the_return() -> None:
    picture = a_cluster().drained("n2", "Action:Reboot", "FAIL").then(1)
    again = Incarnation(instance=InstanceId("i-n2"), boot=BootId("boot-2"))
    picture = picture.agent("n2", incarnation=again).then(1).checked("n2")
    actions = picture.node("n2", slurmd_started=picture.now).actions()
    assert [type(action) for action in actions] == [ReturnNode]
    assert isinstance(actions[0], ReturnNode)
    assert actions[0].command == "Action:Reboot"


def test_a_commanded_repair_waits_for_the_jobs_on_the_node() -> None:
    picture = a_cluster().drained("n2", "Action:Replace", "FAIL")
    busy = picture.node("n2", flags=frozenset({"FAIL", "COMPLETING"}))
    assert steps(busy) == [(Trigger.ADMIN, CaseStep.RELEASE)]


def held_beside_another() -> Picture:
    """The repair of n2 that an admin asked for waits for a person, and that of n3 for its job."""
    picture = a_cluster(20, concurrent_min=5).drained("n2", "Action:Replace", "FAIL").then(1)
    [case] = picture.memory.cases.values()
    held = replace(case, step=CaseStep.HELD, entered=picture.now)
    picture = replace(picture, memory=replace(picture.memory, cases={case.id: held}))
    picture = picture.job(9, on=("n3",)).node("n3", base=NodeBase.MIXED).failing("n3", Severity.DEGRADED, check="gpu")
    return picture.then().marked("n3").node("n3", base=NodeBase.MIXED).then(1).wait(300).after(60)


@pytest.mark.parametrize("meanwhile", ["acts", "is paused", "only reports", "is away"])
def test_a_command_that_is_given_again_on_a_held_node_is_carried_out_whatever_the_head_did(meanwhile: str) -> None:
    picture = held_beside_another()
    if meanwhile == "is paused":
        picture = replace(picture, memory=pause(picture.memory))
    elif meanwhile == "only reports":
        picture = picture.repair(mode=RepairMode.REPORT)
    picture = picture.drained("n2", "Action:Replace", "FAIL")
    picture = picture.after(840) if meanwhile == "is away" else picture.wait(840)
    if meanwhile == "is paused":
        picture = replace(picture, memory=resume_actions(picture.memory, picture.now))
    picture = picture.repair(mode=RepairMode.ACT).wait(60)

    [old, new] = [case for case in picture.memory.cases.values() if case.node == "n2"]
    assert (old.step, new.trigger, new.is_open) == (CaseStep.CLOSED, Trigger.ADMIN, True)


@pytest.mark.parametrize(
    "reason", ["action:replace", "Action: Replace", "Action:Replace now", "replace", "ActionReboot"]
)
def test_a_near_miss_is_warned_of_once_and_nothing_is_done(reason: str) -> None:
    picture = a_cluster().drained("n2", reason)
    assert [event.kind for event in picture.plan().events] == ["node.near_miss"]
    assert picture.actions() == []
    assert picture.then().plan().events == ()


@pytest.mark.parametrize("reason", ["disk swap", "NHC: check_fs failed", "do not replace this before Monday"])
def test_an_admins_own_drain_is_left_alone(reason: str) -> None:
    decided = a_cluster().drained("n2", reason).plan()
    assert (decided.actions, decided.events) == ((), ())


def test_a_bad_node_under_an_admins_drain_is_left_alone() -> None:
    picture = a_cluster().drained("n2", "mine").failing("n2")
    assert not [a for a in picture.plan().actions if isinstance(a, DownNode | DrainNode)]


def test_a_command_takes_over_a_case_that_waits_for_jobs() -> None:
    picture = a_cluster().job(on=("n2",)).failing("n2", Severity.DEGRADED, event=False).then()
    picture = picture.drained("n2", "Action:Replace", "FAIL").then(1)
    assert (Trigger.DEGRADED, CaseStep.CLOSED) in steps(picture)
    assert (Trigger.ADMIN, CaseStep.LAUNCH) in steps(picture)


def test_our_mark_without_a_case_is_told_of_and_not_undone() -> None:
    picture = a_cluster().drained("n2", "steward:agent:replace:c99-0")
    assert [event.kind for event in picture.plan().events] == ["node.orphan"]
    assert picture.actions() == []


def test_a_reboot_that_slurmctld_wrote_after_is_still_the_admins_command() -> None:
    for picture in (
        a_cluster().down("n2", "Action:Reboot : Not responding"),
        a_cluster().drained("n2", "Action:Reboot"),
    ):
        assert RebootInstance in action_types(picture.plan())


@pytest.mark.parametrize(
    "reason", ["ACTION:REBOOT", "action:reboot", "Action:Reboot.", "Action:reboot : Not responding"]
)
def test_a_command_is_taken_to_the_letter(reason: str) -> None:
    decided = a_cluster().down("n2", reason).plan()
    assert decided.actions == ()
    assert [event.kind for event in decided.events] == ["node.near_miss"]


def test_only_the_first_words_of_a_reason_are_a_command() -> None:
    decided = a_cluster().drained("n2", "my maintenance : Action:Reboot").plan()
    assert (decided.actions, decided.events) == ((), ())
