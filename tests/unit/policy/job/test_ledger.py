"""What the ledger keeps of a job, picture by picture."""

from dataclasses import replace

from steward.model.ask import AskKind
from steward.model.elastic import Cause, ElasticRun, SizeChange
from steward.model.health import Severity
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.job_report import Progress
from steward.model.ledger import Ending, Pause, Run
from steward.model.resume import Decision
from steward.policy.job.ledger import PAUSES_KEPT
from steward.views.report import Window as ReportWindow
from steward.views.report import job_ledgers
from tests.builders.picture import Picture, a_cluster, n, names
from tests.unit.policy.job.test_other_users import others_fail_on

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


def again(picture: Picture, first: int, restart: int = 1) -> Picture:
    """It runs again, and its first step is told."""
    nodes = names("n1", "n3", "n4")
    picture = picture.change_job(state=JobState.RUNNING, nodes=nodes, restarts=restart, started=picture.now).then(1.0)
    return told(picture, restart=restart, step=first, stepped=picture.now, first=first, first_step=picture.now)


def stopped_at_step_90() -> Picture:
    """It told of its first step, a checkpoint at 50, and lost n2 at 90."""
    picture = told(running(), step=1, stepped=running().now, first=1, first_step=running().now).then(9.0)
    at = picture.now
    picture = told(
        hit(picture), step=90, stepped=at, checkpoint_step=50, checkpointed=at - 4, first=1, first_step=at - 9
    )
    return requeued(picture).then(0.1)


def test_a_job_that_begins_again_at_step_1_made_all_its_steps_again() -> None:
    """Its checkpoint was of no use to it: none of its time was work."""
    (first, _) = runs(again(stopped_at_step_90(), 1).then(1.0))
    assert (first.first, first.again_from, first.steps_redone) == (1, 1, 90)
    assert first.kept_until == first.first_step


def test_a_job_that_goes_on_from_its_checkpoint_lost_the_steps_after_it() -> None:
    (first, _) = runs(again(stopped_at_step_90(), 51).then(1.0))
    assert (first.steps_redone, first.kept_until) == (40, first.checkpointed)
    (seldom, _) = runs(again(stopped_at_step_90(), 60).then(1.0))
    assert seldom.steps_redone == 40


def test_a_later_run_that_begins_at_step_1_undoes_every_run_before_it() -> None:
    second = requeued(again(stopped_at_step_90(), 51)).change_job(restarts=2).then(0.1)
    (first, between, _) = runs(again(second, 1, restart=2).then(1.0))
    assert (first.steps_redone, between.again_from) == (90, 1)
    assert between.steps_redone == 1


def test_without_a_checkpoint_the_first_step_of_the_next_run_tells_what_was_lost() -> None:
    """Half of its steps: half of its time."""
    run = Run(job=J7, opted_at=0.0, restart=0, uid=0, started=0.0, first=1, first_step=10.0, step=100, stepped=110.0)
    half = replace(run, ending=Ending.REQUEUED, again_from=51)
    assert (half.steps_redone, half.kept_until) == (50, 60.0)
    assert replace(half, again_from=None).steps_redone is None


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


def changed(picture: Picture, *changes: SizeChange) -> Picture:
    run = ElasticRun(id=J7, uid=1000, spec="4", base=2, events=changes)
    return replace(picture, memory=replace(picture.memory, elastic={J7: run}))


def grew(at: float, **fields: object) -> SizeChange:
    known = SizeChange(at=at, before=2, after=3, cause=Cause.GROW, why="grows", done=at + 5.0, up_s=3.0)
    return replace(known, **fields)  # type: ignore[arg-type]


def test_a_change_of_size_is_noted_once_with_its_pause_and_what_is_made_again() -> None:
    picture = running().then(30.0)
    at = picture.now
    picture = changed(picture.then(20.0), grew(at, again=4, again_s=8.0), grew(at + 10, done=None))
    noted = runs(picture)[0].pauses
    assert noted == (Pause(kept=at + 2 - 8, stopped=at + 2, stepped=at + 5, steps=4),)
    picture = changed(picture.then(1.0), grew(at, again=4, again_s=8.0), grew(at + 10))
    assert [pause.stepped for pause in runs(picture)[0].pauses] == [at + 5, at + 15]


def test_where_no_steps_are_told_what_is_made_again_began_with_the_last_checkpoint() -> None:
    picture = told(running(), checkpoint_step=3, checkpointed=running().now + 6.0).then(30.0)
    at = picture.now
    picture = changed(picture.then(10.0), grew(at, unsaved=names("n2")))
    [pause] = runs(picture)[0].pauses
    assert (pause.kept, pause.stopped, pause.steps) == (running().now + 6.0, at + 2, None)


def test_a_run_with_very_many_changes_of_size_loses_none_of_their_time() -> None:
    picture = running().then(10.0)
    began = picture.now
    many = [grew(began + 20 * n, again=1, again_s=2.0) for n in range(PAUSES_KEPT + 40)]
    picture = changed(picture.then(20.0 * len(many) + 20.0), *many)
    noted = runs(picture)[0].pauses
    assert len(noted) == PAUSES_KEPT
    assert sum(one.stepped - one.kept for one in noted) == 5.0 * len(many)
    assert sum(one.steps or 0 for one in noted) == len(many)


def test_a_retry_and_the_requeue_after_it_for_one_fault_are_one_resume_in_the_report_too() -> None:
    failed = hit(running()).change_job(nodes=names("n1", "n3")).ask(status=1 << 8).then(0.1).checked("n1", "n3").then(4)
    assert failed.memory.jobs[J7].attempts[-1].decision is Decision.RETRY
    again = failed.then(1).see(asks=()).ask(AskKind.BATCH).then(0.1).checked("n1", "n3").then(1)
    back = requeued(again.see(asks=())).then(1.0)
    found = runs(back)
    assert [run.ending for run in found] == [Ending.RETRIED, Ending.REQUEUED]
    (report,) = job_ledgers(found, ReportWindow(until=back.now), back.now)
    assert report.resumes == back.memory.jobs[J7].resumes == 1


def test_a_fault_that_comes_after_the_next_run_began_is_not_why_the_run_before_was_requeued() -> None:
    """The node was blamed because other users' jobs failed on it; its GPU fell off the bus later."""
    failed = others_fail_on("n2", 2001, 2002, picture=running().ask(AskKind.BATCH, status=1 << 8).then(0.1))
    decided = failed.checked("n1", "n2", "n3").then(20)
    back = again(requeued(decided.see(asks=())).then(1.0), first=1)
    (before, _) = runs(back)
    assert (before.decision, before.culprits, before.fault) == (Decision.REQUEUE, names("n2"), None)
    later = back.then(60.0).failing("n2", Severity.FATAL).then(0.5).marked("n2").then(1.0)
    assert later.memory.cases
    (before, _) = runs(later)
    assert (before.fault, before.cases, before.cause) == (None, (), "")


def test_a_requeue_that_a_person_asked_for_is_no_resume() -> None:
    back = requeued(running().then(10)).then(1.0)
    (report,) = job_ledgers(runs(back), ReportWindow(until=back.now), back.now)
    assert report.resumes == back.memory.jobs[J7].resumes == 0
