"""A node on which jobs could not begin or end serves again only when a job of Steward's own began and ended there: the
checks of its agent say nothing of the Prolog, of slurmd's spool or of another plug-in."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import (
    DrainNode,
    LaunchInstance,
    RebootInstance,
    ReleaseNodes,
    ReserveNodes,
    ReturnNode,
    SubmitDeep,
)
from steward.model.case import Case, CaseStep, Remedy
from steward.model.deep import DeepCause, DeepResult, DeepRun, DeepState, slurm_name
from steward.model.health import Advice, Severity
from steward.model.ids import CaseId, JobId
from steward.model.job import JobState
from steward.model.node import Reason
from steward.views.explain import explain_node
from tests.builders.deep import reserved
from tests.builders.picture import Picture, a_cluster, action_types, n
from tests.builders.slurm_drains import slurm_drains

PROLOG = "Prolog error"
BROKEN = (PROLOG, "Epilog error", "Prolog/Epilog failure", "batch job complete failure", "SlurmdSpoolDir is full")
WELL: dict[str, Any] = {"flags": frozenset(), "reason": None}
TRIAL = 900


def the_case(picture: Picture) -> Case:
    (case,) = picture.memory.cases.values()
    return case


def the_test(picture: Picture) -> DeepRun:
    """The newest one."""
    return max(picture.memory.deeps.values(), key=lambda run: run.asked)


def kinds(picture: Picture) -> list[type]:
    return action_types(picture.plan())


def checked(picture: Picture) -> Picture:
    """Its checks passed."""
    return picture.after(2.0).agent("n2", checked_at=picture.now + 2.0).see(reservations_at=picture.now)


def to_be_tested(text: str = PROLOG, picture: Picture | None = None) -> Picture:
    """Its checks have passed, and the test was asked for."""
    taken_out = slurm_drains(picture or a_cluster(), text).then().then()
    return checked(taken_out).then()


def on_trial(picture: Picture, **job: Any) -> Picture:
    """The node was given back inside the reservation, and the test's job is as said."""
    held = reserved(picture, the_test(picture)).then().node("n2", **WELL).then()
    return with_job(held, **job)


def with_job(picture: Picture, **job: Any) -> Picture:
    name = slurm_name(the_test(picture).token)
    return picture.job(
        TRIAL, on=("n2",), **{"user_id": 64030, "name": name, "partition": name, "reservation": name, **job}
    )


def over(picture: Picture) -> Picture:
    return picture.then(2.0).then()


ENDED_WELL: dict[str, Any] = {"state": JobState.COMPLETED}
KILLED: dict[str, Any] = {"state": JobState.CANCELLED}


@pytest.mark.parametrize("text", BROKEN)
def test_the_node_is_kept_for_a_job_of_our_own_before_it_is_given_back(text: str) -> None:
    picture = to_be_tested(text)
    run = the_test(picture)
    assert (run.cause, run.kinds, run.nodes) == (DeepCause.LAUNCH, frozenset(), frozenset({n("n2")}))
    assert (the_case(picture).step, run.state) == (CaseStep.RETURN, DeepState.RESERVED)
    assert ReserveNodes in kinds(picture.after(60.0))
    assert ReturnNode not in kinds(picture)
    held = reserved(picture, run)
    assert {ReturnNode, SubmitDeep} <= set(kinds(held))
    (job,) = [action for action in held.plan().actions if isinstance(action, SubmitDeep)]
    assert job.argv == ("/bin/true",)


def test_other_reasons_of_slurms_need_no_such_test() -> None:
    taken_out = slurm_drains(a_cluster(), "Kill task failed (JobId=7 StepId=0)").then().then()
    assert ReturnNode in kinds(checked(taken_out))


