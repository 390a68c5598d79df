"""A shim waits: evidence decides between retry, requeue and stop, and no shim waits for ever."""

from dataclasses import replace

import pytest

from steward.model.action import AnswerAsk, CheckNow, DownNode, RequeueJob
from steward.model.ask import Answer, Ask, AskKind
from steward.model.case import CaseStep
from steward.model.health import Severity
from steward.model.ids import AskId, JobId
from steward.model.job import JobState
from steward.model.job_report import Lean, LogSign
from steward.model.observed import Freshness
from steward.model.resume import Attempt, Decision
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why
from steward.model.witness import Witness
from steward.policy.controls import pause
from tests.builders.picture import T0, Picture, a_cluster, action_types, names

STEP, BATCH = AskKind.STEP, AskKind.BATCH


def asked(kind: AskKind = STEP, on: tuple[str, ...] = ("n1", "n2", "n3")) -> Picture:
    return a_cluster().job(on=on).opted_in().then().ask(kind)


def answers(picture: Picture) -> list[tuple[Answer, frozenset[str]]]:
    return [(a.answer, a.exclude) for a in picture.plan().actions if isinstance(a, AnswerAsk)]


def excised(picture: Picture, node: str = "n2") -> Picture:
    """It is marked down, and Slurm took it out of the job (--no-kill)."""
    return picture.then().marked(node).change_job(nodes=names("n1", "n2", "n3") - {node}).after(0.1)


def test_a_failure_makes_the_jobs_nodes_be_checked_first() -> None:
    (check,) = asked().actions()
    assert isinstance(check, CheckNow)
    assert check.nodes == names("n1", "n2", "n3")


def budget(picture: Picture) -> float:
    (check,) = [a for a in picture.plan().actions if isinstance(a, CheckNow)]
    return check.budget_s


def test_a_step_that_fails_soon_after_its_run_began_or_after_another_one_costs_half_a_second() -> None:
    working = a_cluster().job(started=T0).opted_in().then()
    assert budget(working.after(3).ask(STEP)) == 0.5
    assert budget(working.after(15).ask(STEP)) == pytest.approx(1.5)
    assert budget(working.after(600).ask(STEP)) == 2.0
    failed = working.after(600).ask(STEP).then(0.1).checked("n1", "n2", "n3").then()
    assert budget(failed.see(asks=()).after(1).ask(STEP, node="n2")) == 0.5


def test_a_script_that_fails_soon_and_a_step_that_may_run_again_without_evidence_are_looked_at_in_full() -> None:
    working = a_cluster().job(started=T0).opted_in().then()
    assert budget(working.after(3).ask(BATCH)) == 2.0
    daring = a_cluster().job(started=T0 - 3600).opted_in(mode=ResumeMode.parse("any:2")).then()
    assert budget(daring.after(3).ask(STEP, mode=ResumeMode.parse("any:2"))) == 2.0


def test_without_evidence_the_failure_is_the_jobs_own() -> None:
    picture = asked().then(0.1).checked("n1", "n2", "n3")
    assert answers(picture) == [(Answer.STOP, frozenset())]
    assert "resume.no_evidence" in str(picture.plan().events)


def test_an_output_that_is_still_read_is_waited_for_as_long_as_for_checks() -> None:
    """On a busy node the child that reads is late; what it finds decides."""
    daring = a_cluster().job(on=("n1", "n2", "n3")).opted_in(mode=ResumeMode.parse("any:2")).then(600)
    asked_so = daring.ask(BATCH, mode=ResumeMode.parse("any:2"), is_reading=True)
    picture = asked_so.then(0.1).checked("n1", "n2", "n3")
    assert picture.actions() == []
    (ask,) = picture.seen.asks
    sign = LogSign(sign="user.python", lean=Lean.USER, strong=True, line="KeyError: 'x'", order=0)
    whole = picture.see(asks=(replace(ask, signs=(sign,), is_reading=False),))
    assert answers(whole) == [(Answer.STOP, frozenset())]
    assert "resume.user_error" in str(whole.plan().events)
    late = picture.after(2.0)
    assert action_types(late.plan()) == [RequeueJob], "nothing is waited for without end"


def test_what_the_output_says_is_not_waited_for_where_a_node_is_the_cause() -> None:
    picture = asked().lost("n2").then().marked("n2").change_job(nodes=names("n1", "n3"))
    reading = tuple(replace(ask, is_reading=True) for ask in picture.seen.asks)
    assert answers(picture.see(asks=reading)) == [(Answer.RETRY, names("n2"))]


