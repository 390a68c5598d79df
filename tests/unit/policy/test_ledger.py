"""What the ledger keeps of a job, picture by picture."""

from dataclasses import replace

from steward.model.health import Severity
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.job_report import Progress
from steward.model.ledger import Ending, Run
from steward.model.resume import Decision
from tests.builders.picture import Picture, a_cluster, n, names

J7 = JobId(7)


def running() -> Picture:
    return a_cluster().job().opted_in().then(1.0)


def runs(picture: Picture) -> tuple[Run, ...]:
    return picture.plan().memory.ledger.get(J7, ())


def told(picture: Picture, **fields: object) -> Picture:
    base = Progress(job=J7, restart=0, node=n("n1"), at=picture.now)
    return picture.agent("n1", progress=(replace(base, **fields),))  # type: ignore[arg-type]


def hit(picture: Picture) -> Picture:
    return picture.failing("n2", Severity.FATAL).then(0.5).marked("n2")


def requeued(picture: Picture) -> Picture:
    return picture.change_job(state=JobState.PENDING, nodes=names(), restarts=1, started=None, batch_host=None)


def test_a_job_that_did_not_opt_in_is_in_no_ledger() -> None:
    assert runs(a_cluster().job().then(1.0)) == ()


def test_a_run_begins_when_it_was_seen_to_or_when_slurm_says() -> None:
    picture = a_cluster().job(started=a_cluster().now - 0.4).opted_in()
    assert runs(picture)[0].started == picture.now
    late = a_cluster().job(started=a_cluster().now - 600).opted_in()
    assert runs(late)[0].started == late.now - 600


def test_a_requeue_that_shows_before_it_is_decided_on_is_explained_afterwards() -> None:
    """22.05 hides the state of a job that completes: its restart count is ahead of everything else."""
    hidden = hit(running()).change_job(state=JobState.UNKNOWN, flags=frozenset({"COMPLETING"}), restarts=1).then(0.1)
    (run,) = hidden.memory.ledger[J7]
    assert (run.ending, run.decision) == (Ending.REQUEUED, None)
    (run,) = runs(requeued(hidden).change_job(flags=frozenset()).then(0.1))
    assert (run.decision, run.culprits) == (Decision.REQUEUE, names("n2"))
    assert run.fault is not None


def test_steps_are_noted_seldom_and_once_more_at_the_end() -> None:
    picture = told(running(), step=1, stepped=running().now).then(10.0)
    picture = told(picture, step=2, stepped=picture.now).then(10.0)
    assert runs(picture)[0].step == 1
    end = requeued(told(hit(picture), step=9, checkpoint_step=5, checkpointed=picture.now)).then(0.1)
    (run,) = end.memory.ledger[J7]
    assert (run.step, run.checkpoint_step, run.steps_redone) == (9, 5, 4)


def test_progress_of_another_run_or_job_is_not_this_ones() -> None:
    assert runs(told(running(), step=3, restart=4))[0].step is None
    assert runs(told(running(), step=3, job=JobId(8)))[0].step is None


def test_a_job_that_ends_well_is_over_without_a_decision() -> None:
    done = running().change_job(state=JobState.COMPLETED, ended=running().now + 5).then(6.0)
    (run,) = runs(done)
    assert (run.ending, run.end_text, run.decision, run.ended) == (Ending.OVER, "COMPLETED", None, running().now + 5)
    assert not run.was_hit


def test_a_run_of_less_than_a_second_does_not_end_before_it_began() -> None:
    """Slurm tells its end in whole seconds, and its begin was seen."""
    picture = running()
    began = runs(picture)[0].started
    cleaning = picture.change_job(state=JobState.UNKNOWN, flags=frozenset({"COMPLETING"}), ended=began - 0.5)
    done = cleaning.then(0.1).change_job(state=JobState.COMPLETED, flags=frozenset()).then(0.1)
    assert [run.ended for run in (*runs(cleaning), *runs(done))] == [began] * 2


def test_a_ledger_that_does_not_change_is_the_very_same_value() -> None:
    picture = running().then(5.0)
    assert runs(picture) is picture.memory.ledger[J7]


def test_a_run_that_came_and_went_between_two_looks_is_in_it() -> None:
    picture = requeued(hit(running())).then(1.0)
    began = picture.now + 0.5
    picture = picture.after(2.0).change_job(
        state=JobState.COMPLETED, nodes=names("n1", "n3", "n4"), restarts=1, started=began, ended=began + 1.0
    )
    first, second = runs(picture)
    assert (first.ending, second.restart, second.started, second.ended) == (Ending.REQUEUED, 1, began, began + 1.0)
    assert second.ending is Ending.OVER
    assert len(runs(picture.then(1.0))) == 2
