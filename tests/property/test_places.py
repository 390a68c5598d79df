"""Which jobs are on which nodes: what is kept from picture to picture is what a look at every job would tell."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.workflows.attention import jobs_by_node

NODES = [NodeName(f"n{i}") for i in range(1, 5)]
a_job = st.builds(
    Job,
    id=st.sampled_from([JobId(i) for i in range(1, 7)]),
    name=st.just("train"),
    state=st.sampled_from(JobState),
    user_id=st.just(1000),
    flags=st.sampled_from([frozenset(), frozenset({"COMPLETING"})]),
    nodes=st.frozensets(st.sampled_from(NODES)),
)
pictures = st.lists(st.lists(a_job, max_size=6).map(lambda jobs: {job.id: job for job in jobs}), max_size=8)


class Watched(Job):
    """A job that counts how often somebody asks whether it is over."""

    looks = 0

    @property
    def is_over(self) -> bool:
        Watched.looks += 1
        return super().is_over


def by_hand(jobs: Mapping[JobId, Job]) -> dict[NodeName, set[JobId]]:
    there = {id: job for id, job in jobs.items() if not job.is_over and not job.is_pending}
    found = {node: {id for id, job in there.items() if node in job.nodes} for node in NODES}
    return {node: ids for node, ids in found.items() if ids}


class Kept:
    """What is kept from picture to picture."""

    def __init__(self) -> None:
        self._index = jobs_by_node()

    def of(self, jobs: Mapping[JobId, Job]) -> dict[NodeName, set[JobId]]:
        self._index.follow(jobs)
        return {node: set(ids) for node in NODES if (ids := self._index.having(node))}


@given(pictures)
def test_it_tells_what_a_look_at_every_job_tells(taken: list[dict[JobId, Job]]) -> None:
    kept = Kept()
    for jobs in taken:
        assert kept.of(jobs) == by_hand(jobs)
        assert kept.of(dict(jobs)) == by_hand(jobs)


@given(pictures)
def test_it_goes_on_from_a_picture_that_came_back(taken: list[dict[JobId, Job]]) -> None:
    kept = Kept()
    for jobs in [*taken, *reversed(taken)]:
        assert kept.of(jobs) == by_hand(jobs)


def test_only_jobs_that_changed_are_looked_at() -> None:
    jobs = {
        id: Watched(id=id, name="train", state=JobState.RUNNING, user_id=1000, nodes=frozenset(NODES))
        for id in map(JobId, range(1, 501))
    }
    kept = Kept()
    kept.of(jobs)
    Watched.looks = 0
    kept.of(dict(jobs))
    assert Watched.looks == 0
    kept.of({**jobs, JobId(7): replace(jobs[JobId(7)], restarts=1)})
    assert Watched.looks == 1, "where it was is known"
