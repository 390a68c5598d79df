"""What is done about a failure: one sentence for each rule."""

from typing import Any

import pytest

from steward.model.job import JobState
from steward.model.job_report import Lean
from steward.model.resume import Decision
from steward.model.resume_policy import ResumePolicy
from steward.policy.job.decide import RULES, Ruling, decide
from steward.policy.job.failure import FailureSource, ended_by
from tests.builders.failures import a_failure, a_sign, against, an_exit

SCANCEL = 15


def ruled(ruling: Ruling) -> tuple[Decision, str]:
    return ruling.decision, ruling.why.rule.removeprefix("resume.")


def test_each_rule_has_a_name_of_its_own() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("mode", ["1", "any:3"])
def test_exit_code_93_stops_whatever_the_evidence(mode: str) -> None:
    failure = a_failure(mode, status=93 << 8, evidence=(against(),))
    assert ruled(decide(failure)) == (Decision.STOP, "final_code")


def test_a_task_that_ended_with_a_final_code_counts_though_srun_killed_the_others() -> None:
    failure = a_failure("any:3", status=137 << 8, exits=(an_exit(93 << 8), an_exit(9, task=1)))
    assert ruled(decide(failure)) == (Decision.STOP, "final_code")


def test_codes_of_the_site_and_of_the_job_are_final_as_well() -> None:
    site = ResumePolicy(final_codes=(3,))
    assert decide(a_failure("any:3", site, status=3 << 8)).why.rule == "resume.final_code"
    assert decide(a_failure("any:3,codes=4:5", status=5 << 8)).why.rule == "resume.final_code"
    assert decide(a_failure("any:3,codes=4:5", status=3 << 8)).why.rule == "resume.any"


@pytest.mark.parametrize(
    ("state", "rule"),
    [
        (JobState.CANCELLED, "cancelled"),
        (JobState.COMPLETED, "cancelled"),
        (JobState.DEADLINE, "deadline"),
        (JobState.OUT_OF_MEMORY, "out_of_memory"),
        (JobState.TIMEOUT, "time_limit"),
        (JobState.PREEMPTED, "made_room"),
    ],
)
def test_an_end_that_was_meant_is_never_undone(state: JobState, rule: str) -> None:
    failure = a_failure("any:3", kind=FailureSource.ENDED, state=state, evidence=(against(),))
    assert ruled(decide(failure)) == (Decision.STOP, rule)


@pytest.mark.parametrize("status", [125, 253 << 8])
def test_a_task_that_the_memory_cgroup_ended_is_out_of_memory(status: int) -> None:
    assert ruled(decide(a_failure("any:3", status=status))) == (Decision.STOP, "out_of_memory")


def test_a_job_that_asked_for_it_goes_on_after_its_time_limit() -> None:
    failure = a_failure("1,timeout=1", kind=FailureSource.ENDED, state=JobState.TIMEOUT, status=SCANCEL)
    assert ruled(decide(failure)) == (Decision.REQUEUE, "timeout")


def test_a_site_may_let_all_jobs_go_on_after_their_time_limit_and_a_job_may_say_no() -> None:
    rules = ResumePolicy(timeout=True)
    over: dict[str, Any] = {"kind": FailureSource.ENDED, "state": JobState.TIMEOUT}
    assert ruled(decide(a_failure("1", rules, **over))) == (Decision.REQUEUE, "timeout")
    assert ruled(decide(a_failure("1,timeout=0", rules, **over))) == (Decision.STOP, "time_limit")


def test_a_job_that_slurm_cancelled_to_make_room_comes_back_where_the_site_says_so() -> None:
    failure = a_failure("1", ResumePolicy(preempted=True), kind=FailureSource.ENDED, state=JobState.PREEMPTED)
    assert ruled(decide(failure)) == (Decision.REQUEUE, "preempted")


def test_without_evidence_the_failure_is_the_jobs_own() -> None:
    ruling = decide(a_failure())
    assert ruled(ruling) == (Decision.STOP, "no_evidence")
    assert ruling.open


@pytest.mark.parametrize("lean", list(Lean))
def test_no_line_of_the_log_is_enough_to_resume(lean: Lean) -> None:
    ruling = decide(a_failure(signs=(a_sign(lean, "uncorrectable ECC error encountered"),)))
    assert ruled(ruling) == (Decision.STOP, "no_evidence")
    assert ruling.culprits == frozenset()


OWN: dict[str, Any] = {"kind": FailureSource.STEP, "own_wish": True, "may_retry": True}


@pytest.mark.parametrize("status", [9, 15, 137 << 8, 143 << 8])
def test_a_step_that_was_cancelled_is_not_resumed_without_evidence(status: int) -> None:
    assert ruled(decide(a_failure("any:3", **OWN, status=status))) == (Decision.STOP, "killed")
    assert (
        decide(a_failure("any:3", kind=FailureSource.STEP, status=status, evidence=(against(),))).decision
        is Decision.REQUEUE
    )