def test_a_node_that_does_not_answer_the_check_may_be_frozen_and_is_waited_for() -> None:
    picture = asked().then(0.1).checked("n1", "n3")
    assert answers(picture.after(5)) == []
    assert answers(picture.after(6.1)) == [(Answer.STOP, frozenset())]


def test_a_head_that_just_began_waits_for_the_agents_it_knew_before_it_calls_a_failure_the_users() -> None:
    """n2 died while the head was killed: this head has never heard of it."""
    known = asked().then().see(agents_since=T0 - 1.0)
    checked = known.then(0.1).checked("n1", "n3")
    here = {name: view for name, view in checked.seen.agents.items() if name != "n2"}
    assert answers(checked.see(agents=here).after(10.0)) == []
    assert answers(excised(checked.after(14.5).lost("n2"))) == [(Answer.RETRY, names("n2"))]


def test_a_failure_seen_before_the_frozen_node_is_not_called_the_users() -> None:
    picture = asked().then(0.1).checked("n1", "n3").after(3).lost("n2")
    assert action_types(picture.plan()) == [DownNode]
    assert answers(excised(picture)) == [(Answer.RETRY, names("n2"))]


def test_a_failure_while_both_services_of_a_node_are_restarted_is_its_own() -> None:
    """Slurm has no answer there either, until slurmd is back."""
    silent = asked().agent_lost("n2").node("n2", responding=False).then(0.1).checked("n1", "n3")
    restarted = silent.agent("n2", leaves=True).witnessed("n2", Witness.REFUSED)
    assert answers(restarted.after(10)) == [(Answer.STOP, frozenset())]
    assert action_types(silent.agent("n2", fell_silent=True).after(10).plan()) == [DownNode]


def test_a_slurmd_that_does_not_respond_beside_an_agent_that_is_heard_is_no_fault_of_the_node() -> None:
    """Any user can fill its port: the job of another would lose its run."""
    full = asked().node("n2", responding=False).then(0.1).checked("n1", "n2", "n3")
    assert answers(full) == [(Answer.STOP, frozenset())]


def test_a_dead_node_is_out_before_the_step_is_tried_again() -> None:
    picture = asked().lost("n2")
    assert answers(picture) == []
    marked = picture.then().marked("n2")
    assert answers(marked) == []
    assert answers(marked.change_job(nodes=names("n1", "n3"))) == [(Answer.RETRY, names("n2"))]


def test_a_node_that_an_administrator_marked_down_and_slurm_took_out_of_the_job_is_evidence() -> None:
    """Also when its slurmd, which lives, brought it back at once."""
    picture = asked().then(0.1).change_job(nodes=names("n1", "n3")).after(0.1)
    assert answers(picture) == [(Answer.RETRY, names("n2"))]


def test_a_node_that_was_taken_out_long_before_the_failure_is_no_evidence() -> None:
    shrunk = a_cluster().job().opted_in().then(0.1).change_job(nodes=names("n1", "n3"))
    failed = shrunk.then().after(3600.0).ask(STEP).then(0.1).checked("n1", "n3")
    assert answers(failed) == [(Answer.STOP, frozenset())]


def test_a_job_that_slurm_requeued_meanwhile_is_not_requeued_again() -> None:
    picture = asked(BATCH).lost("n2").then().marked("n2").requeued()
    actions = picture.actions()
    assert answers(picture) == [(Answer.REQUEUE, frozenset())]
    assert not [a for a in actions if isinstance(a, RequeueJob)]
    assert picture.plan().memory.jobs[7].resumes == 1  # type: ignore[index]


def test_a_script_that_asks_while_its_step_brought_the_requeue_under_way_costs_no_second_resume() -> None:
    """Slurm 22.05 does not say what a job that it clears away will be."""
    step = asked(STEP).failing("n1", Severity.DEGRADED, event=False).then().marked("n1").after(0.1)
    ending = step.then(0.1).change_job(state=JobState.UNKNOWN, flags=frozenset({"COMPLETING"})).see(asks=())
    script = ending.ask(BATCH)
    assert answers(script) == [(Answer.STOP, frozenset())]
    back = script.then(0.1).see(asks=()).requeued().plan()
    assert back.memory.jobs[7].resumes == 1  # type: ignore[index]


