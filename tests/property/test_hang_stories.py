"""A job that stands still, in the simulated cluster and under the law: what becomes of it, whatever else happens."""

import pytest

from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.resume_mode import ResumeMode
from tests.fakes.head import Head
from tests.fakes.world_cluster import ON
from tests.property.stories import ANY, STEP_S, Blow, a_head, blow, opted_in, tell
from tests.property.test_stories import comes_to_rest

TROUBLE = {
    "nothing": [],
    "agent dies": [blow("agent dies", "n5", after_s=0.3)],
    "all agents vanish": [blow("all agents vanish", after_s=0.9, size=2)],
    "orders get lost": [blow("lose actions", size=3)],
    "orders are refused": [blow("refuse actions", size=2)],
    "head away": [blow("head away", after_s=0.9, size=2)],
    "Slurm hangs": [blow("Slurm hangs", after_s=0.9, size=2)],
}


def hung(mode: ResumeMode | None, *, step_s: float | None = STEP_S) -> tuple[Head, JobId]:
    """A job on n5 and n6 that has just been found to stand still, where it is watched."""
    head = a_head()
    job = head.world.submit(2, works_s=20.0, mode=mode, step_s=step_s)
    if mode is not None:
        opted_in(head, job)
    head.run(6.0)
    head.world.stand_still(job)
    head.run(5.6)
    return head, job


def found(head: Head, kind: str) -> list[int | None]:
    return [event.job for event in head.events if event.kind == kind]


@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE)
def test_it_is_resumed_once_whatever_dies_or_gets_lost_meanwhile(trouble: list[Blow]) -> None:
    for point in (None, 3):
        head, job = hung(ANY)
        head.kill_at = None if point is None else head.point + point
        tell(head, trouble)
        assert comes_to_rest(head) == [], f"killed at {point}"
        assert head.memory is not None
        ended, mem = head.world.slurm.jobs[job], head.memory.jobs[job]
        assert (ended.state, ended.restarts, mem.resumes) == (JobState.COMPLETED, 1, 1), f"killed at {point}"


def test_on_evidence_only_it_is_told_of_and_left_running() -> None:
    head, job = hung(ON)
    head.run(30.0)
    assert (found(head, "job.hang_left"), head.world.slurm.jobs[job].restarts) == ([job], 0)


def test_on_evidence_only_a_fault_of_its_node_brings_it_back_elsewhere() -> None:
    head, job = hung(ON)
    tell(head, [blow("degraded", "n6")])
    assert comes_to_rest(head) == []
    assert (head.world.slurm.jobs[job].state, head.world.slurm.jobs[job].restarts) == (JobState.COMPLETED, 1)


@pytest.mark.parametrize("step_s", [STEP_S, None])
def test_without_opt_in_nobody_looks_at_it(step_s: float | None) -> None:
    head, job = hung(None, step_s=step_s)
    head.run(60.0)
    assert (found(head, "job.hang"), head.world.slurm.jobs[job].restarts) == ([], 0)


def test_three_that_stop_together_have_a_cause_that_they_share() -> None:
    head = a_head()
    jobs = [head.world.submit(1, works_s=60.0, mode=ANY, step_s=STEP_S) for _ in range(2)]
    for job in jobs:
        opted_in(head, job)
    head.run(6.0)
    tell(head, [blow("hang", size=3)])
    assert sorted(filter(None, found(head, "job.hang_left"))) == [1, 2, *jobs]
    assert [head.world.slurm.jobs[job].restarts for job in jobs] == [0, 0]
