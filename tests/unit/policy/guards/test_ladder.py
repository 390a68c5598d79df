"""The ladder: the advice picks the first rung, each rung has its time and budget, and the next one follows."""

from dataclasses import replace

import pytest

from steward.model.action import DrainNode, LaunchInstance, RebootInstance, ReturnNode
from steward.model.agent_action import Action, MendNode
from steward.model.case import Case, CaseStep, Remedy
from steward.model.health import Advice, Incarnation, Severity
from steward.model.ids import BootId, CaseId, InstanceId
from steward.model.mend import MendReport
from steward.model.repair_policy import LadderPolicy
from steward.policy.draft import Draft
from steward.policy.guards.ladder import identity
from tests.builders.picture import Picture, a_cluster, n

GPU = "GPU-0b1b63b9-6f0a-4d0e-9d06-2d6f0f6b7a11"
DAY_S = 86400.0


def failing(picture: Picture, advice: Advice, hardware: str, severity: Severity = Severity.DEGRADED) -> Picture:
    return picture.failing("n2", severity, advice=advice, hardware=hardware, check="svc.munge", event=False)


def out(picture: Picture) -> Picture:
    """Our mark is on the node and the plan went on."""
    return picture.then().marked("n2").then()


def restarting() -> Picture:
    return out(failing(a_cluster(), Advice.RESTART_SERVICE, "munge"))


def the_case(picture: Picture) -> Case:
    return next(iter(picture.memory.cases.values()))


def planned(picture: Picture, kind: type[Action]) -> list[Action]:
    return [action for action in picture.plan().actions if isinstance(action, kind)]


def told(picture: Picture, error: str = "") -> Picture:
    """The node's agent says how it ended."""
    case = the_case(picture)
    token = f"{case.id}-{case.rung.value}"
    return picture.agent("n2", mend=MendReport(token=token, error=error, at=picture.now)).then()


def well(picture: Picture) -> Picture:
    """The checks that VERIFY asked for were answered, and nothing is bad."""
    return picture.after(1.0).agent("n2", findings=(), checked_at=picture.now + 1.0).then()


def remembered(picture: Picture, *rungs: Advice, ago_s: float = 600.0, key: str = "i-n2") -> Picture:
    """Other cases did this to the machine of n2."""
    made = tuple(
        Remedy(
            at=picture.now - ago_s,
            rung=rung,
            node=n("n2"),
            instance=the_instance(picture),
            case=CaseId(f"old-{i}"),
            check="x",
        )
        for i, rung in enumerate(rungs)
    )
    return replace(picture, memory=replace(picture.memory, remedies={key: made}))


def the_instance(picture: Picture) -> InstanceId:
    who = picture.seen.agents[n("n2")].incarnation
    assert who is not None
    return who.instance


def without_probation(picture: Picture, **budgets: float) -> Picture:
    return picture.repair(budgets=LadderPolicy(probation_h=0.0, **budgets))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("advice", "hardware", "rung", "target"),
    [
        (Advice.RESTART_SERVICE, "munge", Advice.RESTART_SERVICE, "munge"),
        (Advice.RESTART_SERVICE, "", Advice.REBOOT, ""),
        (Advice.RESTART_SERVICE, "rm -rf /", Advice.REBOOT, ""),
        (Advice.RESET_GPU, GPU, Advice.RESET_GPU, GPU),
        (Advice.RESET_GPU, "0000:4b:00", Advice.RESET_GPU, "0000:4b:00"),
        (Advice.RESET_GPU, "", Advice.REBOOT, ""),
        (Advice.REBOOT, "", Advice.REBOOT, ""),
        (Advice.REPLACE, "", Advice.REPLACE, ""),
        (Advice.NONE, "", Advice.REPLACE, ""),
    ],
)
def test_the_advice_picks_the_first_rung_that_can_be_carried_out(
    advice: Advice, hardware: str, rung: Advice, target: str
) -> None:
    case = the_case(failing(a_cluster(), advice, hardware).then())
    assert (case.rung, case.target) == (rung, target)


def test_a_service_is_restarted_on_the_drained_node_by_its_agent() -> None:
    (order,) = planned(restarting().after(60.0), MendNode)
    assert isinstance(order, MendNode)
    assert (order.node, order.rung, order.target) == ("n2", Advice.RESTART_SERVICE, "munge")
    assert order.why.evidence


def test_a_light_repair_waits_for_the_jobs_on_the_node() -> None:
    picture = failing(a_cluster(), Advice.RESET_GPU, GPU).then()
    busy = picture.marked("n2").node("n2", flags=frozenset({"DRAIN", "COMPLETING"})).then().after(60.0)
    assert planned(busy, MendNode) == []
    assert the_case(busy).step is CaseStep.RELEASE