def test_it_serves_when_that_job_began_and_ended_well() -> None:
    running = on_trial(to_be_tested()).then()
    assert (the_case(running).step, ReleaseNodes in kinds(running)) == (CaseStep.RETURN, False)
    well = over(with_job(running, **ENDED_WELL))
    assert (the_test(well).results, the_case(well).step) == ({n("n2"): DeepResult.PASSED}, CaseStep.CLOSED)
    assert ReleaseNodes in kinds(well.after(60.0))


@pytest.mark.parametrize(
    "job",
    [
        KILLED,
        {"state": JobState.FAILED, "exit_status": 256},
        {"state": JobState.PENDING, "reason": "launch failed requeued held", "restarts": 1},
    ],
)
def test_when_that_job_could_not_begin_the_next_rung_is_due_and_nobody_elses_job_came_there(
    job: dict[str, Any],
) -> None:
    failed = on_trial(to_be_tested()).then()
    again = Reason(text=PROLOG, user="slurm", at=failed.now)
    failed = with_job(failed.node("n2", flags=frozenset({"DRAIN"}), reason=again), **job)
    assert ReturnNode not in kinds(failed), "Slurm has just taken it out again"
    later = over(failed)
    assert the_test(later).results == {n("n2"): DeepResult.FAILED}
    assert the_case(later).rung is Advice.REBOOT
    explained = explain_node(n("n2"), later.seen, later.want, later.memory, later.now)
    assert any("launch test" in line and "Failed" in line for line in explained)


def test_a_users_job_that_was_moved_into_its_partition_is_not_the_test() -> None:
    """Slurm lets any user move his waiting job there; he could have a sound node rebooted, or a broken one serve."""
    running = on_trial(to_be_tested()).then()
    name = slurm_name(the_test(running).token)
    moved = running.job(TRIAL + 1, on=(), state=JobState.CANCELLED, name=name, partition=name, user_id=1000)
    assert the_test(over(moved)).results == {}
    assert the_case(over(with_job(over(moved), **ENDED_WELL))).step is CaseStep.CLOSED


def test_a_node_that_slurm_left_in_service_is_taken_out_before_the_reservation_ends() -> None:
    failed = with_job(on_trial(to_be_tested()).then(), **KILLED).then(2.0)
    assert DrainNode in kinds(failed)
    assert ReleaseNodes not in kinds(failed)


def test_a_test_that_cannot_be_made_leaves_the_node_where_slurm_put_it_and_speaks_against_no_machine() -> None:
    picture = to_be_tested()
    for _ in range(100):
        assert not {ReturnNode, RebootInstance, LaunchInstance} & set(kinds(picture))
        picture = picture.then(20.0).agent("n2", checked_at=picture.now + 20.0)
        if the_case(picture).step is CaseStep.HELD:
            assert the_case(picture).rung is Advice.NONE
            return
    raise AssertionError("it waits for ever")


def test_a_new_machine_on_which_jobs_cannot_begin_either_is_left_to_a_person() -> None:
    picture = to_be_tested()
    case = replace(the_case(picture), rung=Advice.REPLACE, old=None)
    picture = replace(picture, memory=replace(picture.memory, cases={case.id: case}, deeps={})).then()
    failed = with_job(on_trial(picture).then(), **KILLED)
    failed = failed.node("n2", flags=frozenset({"DRAIN"}), reason=Reason(text=PROLOG, user="slurm", at=failed.now))
    later = over(failed)
    assert the_case(later).step is CaseStep.HELD
    assert LaunchInstance not in kinds(later)


def test_it_is_tested_where_deep_checks_are_switched_off_too() -> None:
    picture = a_cluster()
    picture = replace(picture, want=replace(picture.want, deep=picture.want.deep.model_copy(update={"enabled": False})))
    assert the_test(to_be_tested(picture=picture)).state is DeepState.RESERVED


