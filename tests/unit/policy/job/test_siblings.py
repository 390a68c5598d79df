"""A task of an array with a bound (`%1`) that lost its place has it again before its siblings."""

from dataclasses import replace
from typing import Any

from steward.model.action import DelayTasks, DownNode
from steward.model.agent_action import Action
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.policy.job.siblings import DELAY_S, FOR_S
from tests.builders.picture import Picture, a_cluster

ARRAY = JobId(7)


def an_array(*, most: int = 1, eligible: float | None = None) -> Picture:
    """Task 0 runs on three of four nodes; a record stands for three tasks that wait."""
    picture = a_cluster(4).job(array_job_id=ARRAY, array_task=0)
    for name in ("n1", "n2", "n3"):
        picture = picture.node(name, base=NodeBase.ALLOCATED)
    rest: dict[str, Any] = {"state": JobState.PENDING, "started": None, "nodes": frozenset(), "node_count": 3}
    rest |= {"array_job_id": ARRAY, "waiting_tasks": 3, "most_tasks": most, "reason": "JobArrayTaskLimit"}
    return picture.job(8, on=(), eligible=eligible, **rest).opted_in().then()


def delays(picture: Picture) -> list[Action]:
    return [a for a in picture.plan().actions if isinstance(a, DelayTasks)]


def test_its_siblings_wait_before_its_node_is_marked_down() -> None:
    actions = [a for a in an_array().lost("n2").plan().actions if isinstance(a, DelayTasks | DownNode)]
    delay, down = actions
    assert isinstance(delay, DelayTasks)
    assert isinstance(down, DownNode)
    assert (delay.array, delay.job, delay.delay_s) == (ARRAY, 7, DELAY_S)
    assert "job.array_slot" in [event.kind for event in an_array().lost("n2").plan().events]


def test_siblings_of_an_array_without_a_bound_do_not_wait() -> None:
    assert delays(an_array(most=0).lost("n2")) == []


def test_a_later_begin_that_somebody_set_stays() -> None:
    picture = an_array()
    assert delays(an_array(eligible=picture.now + 3600).lost("n2")) == []


def test_nothing_is_delayed_without_a_fault_or_for_a_job_that_may_not_be_requeued() -> None:
    assert delays(an_array()) == []
    assert delays(an_array().change_job(requeue=False).lost("n2")) == []


def requeued() -> Picture:
    return an_array().lost("n2").then().marked("n2").requeued(node_count=3).then(1.2)


def test_they_wait_on_while_it_is_to_start_and_not_for_ever() -> None:
    assert delays(requeued().after(12)) != []
    assert delays(requeued().then(FOR_S).after(12)) == []


def test_they_go_on_when_it_runs() -> None:
    picture = requeued()
    running = picture.change_job(state=JobState.RUNNING, started=picture.now + 1, nodes=frozenset({"n1", "n3", "n4"}))
    later = running.change_job(8, eligible=picture.now + 15).then(2)
    (go,) = delays(running.change_job(8, eligible=picture.now + 15).after(2))
    assert isinstance(go, DelayTasks)
    assert go.delay_s == 0.0
    assert delays(later) == []
    assert delays(replace(running).after(2)) == []  # they are not delayed any more