def test_a_batch_script_on_good_hosts_is_requeued_without_the_culprit() -> None:
    picture = excised(asked(BATCH).lost("n2"))
    (requeue,) = [a for a in picture.plan().actions if isinstance(a, RequeueJob)]
    assert requeue.exclude == names("n2")
    assert answers(picture) == []
    assert answers(picture.then(0.1).requeued()) == [(Answer.REQUEUE, frozenset())]


def test_a_bad_batch_host_means_requeue_not_retry() -> None:
    picture = asked(STEP).failing("n1", Severity.DEGRADED, event=False).then().marked("n1").after(0.1)
    assert [type(a) for a in picture.actions() if isinstance(a, RequeueJob | AnswerAsk)] == [RequeueJob]


def test_a_degraded_node_is_drained_and_the_step_retried_on_the_others() -> None:
    picture = asked(STEP).failing("n2", Severity.DEGRADED, event=False)
    assert answers(picture) == []
    assert answers(picture.then().marked("n2")) == [(Answer.RETRY, names("n2"))]


def test_a_retry_that_fails_at_once_becomes_a_requeue() -> None:
    picture = excised(asked().lost("n2")).then(2)
    flop = picture.see(asks=()).ask(STEP, attempt=2, id=7, node="n3")
    assert [type(a) for a in flop.actions() if isinstance(a, RequeueJob | AnswerAsk)] == [RequeueJob]


def test_an_old_fault_does_not_excuse_a_much_later_failure() -> None:
    picture = excised(asked().lost("n2")).then(2).see(asks=()).wait(120).ask(STEP, attempt=2, node="n3")
    assert answers(picture.then(0.1).checked("n1", "n3")) == [(Answer.STOP, frozenset())]


def test_an_xid_within_the_window_is_evidence_even_where_checks_only_report() -> None:
    picture = asked(BATCH).failing("n2", check="gpu")
    picture = replace(picture, want=replace(picture.want, modes={"gpu": "report"}))
    assert action_types(picture.plan()) == [RequeueJob]


@pytest.mark.parametrize("ago", [601, 5000])
def test_a_fault_long_before_the_failure_is_no_evidence(ago: float) -> None:
    picture = asked(BATCH)
    old = picture.failing("n2", check="gpu", at=picture.now - ago)
    old = replace(old, want=replace(old.want, modes={"gpu": "report"}))
    assert answers(old.then(0.1).checked("n1", "n2", "n3")) == [(Answer.STOP, frozenset())]


def test_a_node_that_is_lost_in_an_outage_speaks_for_its_job_though_the_clock_was_set_forward() -> None:
    picture = a_cluster(8).job().opted_in().then().lost("n2", "n5", "n6", "n7").then(3600.0).ask(BATCH)
    actions = picture.witnessed("n2", Witness.SILENT).actions()
    assert [type(a) for a in actions if isinstance(a, RequeueJob | AnswerAsk)] == [RequeueJob]


def test_a_run_that_began_on_a_node_which_was_lost_all_along_has_evidence() -> None:
    outage = a_cluster(8).lost("n2", "n5", "n6", "n7").then(90.0)
    picture = outage.job(started=outage.now).opted_in().then(1).ask(BATCH).witnessed("n2", Witness.SILENT)
    assert [type(a) for a in picture.actions() if isinstance(a, RequeueJob | AnswerAsk)] == [RequeueJob]


def test_a_job_that_seems_to_begin_in_the_future_has_its_evidence_all_the_same() -> None:
    """The clock was set back while no head ran."""
    picture = a_cluster(8).job(started=T0 + 3600.0).opted_in().then().lost("n2", "n5", "n6", "n7").then(5).ask(BATCH)
    actions = picture.witnessed("n2", Witness.SILENT).down("n2", "Not responding").actions()
    assert [type(a) for a in actions if isinstance(a, RequeueJob | AnswerAsk)] == [RequeueJob]


def test_a_node_that_came_back_just_as_the_run_began_on_it_is_not_its_culprit() -> None:
    """Slurm tells the begin in whole seconds, and we see a moment later that it uses the node."""
    repaired = a_cluster().lost("n2").then().marked("n2").then(5.3)
    (case,) = repaired.memory.cases.values()
    case = replace(case, step=CaseStep.CLOSED, returned=repaired.now, closed=repaired.now)
    sound = replace(a_cluster(), now=repaired.now, memory=replace(repaired.memory, cases={case.id: case}))
    began = sound.job(started=float(int(repaired.now))).opted_in().then(1)
    assert answers(began.ask(STEP).then(0.1).checked("n1", "n2", "n3")) == [(Answer.STOP, frozenset())]


