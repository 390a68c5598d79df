"""A job that is resumed again and again is hurried on ever more rarely."""

import pytest

from steward.model.action import NudgeJob
from steward.model.job import JobState
from tests.builders.picture import Picture, n, names
from tests.builders.resumed import THREE, J, fails_again, opted, saves, wishes


def third_resume(text: str = "any:9", *, saved: tuple[int | None, ...] = (None, None, None)) -> Picture:
    """Its third requeue within two minutes, each run with its newest checkpoint; it has just come to the queue."""
    picture = opted(f"{text},age=0")
    for restart, step in enumerate(saved):
        picture = fails_again(saves(picture, step), restart)
        if restart < 2:
            back = picture.then(0.1).requeued().then(1.5).see(asks=())
            on = {"state": JobState.RUNNING, "nodes": names(*THREE), "batch_host": n("n1"), "started": back.now}
            picture = back.change_job(7, **on).then(5.0)
    return picture.then(0.1).requeued().see(asks=())


def test_a_job_that_is_resumed_again_and_again_is_hurried_on_only_after_a_while() -> None:
    waits = third_resume()
    (later,) = wishes(waits, NudgeJob)
    assert isinstance(later, NudgeJob)
    assert later.delay_s == pytest.approx(55.0, abs=6.0)
    assert wishes(waits.then(5.0), NudgeJob) == []
    assert waits.wait(40.0).memory.jobs[J].nudges == 0
    assert waits.wait(70.0).memory.jobs[J].nudges > 0


def test_one_that_its_user_lets_begin_later_still_is_left_alone_then() -> None:
    waits = third_resume().then(5.0)
    week = waits.change_job(reason="BeginTime", eligible=waits.now + 7 * 86_400.0).then(5.0)
    assert [wishes(week := week.then(43_200.0), NudgeJob) for _ in range(13)] == [[]] * 13


def test_a_job_that_gets_on_between_its_faults_does_not_wait() -> None:
    assert wishes(third_resume(saved=(10, 20, 30)), NudgeJob) == []
    assert len(wishes(third_resume(saved=(10, 20, 30)).then(1.1), NudgeJob)) == 1
    (put_off,) = wishes(third_resume(saved=(10, 20, 20)), NudgeJob)
    assert isinstance(put_off, NudgeJob)
    assert put_off.delay_s > 0


def test_a_job_may_do_without_back_off() -> None:
    assert len(wishes(third_resume("any:9,backoff=0").then(1.1), NudgeJob)) == 1
