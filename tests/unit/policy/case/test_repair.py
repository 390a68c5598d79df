"""From the launch of a new instance to the node's return, and everything that can go wrong on the way."""

from dataclasses import replace

import pytest

from steward.model.action import CheckNow, DrainNode, LaunchInstance, RebootInstance, ReturnNode, TerminateInstance
from steward.model.case import Case, CaseStep
from steward.model.health import Advice, Incarnation, Severity
from steward.model.ids import BootId, InstanceId
from steward.model.instance import Instance, InstanceState
from steward.model.node import NodeBase, Reason
from steward.model.observed import Freshness
from steward.policy.case.steps import mark_of
from tests.builders.picture import T0, Picture, a_cluster, action_types, an_agent, n

NEW = InstanceId("i-new")


def case_of(picture: Picture) -> Case:
    return next(iter(picture.memory.cases.values()))


def launching() -> Picture:
    """n2 died, was taken out, and its old instance is gone."""
    picture = a_cluster().lost("n2").then().marked("n2").then(1)
    return picture.see(instances={k: v for k, v in picture.seen.instances.items() if k != "i-n2"})


def launched(picture: Picture) -> Picture:
    """The provider lists the instance that was asked for."""
    picture = picture.then(1)
    new = Instance(id=NEW, node=n("n2"), state=InstanceState.RUNNING, token=case_of(picture).token)
    return picture.see(instances={**picture.seen.instances, NEW: new}).then(1)


def reborn(picture: Picture) -> Picture:
    """The new instance's agent is connected."""
    view = replace(an_agent(n("n2")), incarnation=Incarnation(instance=NEW, boot=BootId("b9")), last_heard=picture.now)
    return picture.see(agents={**picture.seen.agents, n("n2"): view}).then(1)


def sound(picture: Picture) -> Picture:
    """It passed its checks and its slurmd registered."""
    return picture.checked("n2").node("n2", slurmd_started=picture.now).then(1)


def back(picture: Picture) -> Picture:
    return picture.node("n2", base=NodeBase.IDLE, flags=frozenset(), reason=None).then(1)


def test_the_old_instance_is_gone_before_a_new_one_is_launched() -> None:
    picture = a_cluster().lost("n2").then().marked("n2")
    assert action_types(picture.plan()) == [TerminateInstance]
    assert action_types(launching().plan()) == [LaunchInstance]


def test_nothing_is_launched_on_a_list_of_instances_older_than_the_case() -> None:
    picture = a_cluster().lost("n2").then().marked("n2").see(listed_at=T0 - 5.0, instances={})
    assert picture.actions() == []


def test_an_old_instance_that_the_list_did_not_show_yet_is_terminated_when_it_does() -> None:
    whole = a_cluster()
    picture = whole.see(instances={}).lost("n2").then().marked("n2").then(1)
    shown = picture.see(instances=whole.seen.instances)
    assert action_types(shown.plan()) == [TerminateInstance]


def test_the_node_comes_back_under_its_name_with_a_new_instance() -> None:
    picture = back(sound(reborn(launched(launching()))))
    case = case_of(picture)
    assert (case.step, case.new_instance, case.returned) == (CaseStep.CLOSED, NEW, picture.now - 1)
    assert picture.actions() == []


def test_the_new_incarnation_is_checked_before_it_may_return() -> None:
    picture = reborn(launched(launching()))
    assert case_of(picture).step is CaseStep.VERIFY
    assert isinstance(picture.after(5).actions()[0], CheckNow)


def test_results_from_before_the_verification_do_not_count() -> None:
    picture = launched(launching()).agent("n2", checked_at=T0 + 1)
    picture = reborn(picture).node("n2", slurmd_started=T0 + 99)
    assert case_of(picture.then()).step is CaseStep.VERIFY


def test_a_node_whose_slurmd_did_not_register_is_not_returned() -> None:
    picture = reborn(launched(launching())).checked("n2").then()
    assert case_of(picture).step is CaseStep.VERIFY


@pytest.mark.parametrize("refuses", [True, False])
def test_a_node_whose_registration_slurm_refuses_is_not_returned_and_the_next_remedy_follows(refuses: bool) -> None:
    """It has less than slurm.conf says, as before the repair."""
    picture = reborn(launched(launching())).checked("n2").node("n2", slurmd_started=T0 + 40)
    flags = frozenset({"DRAIN", "INVALID_REG"} if refuses else {"DRAIN"})
    picture = picture.node("n2", flags=flags)
    assert (ReturnNode in [type(action) for action in picture.actions()]) is not refuses
    late = picture.then(1).wait(700).then(1)
    assert (case_of(late).step in (CaseStep.RELEASE, CaseStep.LAUNCH)) is refuses


