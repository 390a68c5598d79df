"""The ledger over stories: its sums are the timeline's, and it tells the same whenever the head was killed."""

import pytest
from hypothesis import HealthCheck, given, settings

from steward.model.job import JobState
from steward.model.ledger import Ending, Run, Sums
from steward.views.report import timeline
from tests.fakes.head import Head
from tests.property.stories import Blow, a_head, blow, opted_in, stories, tell


def runs_of(head: Head) -> list[Run]:
    """As the store would have them: from the last committed memory, that of a few jobs that nobody forgot."""
    return sorted(
        (run for runs in head.store.memory.ledger.values() for run in runs),
        key=lambda run: (run.job, run.restart, run.attempt),
    )


def is_lawful(runs: list[Run], now: float) -> None:
    """Every job: runs follow each other, only the last is open, and all its time is in one phase."""
    for job in {run.job for run in runs}:
        mine = [run for run in runs if run.job == job]
        assert len({run.key for run in mine}) == len(mine), "two lines for one run"
        assert all(run.ending in (Ending.RETRIED, Ending.REQUEUED) for run in mine[:-1]), mine
        assert [run.started for run in mine] == sorted(run.started for run in mine), mine
        segments = timeline(mine, now)
        end = max(mine[-1].ended or 0.0, mine[-1].started) if mine[-1].ending is Ending.OVER else now
        assert Sums.of(segments).all_s == pytest.approx(end - mine[0].started)


def told(story: list[Blow], kill_at: int | None = None) -> Head:
    head = a_head(works_s=8.0)
    if kill_at is not None:
        head.kill_at = head.point + kill_at
    tell(head, story)
    return head


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(stories)
def test_whatever_befalls_a_cluster_every_jobs_time_is_accounted_for(story: list[Blow]) -> None:
    head = told(story)
    is_lawful(runs_of(head), head.world.now)


@pytest.mark.long
def test_a_head_killed_at_any_point_has_each_run_once_as_slurm_ran_it() -> None:
    """A node of a job dies. Where and by which decision it goes on may differ from kill to kill."""
    story = [blow("kill", "n3")]
    begin = a_head(works_s=8.0).point
    points = told(story).point - begin
    for kill_at in range(0, points, 3):
        head = told(story, kill_at or None)
        runs = runs_of(head)
        is_lawful(runs, head.world.now)
        jobs = sorted(head.world.slurm.jobs.items())
        ran = [(id, restart) for id, job in jobs for restart in range(job.restarts + 1)]
        assert sorted({(run.job, run.restart) for run in runs}) == ran, kill_at
        ends = {run.job: run.end_text for run in runs if run.ending is Ending.OVER}
        assert ends == {id: job.state.value for id, job in jobs}, kill_at


def test_the_lost_run_names_its_culprit_and_every_instant_in_its_order() -> None:
    head = a_head(works_s=8.0)
    job = head.world.submit(2, works_s=10.0)
    opted_in(head, job)
    head.run(2.0)
    victim = max(head.world.slurm.jobs[job].nodes)
    head.world.machines.kill(victim)
    head.run(60.0)

    lost, again = (run for run in runs_of(head) if run.job == job)
    assert lost.culprits == {victim}
    assert lost.ending is Ending.REQUEUED
    assert lost.fault is not None
    assert lost.detected is not None
    assert lost.marked is not None
    assert lost.eligible is not None
    assert lost.fault <= lost.detected <= lost.marked <= lost.eligible <= again.started
    assert again.end_text == JobState.COMPLETED.value
    assert head.world.slurm.jobs[job].admin_comment.startswith("steward: resumed 1x (")
