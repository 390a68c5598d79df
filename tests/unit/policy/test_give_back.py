"""What a fault took of a running job's time limit is given back, once for each retry in place."""

from dataclasses import replace

from steward.model.action import ExtendLimit
from steward.model.ids import JobId
from steward.model.job_report import Progress
from steward.model.ledger import Run
from steward.model.resume import Attempt, Decision
from steward.model.why import Why
from tests.builders.picture import T0, Picture, a_cluster, n

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