@pytest.mark.parametrize("severity", [Severity.FATAL, Severity.DEGRADED])
def test_a_failing_check_keeps_the_new_incarnation_out(severity: Severity) -> None:
    picture = reborn(launched(launching())).failing("n2", severity, event=False)
    assert case_of(sound(picture)).step is CaseStep.VERIFY


def test_a_new_incarnation_that_stays_bad_is_replaced_again() -> None:
    picture = reborn(launched(launching())).failing("n2", event=False).wait(301)
    case = case_of(picture)
    assert (case.step, case.launches) == (CaseStep.LAUNCH, 1)
    assert picture.then(6).actions()[0].key == f"terminate:{case.id}:{NEW}"


def test_after_the_last_try_a_person_is_asked() -> None:
    picture = launching().repair(max_launches=1)
    held = launched(picture).wait(2701)
    assert case_of(held).step is CaseStep.HELD
    assert held.actions() == []


def test_an_instance_that_vanishes_while_it_boots_is_launched_anew_with_another_token() -> None:
    picture = launched(launching())
    first = case_of(picture).token
    picture = picture.see(instances={k: v for k, v in picture.seen.instances.items() if k != NEW})
    (action,) = picture.actions()
    assert isinstance(action, LaunchInstance)
    assert action.token != first


def refused(picture: Picture, error: str) -> Picture:
    action = picture.actions()[0]
    return picture.then(0.1).see(failures={action.key: error})


def test_want_of_capacity_is_waited_out_with_growing_patience() -> None:
    picture = launching()
    waits = []
    for _ in range(5):
        picture = refused(picture, "capacity: none in this zone").then()
        waits.append(round(case_of(picture).next_try - picture.now))
        assert picture.actions() == []
        picture = picture.after(waits[-1])
    assert waits == [60, 120, 300, 600, 600]
    assert case_of(picture).step is CaseStep.LAUNCH


def test_a_provider_that_keeps_refusing_leaves_the_case_to_a_person() -> None:
    picture = launching().repair(max_launches=2)
    for _ in range(2):
        picture = refused(picture, "quota exceeded").then(5.1)
    assert case_of(picture).step is CaseStep.HELD


def test_a_machine_that_is_still_going_is_waited_for_and_that_is_no_refusal() -> None:
    picture = launching().repair(max_launches=2)
    for _ in range(9):
        picture = refused(picture, "not yet: n2 is still powering down").then(5.1)
    assert case_of(picture).step is CaseStep.LAUNCH
    assert isinstance(picture.actions()[0], LaunchInstance)


def test_a_launch_that_left_no_trace_is_asked_for_again_with_the_same_token() -> None:
    picture = launching()
    first, later = picture.actions()[0], picture.then(61).actions()[0]
    assert isinstance(first, LaunchInstance)
    assert isinstance(later, LaunchInstance)
    assert first.token == later.token


def test_a_machine_that_is_not_on_is_asked_for_again_where_the_head_was_killed_in_its_launch() -> None:
    """The provider may have been left between two steps; the token is the same."""
    asked = launching().then(1)
    token = case_of(asked).token
    new = Instance(id=NEW, node=n("n2"), state=InstanceState.PENDING, token=token)
    pending = asked.see(instances={**asked.seen.instances, NEW: new}).then(1)
    assert (case_of(pending).step, pending.actions()) == (CaseStep.PROVISION, [])
    unknown = replace(pending, memory=replace(pending.memory, asked={}))
    assert [each.token for each in unknown.actions() if isinstance(each, LaunchInstance)] == [token]
    assert unknown.then(1).actions() == []


def test_nothing_is_launched_while_the_provider_cannot_be_read() -> None:
    assert launching().see(provider=Freshness.OLD).actions() == []


def test_a_fault_that_a_reboot_may_cure_reboots_and_only_then_replaces() -> None:
    picture = a_cluster().failing("n2", advice=Advice.REBOOT).then().marked("n2")
    assert action_types(picture.plan()) == [RebootInstance]
    case = case_of(picture.repair(launch_timeout_s=100).wait(100))
    assert (case.step, case.rung, case.launches) == (CaseStep.LAUNCH, Advice.REPLACE, 1)


def test_a_reboot_shows_as_another_boot_of_the_same_instance() -> None:
    picture = a_cluster().failing("n2", advice=Advice.REBOOT).then().marked("n2").then(1)
    same = Incarnation(instance=InstanceId("i-n2"), boot=BootId("boot-2"))
    picture = picture.agent("n2", incarnation=same, findings=()).then(1)
    assert case_of(picture).step is CaseStep.VERIFY