def test_tasks_that_srun_killed_after_another_had_failed_are_no_cancelled_step() -> None:
    failure = a_failure("any:3", **OWN, status=137 << 8, exits=(an_exit(1 << 8), an_exit(9, task=1)))
    assert ruled(decide(failure)) == (Decision.RETRY, "retry")


@pytest.mark.parametrize("kind", [FailureSource.BATCH, FailureSource.ENDED])
@pytest.mark.parametrize("code", [137, 143])
def test_128_and_more_are_codes_that_a_script_chooses_and_a_signal_is_slurms_word(
    kind: FailureSource, code: int
) -> None:
    assert ruled(decide(a_failure("any:3", kind=kind, status=code << 8))) == (Decision.REQUEUE, "any")
    assert f"exit code {code}" in decide(a_failure("any:3", kind=kind, status=code << 8)).why.evidence
    chosen, signalled = (an_exit(code << 8),), (an_exit(code - 128),)
    assert ruled(decide(a_failure("any:3", kind=kind, status=code << 8, exits=chosen))) == (Decision.REQUEUE, "any")
    assert ruled(decide(a_failure("any:3", kind=kind, status=code << 8, exits=signalled))) == (Decision.STOP, "killed")
    assert ruled(decide(a_failure("any:3", kind=kind, status=code - 128))) == (Decision.STOP, "killed")


def test_any_is_a_word_about_the_jobs_end_and_of_a_step_that_has_the_option_itself() -> None:
    """A script may handle a step's failure."""
    asked: dict[str, Any] = {"kind": FailureSource.STEP, "may_retry": True}
    assert ruled(decide(a_failure("any:3", **asked))) == (Decision.STOP, "scripts_own")
    assert not decide(a_failure("any:3", **asked)).final
    assert ruled(decide(a_failure("any:3", **asked, evidence=(against(),)))) == (Decision.RETRY, "retry")
    assert ruled(decide(a_failure("any:3", **OWN))) == (Decision.RETRY, "retry")
    no_input = a_failure("any:3", kind=FailureSource.STEP, own_wish=True, input_gone=True)
    assert ruled(decide(no_input)) == (Decision.STOP, "scripts_own")
    assert "what it read through a pipe is gone: it cannot run again in place" in decide(no_input).why.evidence


def test_a_crash_by_a_signal_of_its_own_is_no_cancelled_step() -> None:
    assert ruled(decide(a_failure("any:3", status=139 << 8))) == (Decision.REQUEUE, "any")


def test_an_error_of_its_own_in_the_log_denies_a_resume_without_evidence() -> None:
    signs = (a_sign(Lean.USER, "ImportError: no module named torhc"),)
    ruling = decide(a_failure("any:3", signs=signs))
    assert ruled(ruling) == (Decision.STOP, "user_error")
    assert ("torhc" in str(ruling.why), "its log: user" in str(ruling.why)) == (False, True)
    assert ruling.lines == ("ImportError: no module named torhc",)
    assert ruled(decide(a_failure("any:3", signs=signs, evidence=(against(),)))) == (Decision.REQUEUE, "requeue")
    assert ruled(decide(a_failure("any:3", ResumePolicy(user_errors_stop=False), signs=signs)))[1] == "any"


def test_a_weak_sign_of_the_jobs_own_error_denies_nothing() -> None:
    failure = a_failure("any:3", signs=(a_sign(Lean.USER, strong=False),))
    assert ruled(decide(failure)) == (Decision.REQUEUE, "any")


def test_a_young_run_is_not_resumed_without_evidence() -> None:
    assert ruled(decide(a_failure("any:3", age_s=179.0))) == (Decision.STOP, "young")
    assert ruled(decide(a_failure("any:3,age=60", age_s=61.0))) == (Decision.REQUEUE, "any")
    assert ruled(decide(a_failure("any:3", age_s=1.0, evidence=(against(),)))) == (Decision.REQUEUE, "requeue")


def test_resumes_without_evidence_are_counted_by_themselves() -> None:
    assert ruled(decide(a_failure("any:3", resumes=3, unproven=2))) == (Decision.REQUEUE, "any")
    assert ruled(decide(a_failure("any:3", resumes=3, unproven=3))) == (Decision.STOP, "any_used")
    assert ruled(decide(a_failure("any:3", resumes=3, unproven=3, evidence=(against(),)))) == (
        Decision.REQUEUE,
        "requeue",
    )


def test_a_job_without_resumes_left_stops_and_says_how_many_it_had() -> None:
    ruling = decide(a_failure(resumes=5, evidence=(against(),)))
    assert ruled(ruling) == (Decision.STOP, "budget")
    assert ruling.final
    assert "5 of 5 resumes used" in str(ruling.why)


