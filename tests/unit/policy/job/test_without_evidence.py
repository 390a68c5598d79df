"""The rules of resumes without evidence (`any`), in stories from the picture to the wishes."""

from typing import Any

import pytest

from steward.model.action import AnswerAsk, CheckNow, RequeueJob
from steward.model.ask import Answer, AskKind
from steward.model.job_report import Lean
from tests.builders.failures import a_sign
from tests.builders.resumed import THREE, failed, memory, mode, opted, wishes


def test_any_requeues_a_script_that_failed_on_good_nodes_after_they_were_checked() -> None:
    fresh = opted("any:1").ask(AskKind.BATCH, mode=mode("any:1"))
    assert [type(action) for action in fresh.actions()] == [CheckNow]
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
    (answer,) = failed("any:1", AskKind.STEP, **ask).actions()
    assert isinstance(answer, AnswerAsk)
    assert answer.answer is Answer.STOP


def test_a_script_that_slurm_lost_before_it_began_is_brought_back_and_its_node_not_blamed() -> None:
    picture = failed("1", script_gone=True, status=2 << 8)
    assert [type(a) for a in picture.actions()] == [RequeueJob]
    (attempt,) = memory(picture).attempts
    assert (attempt.culprits, attempt.why.evidence[0]) == (
        frozenset(),
        "n1: Slurm had lost the script there before it began",
    )


def test_a_failure_whose_log_speaks_for_the_machines_is_looked_at_twice() -> None:
    sign = a_sign(Lean.INFRA, "GPU has fallen off the bus")
    first = failed("1", signs=(sign,))
    assert first.actions() == []
    again = first.then(6.0)
    assert [type(action) for action in again.actions()] == [CheckNow]
    (answer,) = wishes(again.then(0.1).checked(*THREE), AnswerAsk)
    assert isinstance(answer, AnswerAsk)
    assert answer.answer is Answer.STOP
