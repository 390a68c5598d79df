"""A job's comment keeps nobody waiting, but for the job that would end without it."""

from dataclasses import replace
from threading import Event
from time import sleep
from typing import Any

from steward.model.action import CommentJob, ProbeNode
from steward.model.ask import Answer
from steward.model.ids import JobId, Key
from tests.fakes.applier import J7, N1, WHY, Bench, answer, down
from tests.fakes.slurm import FakeSlurm
from tests.fakes.until import FACT_S, until

COMMENT = CommentJob(key=Key("comment:7"), why=WHY, job=J7, text="steward: resumed 1x")


class SlowComments(FakeSlurm):
    """As Slurm while the job's record in its database is not there yet."""

    may_go = Event()
    commented = 0

    def comment(self, *words: Any) -> None:
        self.commented += 1
        self.may_go.wait(FACT_S)
        super().comment(*words)


def test_others_do_not_wait_for_a_comment() -> None:
    bench = Bench(slurm=SlowComments.with_nodes("n1", "n2", "n3"))
    bench.run_job()
    bench.apply(COMMENT, down())
    assert bench.counted == [("DownNode", "done")]
    SlowComments.may_go.set()
    until("the comment is written", lambda: ("CommentJob", "done") in bench.counted)
    assert bench.slurm.job_table[J7].admin_comment.startswith("steward:")


def test_comments_are_written_one_after_the_other_and_hold_up_nothing_else_that_is_slow() -> None:
    """A thousand jobs that lost their nodes at once have a comment each: Slurm has their next runs to start."""
    SlowComments.may_go.clear()
    slurm = SlowComments.with_nodes("n1", "n2", "n3")
    bench = Bench(slurm=slurm)
    bench.run_job()
    others = [replace(COMMENT, key=Key(f"comment:{job}"), job=JobId(job)) for job in range(100, 120)]
    bench.apply(COMMENT, *others, ProbeNode(key=Key("probe"), why=WHY, node=N1, peers=frozenset()))
    until("the node is looked at", lambda: ("ProbeNode", "done") in bench.counted)
    until("the first comment is being written", lambda: slurm.commented > 0)
    assert slurm.commented == 1
    SlowComments.may_go.set()
    until("all are written", lambda: len(bench.counted) == len(others) + 2)


def test_a_job_that_is_told_to_stop_has_its_comment_before() -> None:
    bench = Bench()
    bench.run_job()
    bench.apply(COMMENT, answer(Answer.STOP))
    assert [kind for kind, _ in bench.counted] == ["CommentJob", "AnswerAsk"]
    assert bench.slurm.job_table[J7].admin_comment.startswith("steward:")


def test_many_jobs_that_stop_at_once_hold_nobody_up_with_their_comments() -> None:
    """One user's jobs fail by the hundred, and each comment takes Slurm a moment: others' jobs wait for this turn."""

    class Tardy(FakeSlurm):
        def comment(self, *words: Any) -> None:
            sleep(0.2)
            super().comment(*words)

    bench = Bench(slurm=Tardy.with_nodes("n1", "n2", "n3"))
    bench.run_job()
    jobs = [JobId(job) for job in range(100, 150)]
    comments = [replace(COMMENT, key=Key(f"comment:{job}"), job=job) for job in jobs]
    stops = [replace(answer(Answer.STOP), key=Key(f"answer:{job}"), job=job) for job in jobs]
    bench.apply(*comments, *stops, down())
    done = [kind for kind, _ in bench.counted]
    assert 1 <= done.count("CommentJob") < 25
    assert done.count("AnswerAsk") == len(stops)
    assert "DownNode" in done