def test_a_job_may_ask_for_more_or_fewer_resumes_than_the_site_gives() -> None:
    assert decide(a_failure("1,max=10", resumes=9, evidence=(against(),))).decision is Decision.REQUEUE
    assert decide(a_failure("1,max=0", evidence=(against(),))).decision is Decision.STOP
    assert decide(a_failure("any:20", resumes=19, unproven=19)).decision is Decision.REQUEUE


def test_two_resumes_in_a_row_without_a_new_checkpoint_are_enough() -> None:
    assert decide(a_failure(resumes=2, stalls=1, evidence=(against(),))).decision is Decision.REQUEUE
    assert ruled(decide(a_failure(resumes=2, stalls=2, evidence=(against(),)))) == (Decision.STOP, "no_progress")
    assert decide(a_failure("1,stalls=3", resumes=2, stalls=2, evidence=(against(),))).decision is Decision.REQUEUE


def test_a_step_with_all_it_needs_runs_again_where_it_is() -> None:
    ruling = decide(a_failure(kind=FailureSource.STEP, may_retry=True, evidence=(against(),)))
    assert ruled(ruling) == (Decision.RETRY, "retry")
    assert ruling.culprits == {"n2"}


def test_only_a_batch_job_can_be_requeued() -> None:
    failure = a_failure(kind=FailureSource.STEP, is_batch=False, evidence=(against(),))
    assert ruled(decide(failure)) == (Decision.STOP, "not_batch")


def test_a_job_that_cannot_do_without_the_culprit_waits_for_its_replacement() -> None:
    assert ruled(decide(a_failure(short=True, evidence=(against(),)))) == (Decision.WAIT, "wait")
    assert ruled(decide(a_failure("any:1", short=True))) == (Decision.REQUEUE, "any")


@pytest.mark.parametrize("state", [JobState.NODE_FAIL, JobState.BOOT_FAIL])
def test_slurms_word_about_a_node_is_evidence(state: JobState) -> None:
    ruling = decide(a_failure(kind=FailureSource.ENDED, state=state, status=0))
    assert ruled(ruling) == (Decision.REQUEUE, "late")
    assert ruling.why.evidence == (f"Slurm: {state.value}",)


@pytest.mark.parametrize("status", [6, 9, SCANCEL, 139 << 8 | 11])
def test_a_script_that_a_signal_ended_is_no_launch_that_failed_though_slurm_22_05_says_so(status: int) -> None:
    over: dict[str, Any] = {"kind": FailureSource.ENDED, "state": JobState.FAILED, "reason": "JobLaunchFailure"}
    assert ruled(decide(a_failure(**over, status=status))) == (Decision.STOP, "no_evidence")
    assert ruled(decide(a_failure(**over, status=status, evidence=(against(),)))) == (Decision.REQUEUE, "late")
    assert ruled(decide(a_failure(**over, status=1))) == (Decision.REQUEUE, "late")
    assert ruled(decide(a_failure(**over, status=1, had_asked=True))) == (Decision.STOP, "no_evidence"), "SIGHUP"


@pytest.mark.parametrize("reason", ["JobLaunchFailure", "SystemFailure", "NodeDown"])
def test_a_job_that_slurm_could_not_launch_is_requeued(reason: str) -> None:
    failure = a_failure(kind=FailureSource.ENDED, state=JobState.FAILED, reason=reason, status=0)
    assert ruled(decide(failure)) == (Decision.REQUEUE, "late")


def test_a_launch_failure_that_slurm_requeued_itself_counts_as_a_resume() -> None:
    failure = a_failure(
        kind=FailureSource.REQUEUED, state=JobState.PENDING, reason="launch failed requeued held", status=0
    )
    assert ruled(decide(failure)) == (Decision.REQUEUE, "by_slurm")


def test_a_job_without_its_script_is_requeued() -> None:
    failure = a_failure(kind=FailureSource.NO_SCRIPT, status=0, evidence=(against("n1", "its script ran there"),))
    assert ruled(decide(failure)) == (Decision.REQUEUE, "no_script")


def test_a_hang_is_resumed_on_evidence_or_where_none_is_asked_for() -> None:
    hang: dict[str, Any] = {"kind": FailureSource.HANG, "status": 0}
    assert ruled(decide(a_failure("1", **hang))) == (Decision.STOP, "no_evidence")
    assert ruled(decide(a_failure("1", evidence=(against(),), **hang))) == (Decision.REQUEUE, "requeue")
    assert ruled(decide(a_failure("any:1", **hang))) == (Decision.REQUEUE, "any")


@pytest.mark.parametrize(
    ("status", "signal"), [(0, 0), (1 << 8, 0), (9, 9), (137 << 8, 9), (125, 125), (253 << 8, 125), (255 << 8, 0)]
)
def test_a_signal_is_read_from_a_wait_status_and_from_what_a_shell_makes_of_it(status: int, signal: int) -> None:
    assert ended_by(status) == signal
