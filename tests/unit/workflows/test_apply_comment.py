"""A job's comment keeps nobody waiting, but for the job that would end without it."""

from threading import Event
from typing import Any

from steward.model.action import CommentJob
from steward.model.ask import Answer
from steward.model.ids import Key
from tests.fakes.slurm import FakeSlurm
from tests.fakes.until import until
from tests.unit.workflows.test_apply import J7, WHY, Bench, answer, down

COMMENT = CommentJob(key=Key("comment:7"), why=WHY, job=J7, text="steward: resumed 1x")


class SlowComments(FakeSlurm):
    """As Slurm while the job's record in its database is not there yet."""

    may_go = Event()

    def comment(self, *words: Any) -> None:
        self.may_go.wait(10.0)
        super().comment(*words)


def test_others_do_not_wait_for_a_comment() -> None:
    bench = Bench(slurm=SlowComments.with_nodes("n1", "n2", "n3"))
    bench.run_job()
    bench.apply(COMMENT, down())
    assert bench.counted == [("DownNode", "done")]
    SlowComments.may_go.set()
    until("the comment is written", lambda: ("CommentJob", "done") in bench.counted)
    assert bench.slurm.job_table[J7].admin_comment.startswith("steward:")


def test_a_job_that_is_told_to_stop_has_its_comment_before() -> None:
    bench = Bench()
    bench.run_job()
    bench.apply(COMMENT, answer(Answer.STOP))
    assert [kind for kind, _ in bench.counted] == ["CommentJob", "AnswerAsk"]
    assert bench.slurm.job_table[J7].admin_comment.startswith("steward:")