def test_suspicions_are_no_evidence() -> None:
    picture = asked(BATCH).failing("n2", Severity.SUSPECT)
    assert answers(picture.then(0.1).checked("n1", "n2", "n3")) == [(Answer.STOP, frozenset())]


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.TIMEOUT, JobState.COMPLETED])
def test_a_job_that_is_over_is_not_resumed_whatever_the_evidence(state: JobState) -> None:
    picture = asked(BATCH).lost("n2").change_job(state=state)
    assert answers(picture) == [(Answer.STOP, frozenset())]


@pytest.mark.parametrize(("state", "flags"), [(JobState.UNKNOWN, {"COMPLETING"}), (JobState.FAILED, set())])
def test_what_slurm_ends_is_let_go_without_a_ruling_which_is_made_when_it_is_seen_to_have_ended(
    state: JobState, flags: set[str]
) -> None:
    """A node is marked DOWN, or a job makes room: the script asks while Slurm ends it, and is requeued after that."""
    told = asked(BATCH).change_job(state=state, flags=frozenset(flags)).plan()
    assert [a.answer for a in told.actions if isinstance(a, AnswerAsk)] == [Answer.STOP]
    assert told.memory.jobs[JobId(7)].attempts == ()
    assert "job.decided" not in [event.kind for event in told.events]


def test_a_job_whose_budget_is_spent_stops_and_says_so() -> None:
    picture = asked(BATCH).resume(max_resumes=0).lost("n2")
    assert answers(picture) == [(Answer.STOP, frozenset())]
    assert "resume.budget" in str(picture.plan().events)


def test_shims_are_answered_in_the_same_order_however_they_come() -> None:
    picture = a_cluster().job(7, on=("n1",)).job(8, on=("n2",)).opted_in(7).opted_in(8).then()
    picture = picture.ask(BATCH, id=7).ask(BATCH, id=8, node="n2").then(0.1).checked("n1", "n2")
    turned = picture.see(asks=tuple(reversed(picture.seen.asks)))
    assert len(answers(picture)) == 2
    assert turned.plan() == picture.plan()


def test_a_shim_waits_on_an_old_picture_only_until_its_deadline() -> None:
    blind = asked(BATCH).see(slurm=Freshness.OLD)
    assert answers(blind) == []
    assert answers(blind.then(60)) == [(Answer.STOP, frozenset())]


def test_a_node_that_died_while_slurm_could_not_be_read_may_still_be_found_out_afterwards() -> None:
    blind = asked(BATCH).agent_lost("n2").see(slurm=Freshness.OLD)
    sighted = blind.then(20).see(slurm=Freshness.FRESH).then(0.1).checked("n1", "n3")
    assert answers(sighted) == []
    assert answers(sighted.after(6.1)) == [(Answer.STOP, frozenset())]
    found = excised(sighted.after(0.4).witnessed("n2", Witness.REFUSED))
    (requeue,) = [a for a in found.plan().actions if isinstance(a, RequeueJob)]
    assert requeue.exclude == names("n2")


def test_a_paused_head_still_requeues_a_job_with_evidence_and_touches_no_node() -> None:
    picture = asked(BATCH).lost("n2")
    paused = replace(picture, memory=pause(picture.memory))
    assert [type(a).__name__ for a in paused.actions()] == ["ProbeNode"]
    down = paused.then(1).down("n2", "Not responding")
    assert [type(a).__name__ for a in down.actions()] == ["RequeueJob"]


def test_a_paused_head_tells_a_failure_without_evidence_to_stop() -> None:
    picture = asked(BATCH).then(0.1).checked("n1", "n2", "n3")
    assert answers(replace(picture, memory=pause(picture.memory))) == [(Answer.STOP, frozenset())]


def test_an_interactive_allocation_cannot_be_requeued() -> None:
    picture = a_cluster().job(is_batch=False).opted_in().then().ask(STEP, attempt=1, node="n2").lost("n2")
    gone = picture.then().marked("n2").then(3.1)
    assert answers(gone) == [(Answer.STOP, frozenset())]


def test_an_answer_that_did_not_arrive_is_given_again_unchanged() -> None:
    picture = asked().then(0.1).checked("n1", "n2", "n3")
    later = picture.then(2.1).lost("n2")
    assert answers(later) == [(Answer.STOP, frozenset())]


