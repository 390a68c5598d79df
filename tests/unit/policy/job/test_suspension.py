"""A job that is suspended (by a person, by gang scheduling, by a preemption) stands still and is sound."""

from dataclasses import replace

from steward.model.action import NudgeJob, RequeueJob, SignalJob
from steward.model.agent_action import CollectStacks
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.job_report import Progress
from steward.model.job_sight import Doing
from steward.model.resume import Attempt, Decision
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why
from steward.views.explain import explain_job
from tests.builders.picture import Picture, a_cluster, n, names
from tests.builders.sights import a_sight

J7 = JobId(7)
HOUR_S = 3600.0
LIMIT_S = 300.0
"""How long a job of this pace may take for a step."""


def a_job(mode: str = "any:3,age=0", **job: object) -> Picture:
    return a_cluster().job(7, ("n1",), **job).opted_in(7, ResumeMode.parse(mode)).then()


def stepped(picture: Picture, ago_s: float = 0.0) -> Picture:
    told = Progress(job=J7, restart=0, node=n("n1"), step=100, stepped=picture.now - ago_s, pace_s=2.0, at=picture.now)
    return picture.agent("n1", progress=(told,))


def suspended(picture: Picture) -> Picture:
    return picture.change_job(state=JobState.SUSPENDED)


def resumed(picture: Picture) -> Picture:
    return picture.change_job(state=JobState.RUNNING)


def is_looked_at(picture: Picture) -> bool:
    return any(isinstance(action, CollectStacks) for action in picture.plan().actions)


def hangs(picture: Picture) -> bool:
    """It is found to stand still now, or was found a little while ago."""
    return picture.plan().memory.jobs[J7].hang is not None


def is_requeued(picture: Picture) -> bool:
    return any(isinstance(action, RequeueJob) for action in picture.plan().actions)


def test_a_job_that_goes_on_after_an_hour_does_not_stand_still() -> None:
    picture = resumed(suspended(stepped(a_job(), ago_s=10.0)).then(HOUR_S))
    assert not hangs(picture)
    assert not is_requeued(picture.wait(LIMIT_S - 20.0))


def test_it_has_as_long_for_its_next_step_as_ever() -> None:
    picture = resumed(suspended(stepped(a_job(), ago_s=10.0)).then(HOUR_S)).then(LIMIT_S)
    assert is_looked_at(picture)
    assert is_requeued(picture.then(21.0))


def test_a_head_that_was_away_when_it_went_on_counts_from_when_it_saw_that() -> None:
    """What it remembers is all that is left of the suspension."""
    picture = suspended(stepped(a_job(), ago_s=10.0)).then(HOUR_S)
    picture = resumed(picture.see(agents_since=picture.now)).then(5.0)
    assert not hangs(picture)


def test_a_job_that_uses_nothing_because_it_was_suspended_does_not_stand_still() -> None:
    picture = resumed(suspended(a_job("any:3,age=0,hang=1800")).then(HOUR_S))
    picture = picture.agent("n1", sights=(a_sight(picture, "n1", Doing.WAITS, for_s=HOUR_S),))
    assert not hangs(picture)
    assert is_looked_at(picture.then(1801.0))


def test_each_time_it_is_suspended_counts() -> None:
    picture = stepped(a_job(), ago_s=10.0)
    for _ in range(3):
        picture = resumed(suspended(picture).then(HOUR_S)).then(LIMIT_S - 20.0)
        assert not hangs(picture)


def test_that_a_former_run_was_suspended_says_nothing_of_this_one() -> None:
    picture = resumed(suspended(a_job()).then(HOUR_S)).then()
    again = picture.change_job(restarts=1, started=picture.now - HOUR_S)
    told = Progress(job=J7, restart=1, node=n("n1"), step=3, stepped=again.now - 301.0, pace_s=2.0, at=again.now)
    assert is_looked_at(again.agent("n1", progress=(told,)))


def test_a_standstill_that_was_told_of_before_it_was_suspended_is_found_anew() -> None:
    picture = stepped(a_job(), ago_s=LIMIT_S + 1.0).then(25.0)
    assert hangs(picture)
    picture = resumed(suspended(picture).then(HOUR_S)).then(1.0)
    assert not hangs(picture)
    assert is_looked_at(picture.then(LIMIT_S))


def test_a_retried_step_that_was_suspended_has_time_too() -> None:
    picture = stepped(a_job(), ago_s=100.0)
    why = Why(rule="resume.retry", text="the step runs again", evidence=("n2",))
    retry = Attempt(decided_for="ask", decision=Decision.RETRY, why=why, at=picture.now)
    mem = replace(picture.memory.jobs[J7], attempts=(retry,))
    loading = replace(picture, memory=replace(picture.memory, jobs={J7: mem}))
    picture = resumed(suspended(loading).then(2 * HOUR_S))
    assert not hangs(picture)


def limited() -> Picture:
    """600 s of its 900 s are over; it goes on after its limit, and is told two minutes before."""
    picture = a_job("1,timeout=1", time_limit_s=900.0)
    return picture.resume(checkpoint_signal="USR1", checkpoint_before_s=120.0)


def is_signalled(picture: Picture) -> bool:
    return any(isinstance(action, SignalJob) for action in picture.plan().actions)


def test_slurm_moves_its_end_and_so_moves_the_signal_before() -> None:
    picture = resumed(suspended(limited()).then(HOUR_S))
    assert not is_signalled(picture)
    assert picture.then().plan().wake_at == picture.now + 180.0
    assert not is_signalled(picture.then(179.0))
    assert is_signalled(picture.then(180.0))


def test_all_the_times_that_it_was_suspended_count_together() -> None:
    picture = limited()
    for _ in range(2):
        picture = resumed(suspended(picture).then(100.0)).then(50.0)
    assert not is_signalled(picture.then(79.0))
    assert is_signalled(picture.then(80.0))


def test_it_gets_no_signal_while_it_is_suspended() -> None:
    assert not is_signalled(suspended(limited()).then(HOUR_S))
    assert not is_signalled(suspended(limited()).then(10.0).then(HOUR_S))


def test_a_picture_of_suspended_jobs_changes_nothing_from_turn_to_turn() -> None:
    picture = suspended(a_job()).then(10.0)
    assert picture.plan().memory == picture.memory


def held(picture: Picture) -> Picture:
    """Its node died, and Slurm put it back into the queue."""
    cleaning = picture.change_job(state=JobState.UNKNOWN, flags=frozenset({"COMPLETING"})).then()
    return cleaning.requeued(reason="JobHeldAdmin", flags=frozenset()).then().then(1.1)


def test_a_job_that_a_person_suspended_stays_held_when_its_node_dies_and_is_told_why() -> None:
    picture = held(suspended(a_job()).then(10.0))
    assert not any(isinstance(action, NudgeJob) for action in picture.plan().actions)
    (told,) = explain_waiting(picture)
    assert "it was suspended when its last run ended, for which Slurm holds it (JobHeldAdmin)" in told
    again = picture.change_job(state=JobState.RUNNING, reason="", nodes=names("n2"), started=picture.now).then()
    assert again.memory.jobs[J7].suspension is None


def test_a_job_that_went_on_before_its_node_died_is_held_by_whoever_holds_it() -> None:
    (told,) = explain_waiting(held(resumed(suspended(a_job()).then(10.0)).then(10.0)))
    assert "it is held (JobHeldAdmin)" in told


def explain_waiting(picture: Picture) -> list[str]:
    lines = explain_job(J7, picture.seen, picture.want, picture.memory, picture.now)
    return [line for line in lines if line.startswith("The job has waited to run again")]
