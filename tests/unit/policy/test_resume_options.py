"""What a job's own options and the site's do to its resumes: in stories, from the picture to the wishes."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import AnswerAsk, CheckNow, NudgeJob, RequeueJob, SignalJob
from steward.model.ask import Answer, AskKind
from steward.model.ids import AskId
from steward.model.job import JobState
from steward.model.job_report import Lean, Progress
from steward.model.observed import Freshness
from steward.model.resume import Decision
from steward.model.resume_policy import ResumeDefault, ResumePolicy
from steward.policy.job.options import resume_facts
from tests.builders.failures import a_sign
from tests.builders.picture import T0, USER, Picture, a_cluster, action_types, n, names
from tests.builders.resumed import THREE, J, failed, memory, mode, opted, rules, wishes

DAY_S = 86_400.0


def test_any_requeues_a_script_that_failed_on_good_nodes_after_they_were_checked() -> None:
    fresh = opted("any:1").ask(AskKind.BATCH, mode=mode("any:1"))
    assert action_types(fresh.plan()) == [CheckNow]
    (requeue,) = wishes(failed("any:1"), RequeueJob)
    assert isinstance(requeue, RequeueJob)
    assert requeue.exclude == frozenset()
    assert (memory(failed("any:1")).resumes, memory(failed("any:1")).unproven) == (1, 1)


@pytest.mark.parametrize("job", ["any:1", "1"])
def test_any_of_its_own_runs_a_failed_step_again_in_its_place(job: str) -> None:
    step = opted(job).ask(AskKind.STEP, mode=mode("any:1"), own=True).then(0.1).checked(*THREE)
    (answer,) = wishes(step, AnswerAsk)
    assert isinstance(answer, AnswerAsk)
    assert answer.answer is Answer.RETRY


@pytest.mark.parametrize("ask", [{}, {"replay": False}, {"own": True, "replay": False}])
def test_any_has_no_job_requeued_for_a_step_that_failed_on_good_nodes(ask: dict[str, Any]) -> None:
    (answer,) = failed("any:1", AskKind.STEP, **ask).plan().actions
    assert isinstance(answer, AnswerAsk)
    assert answer.answer is Answer.STOP


def test_a_script_that_slurm_lost_before_it_began_is_brought_back_and_its_node_not_blamed() -> None:
    picture = failed("1", script_gone=True, status=2 << 8)
    assert action_types(picture.plan()) == [RequeueJob]
    (attempt,) = memory(picture).attempts
    assert (attempt.culprits, attempt.why.evidence[0]) == (
        frozenset(),
        "n1: Slurm had lost the script there before it began",
    )


def test_a_failure_whose_log_speaks_for_the_machines_is_looked_at_twice() -> None:
    sign = a_sign(Lean.INFRA, "GPU has fallen off the bus")
    first = failed("1", signs=(sign,))
    assert first.plan().actions == ()
    again = first.then(6.0)
    assert action_types(again.plan()) == [CheckNow]
    (answer,) = wishes(again.then(0.1).checked(*THREE), AnswerAsk)
    assert isinstance(answer, AnswerAsk)
    assert answer.answer is Answer.STOP


def saves(picture: Picture, step: int | None, at: float | None = None) -> Picture:
    told = Progress(job=J, restart=0, node=n("n1"), checkpoint="/c", checkpoint_step=step, checkpointed=at)
    return picture.agent("n1", progress=(told,))


def runs_again(picture: Picture) -> Picture:
    back = picture.then(0.1).requeued().then(2.0).see(asks=()).checked()
    run = back.change_job(state=JobState.RUNNING, nodes=names(*THREE), batch_host=n("n1"), started=back.now)
    return run.then(1000.0)


def fails_again(picture: Picture, restart: int) -> Picture:
    asks = picture.ask(AskKind.BATCH, mode=mode("any:9"), restart=restart, id=7, node="n1", step=f"s{restart}")
    asks = asks.see(asks=tuple(replace(a, id=AskId(f"ask-{restart}")) for a in asks.seen.asks))
    return asks.then(0.1).checked(*THREE).then(0.1)


def story(*steps: int | None) -> Picture:
    """One run after the other fails, each with this newest checkpoint."""
    picture = saves(opted("any:9"), steps[0])
    for number, step in enumerate(steps):
        picture = fails_again(saves(picture, step), number)
        if number + 1 < len(steps):
            picture = runs_again(picture)
    return picture


def test_two_resumes_in_a_row_without_a_new_checkpoint_stop_the_job() -> None:
    assert rules(story(10, 10, 10)) == ["resume.any", "resume.any", "resume.no_progress"]


def test_a_new_checkpoint_in_between_is_progress() -> None:
    assert rules(story(10, 10, 20, 20)) == ["resume.any"] * 4


def test_a_job_whose_checkpoints_are_not_known_is_not_stopped_for_want_of_progress() -> None:
    assert rules(story(None, None, None)) == ["resume.any"] * 3


def stages(*steps: int) -> Picture:
    """One run after the other fails, each a minute after it wrote a checkpoint of this step; before that the job had
    a first stage with many more steps."""
    picture = saves(opted("any:9"), 10_000, T0).then(60.0)
    for number, step in enumerate(steps):
        picture = fails_again(saves(picture, step, picture.now).then(60.0), number)
        if number + 1 < len(steps):
            picture = runs_again(picture)
    return picture


def test_a_job_whose_steps_begin_again_gets_the_last_checkpoint_and_makes_progress() -> None:
    second = stages(300, 500, 700)
    assert rules(second) == ["resume.any"] * 3
    facts = resume_facts(J, second.memory, ResumePolicy())
    assert facts is not None
    assert facts.checkpoint_step == 700


def test_a_job_that_goes_back_and_gets_no_further_than_there_makes_none() -> None:
    assert rules(stages(300, 300, 300)) == ["resume.any", "resume.any", "resume.no_progress"]


def test_the_same_checkpoint_told_anew_is_no_later_one() -> None:
    picture = saves(opted("1"), 40, T0).then(1.0)
    assert memory(saves(picture, 40, T0 + 0.5)).saved == memory(picture).saved


def test_the_newest_checkpoint_is_remembered_when_its_node_is_gone() -> None:
    picture = saves(opted("1"), 40).then(1.0)
    assert picture.then(0.1).agent("n1", progress=()).plan().memory.jobs[J].saved == memory(picture).saved
    assert memory(picture).saved is not None


def third_resume(text: str = "any:9", *, saved: tuple[int | None, ...] = (None, None, None)) -> Picture:
    """Its third requeue within two minutes, each run with its newest checkpoint; it has just come to the queue."""
    picture = opted(f"{text},age=0")
    for restart, step in enumerate(saved):
        picture = fails_again(saves(picture, step), restart)
        if restart < 2:
            back = picture.then(0.1).requeued().then(1.5).see(asks=())
            on = {"state": JobState.RUNNING, "nodes": names(*THREE), "batch_host": n("n1"), "started": back.now}
            picture = back.change_job(7, **on).then(5.0)
    return picture.then(0.1).requeued().see(asks=())


def test_a_job_that_is_resumed_again_and_again_is_hurried_on_only_after_a_while() -> None:
    waits = third_resume()
    (later,) = wishes(waits, NudgeJob)
    assert isinstance(later, NudgeJob)
    assert later.delay_s == pytest.approx(55.0, abs=6.0)
    assert wishes(waits.then(5.0), NudgeJob) == []
    assert waits.wait(40.0).memory.jobs[J].nudges == 0
    assert waits.wait(70.0).memory.jobs[J].nudges > 0


def test_one_that_its_user_lets_begin_later_still_is_left_alone_then() -> None:
    waits = third_resume().then(5.0)
    week = waits.change_job(reason="BeginTime", eligible=waits.now + 7 * 86_400.0).then(5.0)
    assert [wishes(week := week.then(43_200.0), NudgeJob) for _ in range(13)] == [[]] * 13


def test_a_job_that_gets_on_between_its_faults_does_not_wait() -> None:
    assert wishes(third_resume(saved=(10, 20, 30)), NudgeJob) == []
    assert len(wishes(third_resume(saved=(10, 20, 30)).then(1.1), NudgeJob)) == 1
    (put_off,) = wishes(third_resume(saved=(10, 20, 20)), NudgeJob)
    assert isinstance(put_off, NudgeJob)
    assert put_off.delay_s > 0


def test_a_job_may_do_without_back_off() -> None:
    assert len(wishes(third_resume("any:9,backoff=0").then(1.1), NudgeJob)) == 1


def ended(text: str, state: JobState, **resume: Any) -> Picture:
    running = opted(text).resume(**resume)
    return running.then(100).change_job(state=state, ended=running.now + 99, exit_status=15).after(1.0)


def test_a_job_that_asked_for_it_is_requeued_when_its_time_limit_is_over() -> None:
    assert len(wishes(ended("1,timeout=1", JobState.TIMEOUT), RequeueJob)) == 1
    assert wishes(ended("1", JobState.TIMEOUT), RequeueJob) == []
    assert rules(ended("1", JobState.TIMEOUT)) == ["resume.time_limit"]


def test_its_budget_bounds_how_often_a_job_goes_on_after_its_time_limit() -> None:
    assert wishes(ended("1,timeout=1,max=0", JobState.TIMEOUT), RequeueJob) == []


def test_a_job_that_slurm_cancelled_to_make_room_comes_back_where_the_site_wants_it() -> None:
    assert len(wishes(ended("1", JobState.PREEMPTED, preempted=True), RequeueJob)) == 1
    assert wishes(ended("1", JobState.PREEMPTED), RequeueJob) == []


def limited(text: str) -> Picture:
    """600 s of its 900 s are over."""
    return opted(text, time_limit_s=900.0).resume(checkpoint_signal="USR1", checkpoint_before_s=120.0)


def test_a_job_that_goes_on_after_its_time_limit_is_told_to_save_its_state_once() -> None:
    assert wishes(limited("1,timeout=1").after(179.0), SignalJob) == []
    (signal,) = wishes(limited("1,timeout=1").after(180.0), SignalJob)
    assert isinstance(signal, SignalJob)
    assert (signal.job, signal.signal) == (J, "USR1")
    assert wishes(limited("1,timeout=1").after(180.0).then(1.0), SignalJob) == []


@pytest.mark.parametrize(("error", "signals"), [("not tried: no controller", 1), ("retry: scancel took too long", 0)])
def test_a_signal_is_sent_again_only_where_the_job_surely_got_none(error: str, signals: int) -> None:
    told = limited("1,timeout=1").after(180.0)
    (signal,) = wishes(told, SignalJob)
    assert len(wishes(told.then().see(failures={signal.key: error}).then(10.0), SignalJob)) == signals


@pytest.mark.parametrize("read", [Freshness.FRESH, Freshness.OLD])
def test_a_job_that_slurm_lets_run_days_beyond_its_time_limit_is_not_told_again(read: Freshness) -> None:
    told = limited("1,timeout=1").after(180.0)
    (signal,) = wishes(told, SignalJob)
    days = told.then(1.0).then(2 * 86400.0)
    started = days.see(jobs={}, slurm=Freshness.OLD).then(1.0) if read is Freshness.OLD else days
    later = started.see(jobs=told.seen.jobs, slurm=Freshness.FRESH).then(60.0)
    assert wishes(later, SignalJob) == []
    assert signal.key in later.memory.asked


def test_what_a_job_was_told_is_forgotten_a_day_after_and_when_it_is_over() -> None:
    told = limited("1,timeout=1").after(180.0)
    (signal,) = wishes(told, SignalJob)
    over = told.then(1.0).change_job(state=JobState.COMPLETED)
    assert signal.key in over.then(3600.0).memory.asked
    assert signal.key not in over.then(2 * 86400.0).then(1.0).memory.asked


@pytest.mark.parametrize("status", [10, 7 << 8])
def test_a_script_that_ends_by_the_signal_before_its_limit_goes_on(status: int) -> None:
    """A shell without a trap dies of USR1; another one saves and ends with a code of its own."""
    told = limited("1,timeout=1").after(180.0).then(5.0)
    failed = told.ask(AskKind.BATCH, status=status)
    assert [each.job for each in wishes(failed, RequeueJob) if isinstance(each, RequeueJob)] == [J]
    (attempt,) = failed.plan().memory.jobs[J].attempts
    assert (attempt.why.rule, attempt.culprits) == ("resume.told", frozenset())
    assert "Steward told it to save its state before its time limit" in attempt.why.evidence
    over = told.change_job(state=JobState.FAILED, ended=told.now, exit_status=status)
    assert len(wishes(over, RequeueJob)) == 1


def test_a_script_that_fails_before_its_signal_or_whose_signal_slurm_refused_failed_by_itself() -> None:
    before = limited("1,timeout=1").after(100.0).ask(AskKind.BATCH).then(0.1).checked("n1", "n2", "n3")
    assert wishes(before.then(10.0), RequeueJob) == []
    told = limited("1,timeout=1").after(180.0)
    (signal,) = wishes(told, SignalJob)
    refused = told.then(5.0).see(failures={signal.key: "refused: Invalid job id"})
    failed = refused.ask(AskKind.BATCH).then(0.1).checked("n1", "n2", "n3")
    assert wishes(failed, RequeueJob) == wishes(failed.then(10.0), RequeueJob) == []


def test_a_step_that_ends_by_the_signal_is_not_run_again_in_place() -> None:
    told = limited("1,timeout=1").after(180.0).then(5.0)
    failed = told.ask(AskKind.STEP, status=10, own=True).then(0.1).checked("n1", "n2", "n3").then(10.0)
    assert wishes(failed, RequeueJob) == []
    assert failed.memory.jobs[J].attempts[-1].decision is Decision.STOP


def test_a_job_that_ends_at_its_time_limit_gets_no_signal() -> None:
    assert wishes(limited("1").after(181.0), SignalJob) == []


def test_a_job_whose_limit_was_raised_is_told_again_before_the_new_one() -> None:
    told = limited("1,timeout=1").after(180.0).then(1.0).change_job(time_limit_s=1800.0)
    assert wishes(told, SignalJob) == []
    assert len(wishes(told.after(900.0), SignalJob)) == 1


DEFAULT = ResumeDefault(partition="main", qos="high", mode="any:2")


def by_default(**job: Any) -> Picture:
    return a_cluster().resume(default=(DEFAULT,)).job(**job)


def test_the_site_opts_in_jobs_that_say_nothing() -> None:
    found = memory(by_default(qos="high"))
    assert (found.by_default, found.mode.text, found.uid) == (True, "any:2", USER)


@pytest.mark.parametrize("job", [{"qos": "low"}, {"qos": "high", "is_batch": False}])
def test_only_batch_jobs_that_fit_are_opted_in(job: dict[str, Any]) -> None:
    assert by_default(**job).plan().memory.jobs == {}


def test_a_job_that_has_just_begun_may_still_say_what_it_wants() -> None:
    young = by_default(qos="high", started=a_cluster().now - 5)
    assert young.plan().memory.jobs == {}
    assert young.plan().wake_at is not None


def test_a_jobs_own_no_is_stronger_than_the_sites_default_also_when_it_comes_late() -> None:
    assert by_default(qos="high").opted_in(mode=mode("0")).plan().memory.jobs == {}
    late = by_default(qos="high").then(1.0).opted_in(mode=mode("0")).then(1.0)
    assert late.memory.jobs == {}
    assert late.see(opted_in=()).plan().memory.jobs == {}


def test_a_jobs_own_no_stands_as_long_as_the_job_is_there_though_nobody_says_it_again() -> None:
    said = by_default(qos="high").opted_in(mode=mode("0")).then(1.0).see(opted_in=())
    later = said.then(2 * DAY_S).then(1.0)
    assert later.plan().memory.jobs == {}
    assert set(later.memory.bystanders) == {J}
    assert later.see(jobs={}).plan().memory.bystanders == {}


def test_a_later_job_of_the_same_id_says_for_itself() -> None:
    said = by_default(qos="high", submitted=T0 - 90.0).opted_in(mode=mode("0")).then(1.0).see(opted_in=())
    assert set(said.change_job(submitted=T0 - 30.0).plan().memory.jobs) == {J}


def test_a_jobs_own_options_are_stronger_than_the_sites_default() -> None:
    found = memory(by_default(qos="high").then(1.0).opted_in(mode=mode("1,max=2")))
    assert (found.by_default, found.mode.text) == (False, "1,max=2")


def test_another_users_no_changes_nothing() -> None:
    assert by_default(qos="high").then(1.0).opted_in(mode=mode("0"), uid=1).plan().memory.jobs != {}


def others_fail_on(node: str, *users: int, picture: Picture) -> Picture:
    for number, user in enumerate(users):
        over = {"state": JobState.FAILED, "user_id": user, "ended": picture.now - 5.0, "batch_host": n(node)}
        picture = picture.job(100 + number, on=(node,), **over)
    return picture


def test_a_node_on_which_several_other_users_jobs_fail_is_evidence() -> None:
    (requeue,) = wishes(others_fail_on("n2", 2001, 2002, picture=failed("1")), RequeueJob)
    assert isinstance(requeue, RequeueJob)
    assert requeue.exclude == names("n2")
    assert "jobs of 2 other users failed on it" in str(requeue.why)


@pytest.mark.parametrize("users", [(2001, 2001, 2001), (USER, USER), (2001, USER)])
def test_one_users_failing_jobs_say_nothing_of_their_node(users: tuple[int, ...]) -> None:
    assert wishes(others_fail_on("n2", *users, picture=failed("1")), RequeueJob) == []


def test_jobs_that_fail_everywhere_say_nothing_of_a_node() -> None:
    picture = failed("1")
    for number, node in enumerate(("n1", "n2", "n3", "n4")):
        for user in (2001, 2002):
            over = {"state": JobState.FAILED, "user_id": user, "ended": picture.now - 5.0}
            picture = picture.job(1000 + 10 * number + user % 10, on=(node,), **over)
    assert wishes(picture, RequeueJob) == []


def test_a_job_without_a_replacement_for_its_node_is_said_to_wait_for_one() -> None:
    few = a_cluster(3).job().opted_in().then().ask(AskKind.BATCH).lost("n2").then().marked("n2").then(3.1)
    assert [attempt.decision for attempt in memory(few.change_job(nodes=names("n1", "n3"))).attempts] == [Decision.WAIT]


def slurm_requeues(picture: Picture) -> Picture:
    return picture.lost("n2").then().marked("n2").requeued().then(1.1)


def test_a_job_that_slurm_requeued_beyond_its_budget_is_left_to_slurm() -> None:
    spent = slurm_requeues(opted("1,max=0"))
    assert wishes(spent, NudgeJob) == []
    assert rules(spent) == ["resume.budget"]
    assert memory(spent).resumes == 0


def test_launch_failures_that_slurm_requeues_count_as_resumes() -> None:
    held = opted("1").requeued(reason="launch failed requeued held").then(1.1)
    assert rules(held) == ["resume.by_slurm"]
    (nudge,) = wishes(held, NudgeJob)
    assert isinstance(nudge, NudgeJob)
    assert nudge.release


GRES = replace(
    a_sign(
        Lean.AMBIGUOUS, "srun: error: Unable to create step for job 7: Invalid generic resource (gres) specification"
    ),
    sign="slurm.gres",
)


def test_a_resumed_run_whose_devices_slurm_forgot_is_brought_back_and_no_node_is_blamed() -> None:
    """22.05 breaks its record of a job's devices when several of its nodes are lost at once."""
    first = failed("1", signs=(GRES,), status=1 << 8)
    assert not wishes(first, RequeueJob), "the user may ask for what there is not"
    assert wishes(first, AnswerAsk)
    resumed = opted("1").change_job(restarts=1)
    mem = replace(resumed.memory.jobs[J], restarts=1, resumes=1)
    resumed = replace(resumed, memory=replace(resumed.memory, jobs={J: mem}))
    again = (
        resumed.ask(AskKind.BATCH, mode=mode("1"), restart=1, signs=(GRES,), status=1 << 8).then(0.1).checked(*THREE)
    )
    assert action_types(again.plan()) == [RequeueJob]
    attempt = memory(again).attempts[-1]
    assert (attempt.culprits, attempt.why.evidence[0]) == (
        frozenset(),
        "n1: Slurm's record of the job's devices was broken when it began anew",
    )
