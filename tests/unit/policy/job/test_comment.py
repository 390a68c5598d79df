"""The admin comment: short, ours alone, once for each change, and before a job ends."""

from dataclasses import replace

import pytest

from steward.model.action import AnswerAsk, CommentJob
from steward.model.ask import AskKind
from steward.model.comment import own_part, with_own_part
from steward.model.health import Severity
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import JobState
from steward.model.ledger import Ending, Run
from steward.model.resume import Decision
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why
from steward.policy.job.comment import BEGUN_S, LATER_S, MANY, job_comment
from tests.builders.picture import T0, Picture, a_cluster, names

AT, J = 1_700_000_000.0, JobId(7)
LOST = Run(
    job=JobId(7),
    opted_at=AT,
    restart=0,
    uid=1000,
    started=AT,
    ended=AT + 3602.0,
    ending=Ending.REQUEUED,
    decision=Decision.REQUEUE,
    why=Why(rule="resume.requeue", text="a node failed"),
    culprits=frozenset({NodeName("n3")}),
    cause="xid79",
    fault=AT + 3600.0,
    step=100,
    checkpoint_step=90,
    checkpointed=AT + 3459.0,
)
AGAIN = Run(job=JobId(7), opted_at=AT, restart=1, uid=1000, started=AT + 3641.0)


def comments(picture: Picture) -> list[CommentJob]:
    return [action for action in picture.plan().actions if isinstance(action, CommentJob)]


def test_a_resume_is_said_with_who_was_to_blame_when_and_what_it_took() -> None:
    text = job_comment((LOST, AGAIN), 2)
    assert text == "steward: resumed 2x (n3 xid79 23:13Z, back in 41 s), 3 min lost"


def test_a_retry_and_the_requeue_after_it_for_one_fault_are_one_resume_as_explain_says() -> None:
    retried = replace(LOST, ended=AT + 3601.0, ending=Ending.RETRIED, decision=Decision.RETRY)
    text = job_comment((retried, replace(LOST, attempt=2, started=AT + 3601.5), AGAIN), 1)
    assert text.startswith("steward: resumed 1x (n3 xid79 ")


def test_a_run_that_quotas_took_back_costs_no_resume_and_none_is_said() -> None:
    assert job_comment((LOST, AGAIN), 0).startswith("steward: put back (n3 xid79 ")


def test_a_stop_that_was_decided_after_the_end_is_said_once_in_the_accounting() -> None:
    over = a_cluster().job().opted_in().then(100).change_job(state=JobState.FAILED, ended=T0 + 95, exit_status=256)
    told = list[str]()
    for _ in range(50):
        told += [comment.text for comment in comments(over)]
        over = over.then(10.0)
    assert told == ["steward: stopped, no hardware fault found on its nodes; treated as the job's own failure"]


def test_a_stop_is_said_with_its_reason() -> None:
    stop = replace(AGAIN, decision=Decision.STOP, why=Why(rule="x", text="no checkpoint progress"))
    assert job_comment((stop,), 0) == "steward: stopped, no checkpoint progress"
    assert job_comment((LOST, stop), 1).endswith("; last: stopped, no checkpoint progress")


def test_nothing_is_said_of_a_job_that_nothing_was_done_for() -> None:
    assert job_comment((AGAIN,), 0) == ""
    assert job_comment((), 0) == ""


def test_hostile_words_make_neither_a_long_comment_nor_a_second_part() -> None:
    why = Why(rule="x", text="a | b\n\x1b[2J" + "y" * 500)
    text = job_comment((replace(AGAIN, decision=Decision.STOP, why=why),), 0)
    assert len(text) <= 200
    assert text.isprintable()
    assert "|" not in text


@pytest.mark.parametrize("theirs", ["", "ticket 77", "ticket 77 | do not touch"])
def test_what_others_wrote_stays_in_front(theirs: str) -> None:
    once = with_own_part(theirs, "steward: one")
    twice = with_own_part(once, "steward: two")
    assert own_part(twice) == "steward: two"
    assert twice.removesuffix("steward: two").rstrip(" |") == theirs