def test_a_node_is_given_back_on_the_same_boot_when_its_checks_pass_after_the_restart() -> None:
    picture = well(told(restarting()))
    assert the_case(picture).step is CaseStep.RETURN
    assert planned(picture.after(60.0), ReturnNode)
    assert planned(picture.after(60.0), RebootInstance) == []


def test_what_the_agent_could_not_do_is_followed_by_the_next_rung_at_once() -> None:
    picture = told(restarting(), "munge is not among agent.restart_units")
    assert the_case(picture).rung is Advice.REBOOT
    assert planned(picture.after(60.0), RebootInstance)


def test_a_rung_that_did_not_help_in_its_time_is_followed_by_the_next_one() -> None:
    verifying = told(restarting())
    assert the_case(verifying).step is CaseStep.VERIFY
    assert the_case(verifying.wait(110.0)).rung is Advice.RESTART_SERVICE
    assert the_case(verifying.wait(130.0)).rung is Advice.REBOOT


def test_an_agent_that_never_answers_does_not_hold_up_the_repair() -> None:
    assert the_case(restarting().wait(130.0)).rung is Advice.REBOOT


def test_a_reset_after_which_the_event_is_there_again_is_followed_by_a_reboot() -> None:
    picture = a_cluster().failing("n2", Severity.FATAL, advice=Advice.RESET_GPU, hardware=GPU)
    verifying = told(out(picture))
    again = verifying.after(2.0).agent("n2", checked_at=verifying.now + 2.0).then()
    assert the_case(again).rung is Advice.REBOOT


def test_a_used_up_budget_goes_up_one() -> None:
    picture = without_probation(failing(a_cluster(), Advice.RESTART_SERVICE, "munge"))
    once = out(remembered(picture, Advice.RESTART_SERVICE))
    twice = out(remembered(picture, Advice.RESTART_SERVICE, Advice.RESTART_SERVICE))
    assert the_case(once).rung is Advice.RESTART_SERVICE
    assert the_case(twice).rung is Advice.REBOOT


def test_budgets_are_counted_over_a_window_and_for_one_machine_only() -> None:
    picture = without_probation(failing(a_cluster(), Advice.RESET_GPU, GPU))
    assert the_case(out(remembered(picture, Advice.RESET_GPU, ago_s=DAY_S + 1))).rung is Advice.RESET_GPU
    assert the_case(out(remembered(picture, Advice.RESET_GPU))).rung is Advice.REBOOT
    both = out(remembered(picture, Advice.RESET_GPU, Advice.REBOOT, Advice.REBOOT))
    assert the_case(both).rung is Advice.REPLACE


def test_a_second_fault_on_probation_skips_a_rung() -> None:
    picture = failing(a_cluster(), Advice.REBOOT, "")
    assert the_case(remembered(picture, Advice.REBOOT).then()).rung is Advice.REPLACE
    assert the_case(remembered(picture, Advice.REBOOT, ago_s=DAY_S + 1).then()).rung is Advice.REBOOT


def test_a_restarted_service_puts_no_hardware_on_probation() -> None:
    picture = failing(a_cluster(), Advice.REBOOT, "")
    assert the_case(remembered(picture, Advice.RESTART_SERVICE).then()).rung is Advice.REBOOT


def test_hardware_that_was_repaired_three_times_in_a_week_is_left_to_a_person() -> None:
    picture = failing(a_cluster(), Advice.REPLACE, "")
    thrice = out(remembered(picture, Advice.RESET_GPU, Advice.REBOOT, Advice.REBOOT, ago_s=2 * DAY_S))
    assert the_case(thrice).step is CaseStep.HELD
    assert "quarantine" in the_case(thrice).why.text
    twice = out(remembered(picture, Advice.RESET_GPU, Advice.REBOOT, ago_s=2 * DAY_S))
    assert the_case(twice).step is CaseStep.LAUNCH


def test_a_slot_whose_machine_was_replaced_twice_in_a_day_is_left_to_a_person() -> None:
    picture = failing(a_cluster(), Advice.REPLACE, "")
    twice = out(remembered(picture, Advice.REPLACE, Advice.REPLACE, key="another machine"))
    assert the_case(twice).step is CaseStep.HELD
    assert "quarantine" in the_case(twice).why.text


def test_an_admins_command_overrules_budgets_and_quarantine() -> None:
    picture = a_cluster().drained("n2", "Action:Reboot", "FAIL")
    asked = remembered(picture, *[Advice.REBOOT] * 5).then().then()
    assert the_case(asked).rung is Advice.REBOOT
    assert planned(asked.after(60.0), RebootInstance)