def test_a_check_in_report_mode_that_looks_at_that_very_thing_has_a_say_in_the_return() -> None:
    picture = a_cluster()
    picture = replace(picture, want=replace(picture.want, modes={"slurm.spool": "report", "os.dstate": "report"}))
    for text, check in (("SlurmdSpoolDir is full", "slurm.spool"), ("Kill task failed", "os.dstate")):
        full = slurm_drains(picture.failing("n2", Severity.DEGRADED, check=check, event=False), text).then().then()
        assert the_case(checked(full).then()).step is CaseStep.VERIFY
        assert the_case(checked(full).agent("n2", findings=()).then()).step is CaseStep.RETURN
    off = replace(picture, want=replace(picture.want, modes={"slurm.spool": "off"}))
    full = slurm_drains(off.failing("n2", Severity.DEGRADED, check="slurm.spool", event=False), BROKEN[-1])
    assert the_case(checked(full.then().then()).then()).step is CaseStep.RETURN


def test_the_job_of_the_test_is_nobodys_job_to_resume() -> None:
    assert JobId(TRIAL) not in on_trial(to_be_tested()).then().memory.jobs


def put_back(picture: Picture, id: int, uid: int, text: str = PROLOG) -> Picture:
    """Slurm drains n2 because this user's job could not begin there, and puts the job back."""
    fields: dict[str, Any] = {"state": JobState.PENDING, "reason": "launch failed requeued held", "restarts": 1}
    return slurm_drains(picture, text).job(id, on=(), user_id=uid, submitted=picture.now, started=None, **fields)


def served_again(picture: Picture) -> Picture:
    """Its checks and the test passed, and it takes jobs."""
    tested = checked(picture.then().then()).then()
    closed = over(with_job(on_trial(tested).then(), **ENDED_WELL)).then(700.0)
    assert [case.step for case in closed.memory.cases.values() if case.is_open] == []
    return closed


@pytest.mark.parametrize(
    ("users", "rung"),
    [((1000, 1000, 1000), Advice.NONE), ((1000, 1001), Advice.REBOOT), ((1000, 1000, 1001, 1000), Advice.REBOOT)],
)
def test_jobs_of_one_user_that_cannot_begin_there_again_and_again_cost_no_reboot(
    users: tuple[int, ...], rung: Advice
) -> None:
    """What he brings about by himself, as by files that the site's Prolog meets: Steward's own job begins each time."""
    *before, last = users
    picture = a_cluster()
    for number, uid in enumerate(before):
        picture = served_again(put_back(picture, 20 + number, uid))
    again = put_back(picture, 40, last).then()
    assert [case.rung for case in again.memory.cases.values() if case.is_open] == [rung]


def test_a_user_of_whom_a_job_was_there_each_time_may_have_brought_about_all() -> None:
    """Others' jobs end there at the same moments, by chance or because he waits for them."""
    picture = served_again(put_back(a_cluster(), 20, 1000))
    beside = {"state": JobState.COMPLETED, "user_id": 1001, "ended": picture.now}
    again = put_back(picture, 21, 1000).job(22, on=("n2",), **beside).then()
    assert [case.rung for case in again.memory.cases.values() if case.is_open] == [Advice.NONE]


def test_a_job_that_slurm_does_not_show_any_more_is_nobodys() -> None:
    picture = served_again(slurm_drains(a_cluster(), PROLOG))
    again = slurm_drains(picture, PROLOG).then()
    assert [case.rung for case in again.memory.cases.values() if case.is_open] == [Advice.NONE]


def rebooted_often(last: int) -> Picture:
    """Slurm took it out for jobs of user 1000, then of `last`; it was rebooted as often as may be today, and the test
    of a job failed."""
    again = put_back(served_again(put_back(a_cluster(), 20, 1000)), 21, last).then()
    (case,) = (case for case in again.memory.cases.values() if case.is_open)
    made = tuple(
        Remedy(at=again.now - 60.0, rung=Advice.REBOOT, node=n("n2"), instance=None, case=of, check=case.check)
        for of in (CaseId(f"c9{number}-1") for number in range(again.want.repair.budgets.reboots_per_day))
    )
    used = replace(case, step=CaseStep.RELEASE, rung=Advice.REBOOT)
    memory = replace(again.memory, cases={**again.memory.cases, case.id: used}, remedies={case.hardware: made})
    return replace(again, memory=memory).then(5.0).then()


