"""Jobs that ended while nobody asked: requeued on evidence, left alone otherwise."""

from dataclasses import replace

import pytest

from steward.model.action import RequeueJob
from steward.model.agent_action import Action
from steward.model.job import JobState
from tests.builders.picture import Picture, a_cluster
from tests.builders.requeued import J, by_slurm, failed


def late(picture: Picture) -> list[Action]:
    return [a for a in picture.plan().actions if isinstance(a, RequeueJob)]


def test_a_job_that_failed_by_a_nodes_fault_while_the_head_was_away_is_requeued() -> None:
    assert len(late(failed().lost("n2"))) == 1


def test_a_job_that_failed_without_evidence_stays_failed() -> None:
    assert late(failed()) == []


def test_a_node_failure_is_its_own_evidence() -> None:
    (requeue,) = late(failed(JobState.NODE_FAIL))
    assert "the head was away" not in requeue.why.text, "so ends a job with --no-requeue, too"


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.TIMEOUT, JobState.OUT_OF_MEMORY, JobState.COMPLETED])
def test_other_ends_are_never_undone(state: JobState) -> None:
    assert late(failed(state).lost("n2")) == []


def test_evidence_that_turns_up_long_after_the_end_changes_nothing() -> None:
    assert late(failed().wait(310).lost("n2")) == []


def test_a_late_requeue_that_slurm_refuses_is_given_up() -> None:
    picture = failed().lost("n2")
    (action,) = late(picture)
    refused = picture.then(6).see(failures={action.key: "stale: Invalid job id specified"})
    assert late(refused) == []
    assert "could not be requeued" in refused.plan().memory.jobs[J].end_text


def test_the_memory_of_an_ended_job_is_forgotten_after_a_day() -> None:
    picture = replace(by_slurm().see(jobs={}).then(), now=a_cluster().now + 90_000)
    assert picture.plan().memory.jobs == {}