def test_what_is_begun_is_remembered_once_under_the_hardwares_identity() -> None:
    picture = told(out(failing(a_cluster(), Advice.RESET_GPU, GPU)), "in use")
    kept = picture.memory.remedies[GPU]
    assert [one.rung for one in kept] == [Advice.RESET_GPU], "the reboot is not done yet"
    who = Incarnation(instance=InstanceId("i-n2"), boot=BootId("boot-2"))
    picture = picture.agent("n2", incarnation=who, findings=()).then()
    kept = picture.memory.remedies[GPU]
    assert [one.rung for one in kept] == [Advice.RESET_GPU, Advice.REBOOT]
    assert picture.after(60.0).then().memory.remedies[GPU] == kept


def test_a_board_serial_outlives_the_instance_id() -> None:
    picture = failing(a_cluster(), Advice.RESET_GPU, GPU).agent("n2", hardware=("GPU-x", "board-17"))
    assert the_case(out(picture)).hardware == GPU
    picture = failing(a_cluster(), Advice.REPLACE, "").agent("n2", hardware=("GPU-x", "board-17"))
    assert the_case(out(picture)).hardware == "board-17"


def test_a_node_that_fails_right_after_its_return_is_out_at_once_and_repaired_after_a_while() -> None:
    closed = well(told(restarting())).node("n2", flags=frozenset(), reason=None).then().then()
    assert the_case(closed).step is CaseStep.CLOSED
    again = failing(closed.after(10.0), Advice.REPLACE, "")
    assert planned(again, DrainNode)
    waiting = again.then()
    case = next(case for case in waiting.memory.cases.values() if case.is_open)
    waiting = waiting.drained("n2", f"steward:{case.check}:{case.rung.value}:{case.id}").then()
    assert planned(waiting.after(5.0), LaunchInstance) == []
    assert waiting.memory.cases[case.id].step is CaseStep.RELEASE
    assert waiting.wait(310.0).memory.cases[case.id].step is CaseStep.LAUNCH


def test_a_degraded_service_under_an_opted_in_job_is_restarted_and_a_fatal_fault_replaces_the_node() -> None:
    hit = a_cluster().job().opted_in().then()
    assert the_case(failing(hit, Advice.RESTART_SERVICE, "munge").then()).rung is Advice.RESTART_SERVICE
    assert the_case(failing(hit, Advice.RESET_GPU, GPU, Severity.FATAL).then()).rung is Advice.REPLACE


def test_remedies_are_forgotten_after_four_weeks() -> None:
    picture = remembered(a_cluster(), Advice.REBOOT, ago_s=27 * DAY_S)
    assert picture.then().memory.remedies
    assert not remembered(a_cluster(), Advice.REBOOT, ago_s=29 * DAY_S).then().memory.remedies


def clones() -> Picture:
    """Every node's machine has the same id and the same board's serial, as diskless images have."""
    picture = a_cluster()
    for name in picture.seen.agents:
        who = picture.seen.agents[name].incarnation
        assert who is not None
        picture = picture.agent(name, incarnation=replace(who, instance=InstanceId("one")), hardware=("board-X1",))
    return picture.see(instances={})


def test_repairs_of_a_clone_are_not_counted_against_the_others() -> None:
    picture = clones().then()
    (told,) = [event for event in clones().plan().events if event.kind == "agent.twins"]
    assert "n[1-6] have the same machine id one" in told.text
    assert not [event for event in picture.plan().events if event.kind == "agent.twins"], "told once"
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    assert [identity("", name, draft) for name in picture.seen.agents] == [*picture.seen.agents]
    assert identity(GPU, n("n1"), draft) == GPU
    done = Remedy(
        at=picture.now - 60,
        rung=Advice.REBOOT,
        node=n("n1"),
        instance=InstanceId("one"),
        case=CaseId("c"),
        check="disk",
    )
    for key in ("one", "board-X1", "n1"):
        again = replace(picture, memory=replace(picture.memory, remedies={key: (done,) * 9}))
        case = the_case(failing(again, Advice.REBOOT, "").then())
        assert (case.rung, case.hardware) == (Advice.REBOOT, "n2"), key


def test_hardware_that_moved_to_another_name_keeps_its_past() -> None:
    """The node that had it before is gone: its agent's last word is no other machine."""
    picture = a_cluster().agent("n1", hardware=("board-X1",)).agent("n2", hardware=("board-X1",)).agent_lost("n1")
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    assert identity("", n("n2"), draft) == "board-X1"