@pytest.mark.parametrize(("last", "step"), [(1000, CaseStep.HELD), (1001, CaseStep.LAUNCH)])
def test_jobs_of_one_user_that_cannot_begin_there_cost_no_machine_however_often(last: int, step: CaseStep) -> None:
    picture = rebooted_often(last)
    assert [case.step for case in picture.memory.cases.values() if case.is_open] == [step]


def without_reboots() -> Picture:
    picture = a_cluster()
    slots = {name: replace(slot, reboots=False) for name, slot in picture.want.slots.items()}
    return replace(picture, want=replace(picture.want, slots=slots))


@pytest.mark.parametrize("text", BROKEN)
def test_nor_where_no_machine_can_be_rebooted_and_steward_s_own_job_cannot_begin_either(text: str) -> None:
    """Files that he left on the node are there for every Prolog, and no reboot shows whose fault it is."""
    picture = served_again(put_back(without_reboots(), 20, 1000))
    tested = on_trial(checked(put_back(picture, 21, 1000, text).then().then()).then()).then()
    failed = with_job(tested, **KILLED)
    failed = failed.node("n2", flags=frozenset({"DRAIN"}), reason=Reason(text=text, user="slurm", at=failed.now))
    later = over(failed)
    (case,) = (case for case in later.memory.cases.values() if case.is_open)
    assert (case.step, LaunchInstance in kinds(later)) == (CaseStep.HELD, False)
    assert "no machine is replaced for what a job can do" in case.why.text


def test_of_two_users_it_is_replaced_where_no_machine_can_be_rebooted() -> None:
    again = put_back(served_again(put_back(without_reboots(), 20, 1000)), 21, 1001).then()
    assert [case.rung for case in again.memory.cases.values() if case.is_open] == [Advice.REPLACE]


def bad_after_reboot(check: str) -> Picture:
    """Neither the checks nor a reboot helped, and a check finds something."""
    taken_out = slurm_drains(a_cluster(), PROLOG).then().then()
    found = taken_out.failing("n2", Severity.INFO, check=check, text="in use: / 100 %", event=False)
    case = replace(the_case(found), rung=Advice.REBOOT, step=CaseStep.VERIFY)
    return replace(found, memory=replace(found.memory, cases={case.id: case})).wait(400.0)


@pytest.mark.parametrize(
    ("check", "step"), [("disk", CaseStep.HELD), ("slurm.spool", CaseStep.HELD), ("other", CaseStep.LAUNCH)]
)
def test_where_a_disk_is_full_and_no_job_begins_the_machine_is_not_replaced(check: str, step: CaseStep) -> None:
    """Users can fill the new machine's, too."""
    later = bad_after_reboot(check)
    assert the_case(later).step is step
    assert ("users filled a disk (in use: / 100 %)" in the_case(later).why.text) is (step is CaseStep.HELD)


@pytest.mark.parametrize(("check", "step"), [("disk", CaseStep.HELD), ("other", CaseStep.LAUNCH)])
def test_nor_where_it_does_not_come_back_from_its_reboot(check: str, step: CaseStep) -> None:
    taken_out = slurm_drains(a_cluster(), "SlurmdSpoolDir is full").then().then()
    found = taken_out.failing("n2", Severity.INFO, check=check, text="in use: / 100 %", event=False)
    case = replace(the_case(found), rung=Advice.REBOOT, step=CaseStep.LAUNCH)
    rebooting = replace(found, memory=replace(found.memory, cases={case.id: case}))
    late = rebooting.wait(found.want.repair.budgets.reboot_timeout_s + 30.0)
    rung = {CaseStep.HELD: Advice.REBOOT, CaseStep.LAUNCH: Advice.REPLACE}[step]
    assert (the_case(late).step, the_case(late).rung) == (step, rung)