def test_a_cloud_node_whose_power_up_cleared_our_mark_is_marked_again() -> None:
    picture = reborn(launched(launching())).node(
        "n2", flags=frozenset({"DRAIN", "CLOUD"}), base=NodeBase.IDLE, reason=None
    )
    marks = [str(action.mark) for action in picture.plan().actions if isinstance(action, DrainNode)]
    assert marks == [str(mark_of(case_of(picture)))]
    assert case_of(picture.then(1)).step is CaseStep.VERIFY


def test_a_node_whose_registration_cleared_our_mark_is_marked_again_and_is_no_persons() -> None:
    """Seen after ResumeTimeout: "returned to service", and still drained."""
    picture = reborn(launched(launching())).node("n2", flags=frozenset({"DRAIN"}), base=NodeBase.IDLE, reason=None)
    marks = [str(action.mark) for action in picture.plan().actions if isinstance(action, DrainNode)]
    assert marks == [str(mark_of(case_of(picture)))]
    assert case_of(picture.then(1)).step is CaseStep.VERIFY


@pytest.mark.parametrize("flag", ["POWER_DOWN", "POWERING_DOWN", "POWERED_DOWN"])
def test_a_node_whose_drain_went_with_its_power_was_given_back_by_nobody_and_is_marked_before_the_launch(
    flag: str,
) -> None:
    off = launching().node("n2", flags=frozenset({"CLOUD", flag}), base=NodeBase.IDLE, reason=None)
    assert case_of(off.then()).step is CaseStep.LAUNCH
    (action,) = off.actions()
    assert isinstance(action, DrainNode)
    assert action.mark == mark_of(case_of(off))
    signed = off.then(1).node("n2", flags=frozenset({"CLOUD", "DRAIN", flag}), reason=Reason(text=str(action.mark)))
    wanted = [LaunchInstance] if flag == "POWERED_DOWN" else []  # else it would be refused, and refusals are counted
    assert action_types(signed.plan()) == wanted


def test_a_lost_node_that_is_only_down_is_drained_before_it_is_powered_up() -> None:
    down = launching()
    off = down.node("n2", flags=frozenset({"CLOUD", "POWERED_DOWN"}))
    assert down.seen.nodes[n("n2")].is_down
    assert action_types(off.plan()) == [DrainNode]


def test_a_person_who_gives_the_node_back_ends_the_case() -> None:
    picture = back(a_cluster(provider=False).failing("n2").then().marked("n2").then(1))
    assert case_of(picture).step is CaseStep.CLOSED
    assert picture.actions() == []


def given_back_though_it_fails() -> Picture:
    failing = a_cluster().failing("n2", check="gpu", event=False)
    return back(failing.then().marked("n2").then(1)).then(10)


def test_a_persons_word_stands_while_the_check_goes_on_failing_and_after_the_agent_began_anew() -> None:
    picture = given_back_though_it_fails()
    assert [case.is_open for case in picture.then(60).memory.cases.values()] == [False]
    began_anew = picture.failing("n2", check="gpu", event=False, passed_at=0.0).then().then(60)
    assert [case.is_open for case in began_anew.memory.cases.values()] == [False]


def test_a_check_that_passed_after_a_persons_word_and_fails_anew_is_a_new_fault() -> None:
    picture = given_back_though_it_fails()
    well = picture.checked("n2").then(100)
    anew = well.failing("n2", check="gpu", event=False, passed_at=well.now - 1.0).then().then(60)
    assert [case.is_open for case in anew.memory.cases.values()] == [False, True]


def test_a_person_who_takes_the_node_over_ends_the_case() -> None:
    picture = launching().down("n2", "mine now").then()
    assert case_of(picture).step is CaseStep.CLOSED
    assert picture.actions() == []


def test_a_node_that_slurm_has_taken_back_and_not_pinged_yet_is_not_given_back_again() -> None:
    picture = reborn(launched(launching())).checked("n2")
    picture = picture.node("n2", slurmd_started=picture.now).then(1)
    waits = picture.node("n2", base=NodeBase.IDLE, flags=frozenset({"NOT_RESPONDING"}), reason=None, responding=False)
    assert case_of(waits.then(5)).step is CaseStep.RETURN
    assert waits.after(60).actions() == []


def test_a_node_is_given_back_once_all_is_well() -> None:
    picture = reborn(launched(launching())).checked("n2")
    picture = picture.node("n2", slurmd_started=picture.now)
    action = picture.actions()[-1]
    assert isinstance(action, ReturnNode)
    assert action.mark.id == case_of(picture).id