def after_an_outage(*away: str) -> Picture:
    """Agents of a job's nodes were gone for a while with those of others: one incident, and no node was touched."""
    picture = a_cluster(8).job(on=("n1", "n2", "n3")).opted_in().then(60)
    return picture.lost(*away).then(3).heard(*away).then(30)


def test_a_node_that_was_away_in_an_outage_speaks_for_its_job_and_is_not_blamed() -> None:
    away = ("n2", "n5", "n6", "n7")
    picture = after_an_outage(*away).ask(STEP).then(0.1).checked("n1", "n2", "n3")
    assert answers(picture) == [(Answer.RETRY, frozenset())]


def test_after_an_outage_a_node_that_may_be_dead_now_is_waited_for() -> None:
    picture = after_an_outage("n2", "n5", "n6", "n7").agent_lost("n3").ask(STEP).then(0.1).checked("n1", "n2")
    assert answers(picture) == []
    assert answers(excised(picture.lost("n3"), "n3")) == [(Answer.RETRY, names("n3"))]


def test_an_outage_of_others_or_before_the_run_speaks_for_nobody() -> None:
    away = ("n4", "n5", "n6", "n7")
    others = after_an_outage(*away).ask(STEP).then(0.1).checked("n1", "n2", "n3")
    assert answers(others) == [(Answer.STOP, frozenset())]

    away = ("n2", "n5", "n6", "n7")
    over = after_an_outage(*away)
    anew = over.change_job(started=over.now).then(10).ask(STEP).then(0.1).checked("n1", "n2", "n3")
    assert answers(anew) == [(Answer.STOP, frozenset())]


def step_failed(picture: Picture, number: int) -> Ask:
    (ask,) = picture.see(asks=()).ask(STEP).seen.asks
    return replace(ask, id=AskId(f"step-{number}"))


def test_steps_that_fail_by_themselves_do_not_make_the_job_forget_its_resumes() -> None:
    why = Why(rule="resume.evidence", text="n2 died", evidence=())
    retry = Attempt(decided_for="a1", decision=Decision.RETRY, why=why, at=T0 - 3600.0, culprits=names("n2"))
    picture = a_cluster().job(on=("n1", "n3")).opted_in().then()
    mem = replace(picture.memory.jobs[JobId(7)], attempts=(retry,))
    picture = replace(picture, memory=replace(picture.memory, jobs={mem.id: mem}))
    for number in range(25):
        picture = picture.see(asks=(step_failed(picture, number),)).then(0.1).checked("n1", "n3").then(1.0)
    attempts = picture.memory.jobs[JobId(7)].attempts
    assert attempts[0] == retry
    assert [one.decided_for for one in attempts[1:]] == [f"step-{number}" for number in range(5, 25)]


def test_a_shim_is_remembered_for_a_day_by_when_it_was_heard_and_judged() -> None:
    blind = asked().see(slurm=Freshness.OLD).then(1.0)
    (ask,) = blind.memory.asks.values()
    assert (ask.at, ask.judged) == (T0, None)
    judged = blind.see(slurm=Freshness.FRESH).then(1.0)
    (ask,) = judged.memory.asks.values()
    assert (ask.at, ask.judged) == (T0, T0 + 1.0)
    gone = judged.see(asks=()).after(86_400.0)
    assert judged.see(asks=()).then().memory.asks == judged.memory.asks
    assert gone.plan().memory.asks == {}


def test_what_a_user_asks_about_anothers_job_tells_nobody_of_that_job_however_often_he_asks() -> None:
    """A job that did not opt in: which steps he names, and how often, is his own to choose."""
    busy = a_cluster().job()
    for step in range(50):
        busy = busy.ask(STEP, uid=1999, step=f"x{step}")
    plan = busy.plan()
    assert [event.kind for event in plan.events] == ["ask.foreign"]
    assert {answer for answer, _ in answers(busy)} == {Answer.STOP}
    again = busy.then(60).see(asks=()).ask(STEP, uid=1999, step="y")
    assert not [event for event in again.plan().events if event.job is not None]


def test_an_ask_about_a_job_that_slurm_does_not_know_is_answered_without_an_event() -> None:
    unknown = a_cluster().job().ask(STEP, id=4_000_000).then(2.0)
    assert answers(unknown) == [(Answer.STOP, frozenset())]
    assert unknown.plan().events == ()
    unread = a_cluster().job().ask(STEP, id=4_000_000).then().see(slurm=Freshness.OLD).after(3600)
    assert answers(unread) == [(Answer.STOP, frozenset())]
    assert "job.decided" not in {event.kind for event in unread.plan().events}
