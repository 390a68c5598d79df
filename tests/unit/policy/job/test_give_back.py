"""What a fault took of a running job's time limit is given back, once for each retry in place."""

from dataclasses import replace

from steward.model.action import ExtendLimit
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.job_report import Progress
from steward.model.ledger import Run
from steward.model.resume import Attempt, Decision
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why
from tests.builders.picture import T0, Picture, a_cluster, n, names

J = JobId(7)


def retried(decision: Decision = Decision.RETRY, **fields: object) -> Picture:
    """n2 failed at T0, the retry was decided 40 s later, and it is 60 s after the fault."""
    picture = a_cluster().job(time_limit_s=3600.0).opted_in().then()
    why = Why(rule="resume.evidence", text="a node failed", evidence=("n2",))
    told = {"decided_for": "a1", "decision": decision, "why": why, "at": T0 + 40, "failed_at": T0}
    attempt = Attempt(**{**told, **fields})  # type: ignore[arg-type]
    mem = replace(picture.memory.jobs[J], attempts=(attempt,))
    return replace(picture, memory=replace(picture.memory, jobs={J: mem}), now=T0 + 60)


def extensions(picture: Picture) -> list[float]:
    return [a.limit_s for a in picture.plan().actions if isinstance(a, ExtendLimit)]


def steps(picture: Picture, stepped: float) -> Picture:
    progress = Progress(job=J, restart=0, node=n("n1"), step=12, stepped=stepped)
    return picture.agent("n1", progress=(progress,))


def test_a_job_that_tells_of_its_steps_gets_the_time_from_the_fault_to_its_first_step_after() -> None:
    assert extensions(steps(retried(), T0 + 55)) == [3655.0]


def test_a_failure_without_a_fault_costs_its_user_the_time_that_it_takes() -> None:
    """He decides when the retry makes its first step: a short limit that starts early would grow for ever."""

    wish = ResumeMode.parse("any:3")
    job = steps(a_cluster().job(time_limit_s=3600.0, started=T0 - 3600.0).opted_in(mode=wish), T0 - 5).then()
    asked = job.ask(mode=wish, own=True, age=900).then(0.1).checked("n1", "n2", "n3").then(0.1)
    assert asked.memory.jobs[J].attempts[-1].decision is Decision.RETRY
    assert extensions(steps(asked.after(600.0), T0 + 600)) == []


def test_nothing_is_given_before_the_first_step() -> None:
    assert extensions(steps(retried(), T0 - 5)) == []


def test_a_job_that_tells_nothing_gets_the_time_until_it_works_on() -> None:
    assert extensions(retried()) == [3660.0]


def test_steps_that_only_the_lost_node_told_of_so_far_are_waited_for_all_the_same() -> None:
    picture = retried()
    run = replace(Run(job=J, opted_at=T0, restart=0, uid=1000, started=T0 - 60), first_step=T0 - 50)
    picture = replace(picture, memory=replace(picture.memory, ledger={J: (run,)}))
    assert extensions(picture) == []
    assert extensions(steps(picture, T0 + 55)) == [3655.0]


def test_it_is_given_once_and_stays_the_same_limit() -> None:
    picture = retried().then(100)
    assert extensions(picture) == []
    shorter = picture.then(2 * 86400.0).change_job(time_limit_s=1800.0)
    assert extensions(shorter.then(60.0)) == [], "somebody set another limit, days later"
    lost_in_a_crash = replace(picture, memory=replace(picture.memory, asked={}))
    assert extensions(lost_in_a_crash) == [3660.0]
    assert extensions(lost_in_a_crash.change_job(time_limit_s=3660.0)) == []


def test_a_requeue_starts_the_limit_anew_and_gives_nothing() -> None:
    assert extensions(retried(Decision.REQUEUE)) == []


def test_another_run_is_not_given_what_an_earlier_one_lost() -> None:
    assert extensions(retried().change_job(restarts=1)) == []


def test_a_moment_is_not_worth_a_minute() -> None:
    picture = retried(at=T0)
    assert extensions(replace(picture, now=T0 + 0.5)) == []


def test_nothing_is_given_where_the_site_says_so_or_there_is_no_limit() -> None:
    assert extensions(retried().resume(give_back_time=False)) == []
    assert extensions(retried().change_job(time_limit_s=None)) == []


def failed(picture: Picture, error: str) -> Picture:
    (action,) = [a for a in picture.plan().actions if isinstance(a, ExtendLimit)]
    return picture.then().see(failures={action.key: error})


def test_a_try_that_did_not_come_through_is_made_again_each_minute_with_the_same_limit() -> None:
    picture = failed(retried(), "retry: scontrol did not come back within 10 s")
    assert extensions(picture.then(59.0)) == []
    assert extensions(picture.then(60.0)) == [3660.0]
    assert extensions(picture.then(60.0).then(60.0)) == [3660.0]
    assert extensions(picture.then(60.0).change_job(time_limit_s=3660.0)) == []


def test_a_limit_that_slurm_refused_is_not_asked_for_again() -> None:
    picture = failed(retried(), "refused: Requested time limit is invalid")
    assert extensions(picture.then(60.0)) == []


def suspended(picture: Picture, for_s: float) -> Picture:
    picture = picture.change_job(state=JobState.SUSPENDED).then(for_s)
    return picture.change_job(state=JobState.RUNNING).then(10.0)


def test_time_in_which_the_job_was_suspended_is_not_given_back() -> None:
    picture = suspended(steps(retried(), T0 - 5), 3 * 3600.0)
    assert extensions(steps(picture, picture.now)) == [3600.0 + 70.0]


def test_a_suspension_before_the_fault_changes_nothing() -> None:
    picture = a_cluster().job(on=("n1", "n2", "n3"), time_limit_s=7200.0).opted_in().then()
    picture = steps(suspended(picture, 3600.0), T0).then().ask()
    failed_at = picture.now
    picture = picture.lost("n2").then().marked("n2").change_job(nodes=names("n1", "n3")).after(0.1)
    (attempt,) = picture.plan().memory.jobs[J].attempts
    assert attempt.decision is Decision.RETRY
    assert attempt.suspended_s == 3600.0
    picture = picture.then(30.0)
    assert extensions(steps(picture, picture.now)) == [7200.0 + picture.now - failed_at]
