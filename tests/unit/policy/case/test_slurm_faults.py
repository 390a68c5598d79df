"""Nodes that Slurm itself took out of service: looked into, repaired or told; never those that a person took out."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import DownNode, DrainNode, LaunchInstance, RebootInstance, ReturnNode
from steward.model.agent_action import MendNode
from steward.model.case import Case, CaseStep, Remedy, Trigger
from steward.model.health import Advice, Severity
from steward.model.ids import CaseId
from steward.model.node import NodeBase, Reason
from steward.model.setting_types import RepairMode
from steward.views.explain import explain_node
from tests.builders.picture import Picture, a_cluster, action_types, n
from tests.builders.slurm_drains import slurm_drains

KILL = "Kill task failed (JobId=7 StepId=0)"
LOW = "gres/gpu count too low (7 < 8)"


def cases(picture: Picture) -> list[Case]:
    return list(picture.memory.cases.values())


def kinds(picture: Picture) -> list[type]:
    return action_types(picture.plan())


def events(picture: Picture, kind: str) -> list[str]:
    return [event.text for event in picture.plan().events if event.kind == kind]


def looked_into(text: str = KILL) -> Picture:
    return slurm_drains(a_cluster(), text).then().then()


def test_a_node_is_given_back_when_its_checks_pass() -> None:
    picture = looked_into()
    (case,) = cases(picture)
    assert (case.step, case.rung, case.command) == (CaseStep.VERIFY, Advice.NONE, KILL)
    sound = picture.after(2.0).agent("n2", checked_at=picture.now + 2.0)
    (back,) = [action for action in sound.plan().actions if isinstance(action, ReturnNode)]
    assert (back.node, back.command) == ("n2", KILL)


def test_slurms_reason_is_never_overwritten() -> None:
    picture = slurm_drains(a_cluster(), KILL)
    for _ in range(10):
        assert not {DrainNode, DownNode} & set(kinds(picture))
        picture = picture.then(30.0)


def test_jobs_that_still_run_there_are_waited_for() -> None:
    picture = slurm_drains(a_cluster(), KILL).node("n2", base=NodeBase.MIXED).then().then()
    assert cases(picture)[0].step is CaseStep.RELEASE


def test_checks_that_do_not_pass_lead_to_a_reboot() -> None:
    picture = looked_into().failing("n2", Severity.DEGRADED, check="d_state", event=False)
    later = picture.wait(320.0)
    assert cases(later)[0].rung is Advice.REBOOT
    assert RebootInstance in kinds(later.after(60.0))


def given_back(text: str) -> Picture:
    """Slurm took n2 out for this reason, and its checks passed."""
    first = looked_into(text)
    closed = first.after(2.0).agent("n2", checked_at=first.now + 2.0).then()
    closed = closed.node("n2", flags=frozenset(), reason=None).then().then(600.0)
    assert cases(closed)[-1].step is CaseStep.CLOSED
    return closed


def test_the_second_time_on_probation_it_is_rebooted_at_once() -> None:
    again = slurm_drains(given_back("Node unexpectedly rebooted"), "Node unexpectedly rebooted").then()
    assert [case.rung for case in cases(again) if case.is_open] == [Advice.REBOOT]


USERS_REASONS = [
    KILL,
    "Kill task failed",
    "Job step not running (JobId=7 StepId=0)",
    "SlurmdSpoolDir is full",
    "batch job complete failure",
]


@pytest.mark.parametrize("text", USERS_REASONS[:3])
def test_what_a_users_job_can_bring_about_is_looked_into_again_and_costs_no_reboot(text: str) -> None:
    again = slurm_drains(given_back(text), text).then()
    assert [case.rung for case in cases(again) if case.is_open] == [Advice.NONE]


@pytest.mark.parametrize("text", USERS_REASONS)
def test_no_machine_is_replaced_for_what_a_users_job_can_bring_about(text: str) -> None:
    """Not where the node cannot be rebooted, nor where it was rebooted often today."""
    picture = not_ended(text)
    slots = {name: replace(slot, reboots=False) for name, slot in picture.want.slots.items()}
    without = replace(picture, want=replace(picture.want, slots=slots))
    for one in (without, rebooted_before(picture, 2)):
        held = one.wait(600.0)
        (case,) = [case for case in cases(held) if case.is_open]
        assert case.step is CaseStep.HELD
        assert f"one job alone can bring about '{text}'" in case.why.text
        assert not {LaunchInstance, RebootInstance} & set(kinds(held))


def not_ended(text: str = KILL) -> Picture:
    """Its checks do not pass: what the job did is still there."""
    return looked_into(text).failing("n2", Severity.DEGRADED, check="d_state", event=False)


def rebooted_before(picture: Picture, times: int) -> Picture:
    check = cases(picture)[0].check
    made = tuple(
        Remedy(
            at=picture.now - 3600.0,
            rung=Advice.REBOOT,
            node=n("n2"),
            instance=None,
            case=CaseId(f"c9{number}-1"),
            check=check,
            for_users=True,
        )
        for number in range(times)
    )
    hardware = cases(picture)[0].hardware
    return replace(picture, memory=replace(picture.memory, remedies={hardware: made}))


def test_reboots_for_users_processes_count_against_no_hardware() -> None:
    rebooted = rebooted_before(looked_into(), 9)
    other = rebooted.node("n2", flags=frozenset(), reason=None).then().then(600.0)
    failing = other.failing("n2", Severity.DEGRADED, check="gpu.ecc", event=False, advice=Advice.REBOOT)
    failing = failing.then().then(5.0)
    (case,) = [case for case in cases(failing) if case.is_open]
    assert (case.check, case.rung, case.step) == ("gpu.ecc", Advice.REBOOT, CaseStep.DRAIN)
    (turn,) = [case for case in cases(failing.marked("n2").then().then(600.0).then()) if case.is_open]
    assert (turn.rung, turn.step) == (Advice.REBOOT, CaseStep.LAUNCH), "nor do they use up its own reboots"


def test_a_reboot_for_users_processes_that_the_provider_refuses_costs_no_machine_either() -> None:
    picture = looked_into()
    case = replace(cases(picture)[0], rung=Advice.REBOOT, step=CaseStep.LAUNCH, refusals=99)
    refused = replace(picture, memory=replace(picture.memory, cases={case.id: case})).then().then()
    assert (cases(refused)[0].step, LaunchInstance in kinds(refused)) == (CaseStep.HELD, False)


def rebooted_for_users(count: int, text: str) -> Picture:
    """So many nodes that Slurm took out are rebooted."""
    picture = a_cluster(12, breaker_min=2, concurrent_min=1)
    for number in range(1, count + 1):
        picture = slurm_drains(picture, text, f"n{number}").then().then(400.0)
    made = {
        case.id: replace(case, rung=Advice.REBOOT, step=CaseStep.LAUNCH, entered=picture.now)
        for case in cases(picture)
        if case.is_open
    }
    assert len(made) == count
    return replace(picture, memory=replace(picture.memory, cases=made))


@pytest.mark.parametrize(
    ("text", "comes"), [(KILL, True), ("Prolog error", True), ("Node unexpectedly rebooted", False)]
)
def test_what_users_do_to_many_nodes_holds_back_no_repair_of_another(text: str, *, comes: bool) -> None:
    """Neither by the breakers nor by its turn."""
    picture = rebooted_for_users(4, text).failing("n9", Severity.DEGRADED, check="gpu.ecc", event=False)
    later = picture.then()
    steps = [case.step for case in cases(later) if case.check == "gpu.ecc"]
    if comes:
        steps = [case.step for case in cases(later.marked("n9").then().then()) if case.check == "gpu.ecc"]
    assert steps == ([CaseStep.LAUNCH] if comes else [])


def test_one_job_with_such_processes_on_many_nodes_is_one_incident_and_no_machine_is_touched() -> None:
    picture = slurm_drains(a_cluster(100), KILL, *(f"n{number}" for number in range(1, 9)))
    (incident,) = picture.plan().memory.incidents.values()
    assert incident.text.startswith("8 of 100 nodes were taken out for what a job can bring about")
    assert_none_is_touched(picture)


def assert_none_is_touched(struck: Picture) -> None:
    """None within seconds; then one of them is looked into and nothing is done to its machine."""
    assert (struck.wait(9.0).memory.cases, struck.wait(9.0).plan().actions) == ({}, ())
    later = struck.wait(50.0)
    assert [case.rung for case in cases(later)] == [Advice.NONE]
    assert not set(action_types(later.plan())) & {RebootInstance, LaunchInstance, MendNode, DownNode}


def test_a_machine_that_died_is_replaced_whatever_users_did_there_before() -> None:
    busy = slurm_drains(a_cluster(), KILL).node("n2", base=NodeBase.MIXED).then().then()
    picture = rebooted_before(busy, 2).lost("n2").then().then()
    (case,) = [case for case in cases(picture) if case.is_open]
    assert (case.trigger, case.rung, case.step) == (Trigger.LOST, Advice.REPLACE, CaseStep.LAUNCH)


@pytest.mark.parametrize("user", ["alice", "", "root"])
def test_a_persons_drain_with_the_same_words_is_left_alone(user: str) -> None:
    picture = slurm_drains(a_cluster(), "Prolog error", user=user)
    assert picture.wait(100.0).memory.cases == {}
    failing = picture.failing("n2")
    assert failing.plan().actions == ()
    assert failing.wait(100.0).memory.cases == {}


def test_a_person_who_takes_the_node_over_meanwhile_ends_the_case() -> None:
    picture = looked_into().drained("n2", "mine now, Bob").then()
    assert [case.step for case in cases(picture)] == [CaseStep.CLOSED]
    assert ReturnNode not in kinds(picture)
    same_words = slurm_drains(looked_into("Prolog error"), "Prolog error", user="alice").then()
    assert [case.step for case in cases(same_words)] == [CaseStep.CLOSED]


def test_a_node_without_its_agent_is_left_as_slurm_left_it() -> None:
    picture = slurm_drains(a_cluster(), KILL).agent_lost("n2").wait(100.0)
    assert {case.step for case in cases(picture)} <= {CaseStep.SUSPECT}, "nobody else says that it is dead"
    assert not {DrainNode, DownNode, RebootInstance, LaunchInstance, ReturnNode} & set(kinds(picture))


def test_a_count_too_low_is_hardware_only_where_the_same_machine_served_with_all_of_it() -> None:
    served = a_cluster().then()
    assert slurm_drains(served, LOW).then().memory.cases != {}
    assert cases(slurm_drains(served, LOW).then())[0].rung is Advice.REBOOT
    fresh = slurm_drains(a_cluster(), LOW)
    assert fresh.then().memory.cases == {}
    assert "a person must look" in events(fresh, "node.slurm_reason")[0]


def test_config_faults_are_told_once_and_touched_never() -> None:
    picture = slurm_drains(a_cluster(), "Bad core count")
    assert len(events(picture, "node.slurm_reason")) == 1
    later = picture.then(60.0)
    assert events(later, "node.slurm_reason") == []
    assert (later.memory.cases, later.plan().actions) == ({}, ())


@pytest.mark.parametrize("text", ["reboot issued", "POWER_DOWN_ASAP"])
def test_what_passes_by_itself_is_not_even_told(text: str) -> None:
    picture = slurm_drains(a_cluster(), text)
    assert (picture.plan().actions, events(picture, "node.slurm_reason")) == ((), [])


def test_slurmd_is_restarted_for_a_duplicate_job_id() -> None:
    picture = looked_into("Duplicate jobid").after(60.0)
    (order,) = [action for action in picture.plan().actions if isinstance(action, MendNode)]
    assert (order.rung, order.target) == (Advice.RESTART_SERVICE, "slurmd")


def test_a_prolog_that_fails_on_more_than_three_nodes_is_one_incident_and_none_is_touched() -> None:
    picture = slurm_drains(a_cluster(100), "Prolog error", "n1", "n2", "n3", "n4")
    assert list(picture.plan().memory.incidents) == ["check:slurm.prolog_error"]
    assert_none_is_touched(picture)
    few = slurm_drains(a_cluster(100), "Prolog error", "n1", "n2", "n3").then()
    assert (len(few.memory.cases), few.memory.incidents) == (3, {})


def test_a_node_that_rebooted_by_itself_is_checked_and_given_back() -> None:
    reason = Reason(text="Node unexpectedly rebooted", user="slurm", at=a_cluster().now)
    picture = a_cluster().node("n2", base=NodeBase.DOWN, reason=reason).then().then()
    assert cases(picture)[0].step is CaseStep.VERIFY
    sound = picture.after(2.0).agent("n2", checked_at=picture.now + 2.0)
    assert ReturnNode in kinds(sound)


def test_a_machine_that_did_not_come_up_from_a_reboot_of_slurms_is_drained_before_it_is_rebooted() -> None:
    """DOWN alone it would take jobs as soon as its slurmd registers."""
    text = "reboot requested : reboot issued : reboot timed out"
    reason = Reason(text=text, user="alice", at=a_cluster().now)
    down = a_cluster().node("n2", base=NodeBase.DOWN, reason=reason)
    picture = down.then()
    assert kinds(down) == [DrainNode]
    (case,) = cases(picture)
    assert (case.check, case.rung, case.command) == ("slurm.reboot_timeout", Advice.REBOOT, "")
    assert RebootInstance in kinds(picture.marked("n2").then().after(60.0))
    during = a_cluster().node("n2", base=NodeBase.DOWN, reason=replace(reason, text="reboot requested : reboot issued"))
    assert kinds(during) == []
    theirs = a_cluster().node("n2", base=NodeBase.DOWN, reason=replace(reason, text=text.replace("requested", "it")))
    assert kinds(theirs) == []


def test_a_failed_bring_up_is_replaced_unless_its_agent_came_after_all() -> None:
    reason = Reason(text="ResumeTimeout reached", user="slurm", at=a_cluster().now)
    picture = a_cluster().node("n2", base=NodeBase.DOWN, reason=reason)
    assert cases(picture.then())[0].rung is Advice.NONE
    without = picture.see(agents={name: view for name, view in picture.seen.agents.items() if name != n("n2")})
    assert cases(without.then())[0].rung is Advice.REPLACE
    assert LaunchInstance in kinds(without.then().marked("n2").see(instances={}).then().after(60.0))


def test_report_only_and_pause_withhold_it() -> None:
    picture = slurm_drains(a_cluster(), KILL)
    assert picture.repair(mode=RepairMode.REPORT).wait(60.0).memory.cases == {}
    paused = replace(picture, memory=replace(picture.memory, paused=True))
    assert paused.wait(60.0).memory.cases == {}


def test_a_mode_of_report_for_slurms_reasons_leaves_them_alone() -> None:
    picture = slurm_drains(a_cluster(), KILL)
    quiet = replace(picture, want=replace(picture.want, modes={"slurm.*": "report"}))
    assert quiet.wait(60.0).memory.cases == {}


def test_an_explanation_says_that_slurm_took_it_out_and_what_is_done() -> None:
    picture = slurm_drains(a_cluster(), KILL)
    lines = explain_node(n("n2"), picture.seen, picture.want, picture.memory, picture.now)
    assert any("by Slurm itself (kind of reason: workload): given back when its checks pass" in line for line in lines)
    told = slurm_drains(a_cluster(), "Bad core count")
    (said,) = events(told, "node.slurm_reason")
    assert said.endswith("(config): reported, a person must look")
    lines = explain_node(n("n2"), told.seen, told.want, told.memory, told.now)
    assert any("by Slurm itself (kind of reason: config): reported, a person must look" in line for line in lines)
    assert not any("a person or a tool" in line or "the person or tool" in line for line in lines)


def test_a_node_that_slurm_took_out_and_that_died_since_is_repaired_like_any_other() -> None:
    picture = slurm_drains(a_cluster().then(), KILL).lost("n2").then()
    assert cases(picture)[-1].rung is Advice.REPLACE
    a_persons = a_cluster().drained("n2", "mine, Bob").lost("n2").then()
    assert [case for case in cases(a_persons) if case.is_open] == []


def test_a_reboot_that_timed_out_is_done_by_the_provider_though_no_agent_can_be_there() -> None:
    reason = Reason(text="reboot timed out", user="slurm", at=a_cluster().now)
    picture = a_cluster().node("n2", base=NodeBase.DOWN, reason=reason)
    without = picture.see(agents={name: view for name, view in picture.seen.agents.items() if name != n("n2")})
    assert cases(without.then())[0].rung is Advice.REBOOT
    assert RebootInstance in kinds(without.then().marked("n2").then().after(60.0))


MEMORY = "Low RealMemory (reported:7900 < 100.00% of configured:9000)"
GROWN: dict[str, dict[str, Any]] = {
    MEMORY: {"memory_mb": 9000},
    "Low CPUs": {"cpus": 16},
    LOW: {"gres": "gpu:h100:8(S:0-1)"},
}


def served() -> Picture:
    """A machine of 8 CPUs, 8000 MB and 7 GPUs has served."""
    return a_cluster().node("n2", cpus=8, memory_mb=8000, gres="gpu:h100:7(S:0)").then(600.0)


@pytest.mark.parametrize("text", GROWN)
def test_what_a_machine_has_lost_since_it_served_is_looked_for_by_a_reboot(text: str) -> None:
    picture = slurm_drains(served(), text).then()
    assert [case.rung for case in cases(picture)] == [Advice.REBOOT]


@pytest.mark.parametrize("again", [False, True], ids=["by a reconfigure", "and slurmd was started again"])
@pytest.mark.parametrize("text", GROWN)
def test_what_slurm_conf_newly_says_that_a_machine_has_costs_no_reboot_and_is_told(text: str, *, again: bool) -> None:
    """No reboot and no other machine of its kind brings what was never there."""
    changed = served().node("n2", **GROWN[text]).then(5.0)
    if again:
        changed = changed.node("n2", slurmd_started=changed.now)
    picture = slurm_drains(changed, text)
    assert (action_types(picture.plan()), cases(picture.then())) == ([], [])
    assert "a person must look" in " ".join(events(picture, "node.slurm_reason"))


@pytest.mark.parametrize("text", GROWN)
def test_another_size_of_something_else_does_not_matter(text: str) -> None:
    others = {key: value for change in GROWN.values() if change is not GROWN[text] for key, value in change.items()}
    changed = served().node("n2", **others).then(5.0)
    assert [case.rung for case in cases(slurm_drains(changed, text).then())] == [Advice.REBOOT]


def test_gpus_that_slurm_conf_only_names_a_type_for_are_not_more() -> None:
    named = served().node("n2", gres="gpu:7").then(600.0).node("n2", gres="gpu:h100:7(S:0)").then(5.0)
    assert [case.rung for case in cases(slurm_drains(named, LOW).then())] == [Advice.REBOOT]


def test_a_node_that_slurm_shows_with_the_gpus_that_it_has_left_is_rebooted() -> None:
    left = served().node("n2", gres="gpu:h100:4(S:0)")
    assert [case.rung for case in cases(slurm_drains(left, LOW).then())] == [Advice.REBOOT]


def short_of_memory() -> Picture:
    changed = served().node("n2", memory_mb=9000).then(5.0)
    return changed.failing("n2", Severity.DEGRADED, check="memory", event=False, text="7900 MB")


def test_nor_does_the_check_that_compares_the_machine_with_it_and_both_sizes_are_named() -> None:
    found = short_of_memory()
    assert (action_types(found.plan()), cases(found.then())) == ([], [])
    (text,) = events(found, "case.withheld")
    assert "RealMemory=9000" in text
    assert "RealMemory=8000" in text


def test_a_size_that_a_restarted_slurmctld_has_from_slurm_conf_is_none_with_which_the_machine_served() -> None:
    """Until slurmd has registered with it; until then slurmctld does not know since when slurmd runs."""
    changed = served().node("n2", memory_mb=9000, slurmd_started=None).then(5.0)
    registered = changed.node("n2", slurmd_started=changed.now)
    assert cases(slurm_drains(registered, MEMORY).then()) == []


def test_a_size_with_which_a_new_slurmd_has_served_is_the_one_that_counts() -> None:
    changed = served().node("n2", memory_mb=9000)
    settled = changed.node("n2", slurmd_started=changed.now).then(60.0)
    picture = slurm_drains(settled, MEMORY).then()
    assert [case.rung for case in cases(picture)] == [Advice.REBOOT]