def a_lost_run() -> Picture:
    return a_cluster().job(is_batch=True, admin_comment="ticket 77").opted_in().then(1.0)


def come_back(count: int) -> Picture:
    """So many jobs are back in the queue after the loss of a node, for a second."""
    picture = a_lost_run().lost("n2").then().marked("n2").requeued(node_count=3).then(1.0)
    jobs, ledger = picture.memory.jobs, picture.memory.ledger
    assert jobs[J].pending_from is not None
    alike = [JobId(number) for number in range(100, 100 + count - 1)]
    for id in alike:
        picture = picture.job(id, on=(), state=JobState.PENDING, node_count=3, started=None, restarts=1)
    memory = replace(
        picture.memory,
        jobs={**jobs, **{id: replace(jobs[J], id=id) for id in alike}},
        ledger={**ledger, **{id: tuple(replace(run, job=id) for run in ledger[J]) for id in alike}},
    )
    return replace(picture, memory=memory)


def test_of_many_jobs_that_come_back_at_once_comments_are_written_later() -> None:
    """The first one's was written when it was alone."""
    assert len(comments(come_back(MANY))) == MANY - 1
    assert comments(come_back(MANY + 1)) == []
    assert len(comments(come_back(MANY + 1).after(LATER_S))) == MANY


def test_a_stop_is_written_before_the_shim_is_told_to_go_on() -> None:
    picture = a_lost_run().ask(AskKind.BATCH)
    for name in ("n1", "n2", "n3"):
        picture = picture.agent(name, checked_at=T0 + 1000)
    while not any(isinstance(action, AnswerAsk) for action in picture.plan().actions):
        picture = picture.then(1.0)
    kinds = [type(a) for a in picture.plan().actions if isinstance(a, CommentJob | AnswerAsk)]
    assert kinds == [CommentJob, AnswerAsk]


def test_also_of_a_job_that_failed_before_it_was_ever_seen_to_run() -> None:
    mode = ResumeMode.parse("any:5,age=0")
    picture = a_cluster().job().opted_in(mode=mode).ask(AskKind.BATCH, status=93 << 8, mode=mode)
    comment, answer = picture.plan().actions
    assert isinstance(comment, CommentJob)
    assert "do not try again" in comment.text
    assert isinstance(answer, AnswerAsk)


def test_it_is_written_once_and_again_only_a_minute_after_a_failure() -> None:
    picture = a_lost_run().failing("n2", Severity.FATAL).then(0.5).marked("n2")
    waiting = picture.change_job(state=JobState.PENDING, nodes=names(), restarts=1, started=None)
    for _ in range(3):
        if comments(waiting):
            break
        waiting = waiting.then(1.0)
    (said,) = comments(waiting)
    assert "n2" in said.text
    assert comments(waiting.then(120.0)) == []
    failed = waiting.then(61.0).see(failures={Key(said.key): "slurmctld does not answer"})
    assert [one.key for one in comments(failed)] == [said.key]


def test_nor_in_the_first_seconds_of_the_next_run() -> None:
    picture = a_lost_run().failing("n2", Severity.FATAL).then(0.5).marked("n2")
    waiting = picture.change_job(state=JobState.PENDING, nodes=names(), restarts=1, started=None).then(1.0)
    again = waiting.change_job(state=JobState.RUNNING, nodes=names("n1", "n3"), started=waiting.now).then(0.1)
    assert comments(again) == []
    assert again.plan().wake_at == pytest.approx(waiting.now + BEGUN_S, abs=0.1)
    (said,) = comments(again.after(BEGUN_S))
    assert "back in" in said.text


def test_nothing_is_written_while_slurm_cleans_the_job_up() -> None:
    picture = a_lost_run().failing("n2", Severity.FATAL).then(0.5).marked("n2")
    cleaning = picture.change_job(
        state=JobState.PENDING, nodes=names(), restarts=1, started=None, flags=frozenset({"COMPLETING"})
    )
    assert comments(cleaning) == []
    assert comments(cleaning.then(1.0)) == []
