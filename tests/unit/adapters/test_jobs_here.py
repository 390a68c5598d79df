"""What `scontrol show job` says about a job that is held, and `squeue` about those on a node."""

import pytest

from steward.adapters.node.jobs_here import owners_of, run_is_over
from steward.ports import Retryable

LINE = "JobId=1 JobName=x UserId=root(0) JobState={state} Reason=None Requeue=1 Restarts={restarts} BatchFlag=1"


@pytest.mark.parametrize("state", ["RUNNING", "SUSPENDED", "RESIZING", "A_WORD_OF_THE_FUTURE"])
def test_a_job_that_runs_or_is_in_a_state_we_do_not_know_is_held(state: str) -> None:
    assert not run_is_over(LINE.format(state=state, restarts=0), 0)


@pytest.mark.parametrize("state", ["CANCELLED", "COMPLETING", "PENDING", "REQUEUED", "NODE_FAIL", "TIMEOUT", "FAILED"])
def test_a_job_that_has_ended_or_was_requeued_is_let_go(state: str) -> None:
    assert run_is_over(LINE.format(state=state, restarts=0), 0)


def test_another_run_of_the_job_means_that_ours_is_over() -> None:
    assert run_is_over(LINE.format(state="RUNNING", restarts=1), 0)


def test_an_answer_that_cannot_be_read_is_no_reason_to_let_go() -> None:
    assert not run_is_over("", 0)


def test_whose_jobs_are_on_a_node_is_read_line_by_line() -> None:
    assert owners_of("12 1000\n13 4294967294\n") == {12: 1000, 13: 4294967294}
    assert owners_of("\n") == {}


@pytest.mark.parametrize("text", ["12", "12 root", "12 1000 x", "slurm_load_jobs error: x"])
def test_an_answer_that_is_no_list_of_jobs_and_users_is_none(text: str) -> None:
    with pytest.raises(Retryable):
        owners_of(text)
