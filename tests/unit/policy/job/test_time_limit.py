"""The rules of an end that is nobody's fault: the time limit, room made for others, and a signal to save before."""

from typing import Any

import pytest

from steward.model.action import RequeueJob, SignalJob
from steward.model.ask import AskKind
from steward.model.job import JobState
from steward.model.observed import Freshness
from steward.model.resume import Decision
from tests.builders.picture import Picture
from tests.builders.resumed import J, opted, rules, wishes


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
