"""What is not tried any more after something of the same plan failed."""

from steward.model.ask import Answer
from steward.workflows.promises import Promises
from tests.unit.workflows.test_apply import N1, answer, down, requeue


def test_after_a_slurm_command_that_hung_no_other_is_tried_in_this_plan() -> None:
    promises = Promises()
    promises.note((down(),), "retry", took_s=10.0)
    assert "did not come back" in promises.refusal(requeue())
    assert promises.refusal(answer(Answer.STOP)) == ""


def test_a_command_that_failed_quickly_stops_no_other() -> None:
    promises = Promises()
    promises.note((down(),), "retry", took_s=0.1)
    assert promises.refusal(requeue()) == ""


def test_what_is_already_as_wished_keeps_the_promise() -> None:
    promises = Promises()
    promises.note((requeue(),), "stale", took_s=0.1)
    promises.note((down(),), "done", took_s=0.1)
    assert promises.refusal(answer(Answer.REQUEUE)) == ""
    assert promises.refusal(answer(Answer.RETRY, frozenset({N1}))) == ""
