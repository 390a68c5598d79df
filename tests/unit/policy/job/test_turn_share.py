"""What one user brings about for hundreds of jobs at once takes a part of a turn: others' shims wait for all of it."""

from dataclasses import replace

from steward.model.action import AllowRequeue, RequeueJob, SignalJob
from steward.model.ask import AskKind
from steward.model.job import JobState
from steward.model.resume_mode import ResumeMode
from steward.policy.facts.turn_share import AT_ONCE
from tests.builders.picture import USER, Picture, a_cluster

MANY = 100
FORBIDDEN = ResumeMode.parse("1,requeue=1")


def begun(picture: Picture, first: int, many: int, uid: int) -> Picture:
    """Jobs that were submitted with `--no-requeue` and are to be requeued all the same."""
    for id in range(first, first + many):
        picture = picture.job(id, on=("n1",), requeue=False, user_id=uid).opted_in(id, mode=FORBIDDEN, uid=uid)
    return picture


def allowed(picture: Picture) -> list[int]:
    return [int(each.job) for each in picture.plan().actions if isinstance(each, AllowRequeue)]


def test_jobs_that_may_be_requeued_after_all_are_changed_in_the_users_share_of_each_turn() -> None:
    picture, done = begun(begun(a_cluster(), 1000, MANY, USER), 1, 1, USER + 1), list[int]()
    first = allowed(picture)
    assert len(first) == AT_ONCE + 1
    assert 1 in first, "another user's job has its own share"
    for _ in range(2 * MANY // AT_ONCE):
        now = allowed(picture)
        assert len(now) <= AT_ONCE + 1
        done += now
        picture = replace(picture, memory=picture.plan().memory)
        for id in now:
            picture = picture.change_job(id, requeue=True)
        picture = picture.after(1.0)
    assert sorted(done) == [1, *range(1000, 1000 + MANY)]


def test_the_next_turn_comes_soon() -> None:
    picture = begun(a_cluster(), 1000, MANY, USER)
    wake = picture.plan().wake_at
    assert wake is not None
    assert wake <= picture.now + 1.0


def test_jobs_that_fail_by_the_hundred_are_put_back_in_their_users_share_of_each_turn() -> None:
    """`any:N` lets a user have all his failed jobs put back: beside these another user's job comes back at once."""
    picture, mode = a_cluster(), ResumeMode.parse("any:5")
    jobs = dict.fromkeys(range(1, 1 + MANY), USER) | {5000: USER + 1}
    for id, uid in jobs.items():
        picture = picture.job(id, on=("n1",), user_id=uid).opted_in(id, mode=mode, uid=uid)
    picture = replace(picture, memory=picture.plan().memory).after(1.0)
    for id, uid in jobs.items():
        picture = picture.ask(AskKind.BATCH, id, uid=uid, mode=mode)
    asked, turns = set[int](), list[list[int]]()
    for _ in range(30):
        plan = picture.plan()
        turns.append([int(each.job) for each in plan.actions if isinstance(each, RequeueJob)])
        picture = replace(picture, memory=plan.memory)
        for id in turns[-1]:
            picture = picture.change_job(id, state=JobState.PENDING, restarts=1, started=None, nodes=frozenset())
        asked.update(turns[-1])
        picture = picture.after(1.0)
    first = next(turn for turn in turns if turn)
    assert 5000 in first
    assert max(map(len, turns)) <= AT_ONCE + 1
    assert asked == set(jobs)


def test_no_run_is_given_up_while_it_waits_for_its_share_of_a_turn() -> None:
    """Slurm forgets a job a while after its end; until then each of the user's many ended runs is asked for."""
    picture, many = a_cluster(), range(1, 1 + 40 * AT_ONCE)
    for id in many:
        picture = picture.job(id, on=("n1",)).opted_in(id)
    picture = picture.then(100)
    for id in many:
        picture = picture.change_job(id, state=JobState.NODE_FAIL, ended=picture.now)
    asked = set[int]()
    for _ in range(40):
        asked |= {int(each.job) for each in picture.plan().actions if isinstance(each, RequeueJob)}
        picture = picture.then(10.0)
        for id in asked:
            picture = picture.change_job(id, state=JobState.PENDING, restarts=1, started=None, nodes=frozenset())
    assert asked == set(many)


def test_jobs_that_reach_their_time_limit_by_the_hundred_are_told_in_their_users_share_of_each_turn() -> None:
    picture, mode = a_cluster().resume(checkpoint_signal="USR1"), ResumeMode.parse("1,timeout=1")
    jobs = dict.fromkeys(range(1, 1 + MANY), USER) | {5000: USER + 1}
    for id, uid in jobs.items():
        picture = picture.job(id, on=("n1",), user_id=uid, time_limit_s=700.0).opted_in(id, mode=mode, uid=uid)
    turns = list[list[int]]()
    for _ in range(2 * MANY // AT_ONCE):
        turns.append([int(each.job) for each in picture.plan().actions if isinstance(each, SignalJob)])
        picture = picture.then(1.0)
    first = next(turn for turn in turns if turn)
    assert 5000 in first
    assert max(map(len, turns)) <= AT_ONCE + 1
    assert sorted(id for turn in turns for id in turn) == sorted(jobs)
