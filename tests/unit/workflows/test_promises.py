"""What is not tried any more after something of the same plan failed."""

import pytest

from steward.model.ask import Answer
from steward.model.ids import Key
from steward.model.port_error import is_refusal
from steward.ports import Permanent, Retryable, Stale
from steward.workflows.apply import Promises
from tests.fakes.applier import N1, Bench, answer, down, requeue


def test_after_a_slurm_command_that_hung_no_other_is_tried_in_this_plan() -> None:
    promises = Promises()
    promises.note((down(),), "retry", took_s=10.0)
    assert "did not return" in promises.refusal(requeue())
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


@pytest.mark.parametrize(
    ("error", "is_final"),
    [
        (Permanent("Access/permission denied"), True),
        (Stale("job 7 is not in Slurm any more"), True),
        (Retryable("scontrol did not come back within 10 s"), False),
        (KeyError("jobs"), False),
    ],
)
def test_of_a_slurm_command_it_is_written_down_whether_another_try_may_help(error: Exception, is_final: bool) -> None:
    bench = Bench()
    bench.run_job()
    bench.slurm.refuse = error  # type: ignore[assignment]
    bench.apply(requeue())
    told = bench.store.outcomes[Key("requeue:7")]
    assert told is not None
    assert str(error) in told
    assert is_refusal(told) is is_final


def test_a_command_that_was_not_tried_may_help_another_time() -> None:
    assert not is_refusal("not tried: the Slurm command before it did not return")
    assert not is_refusal("")
