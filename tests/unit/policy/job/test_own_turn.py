"""A job that lost nothing to a machine's fault, only its turn, comes back and goes before nobody."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import FreeNodes, KeepNodes, NudgeJob, RequeueJob, SetNice
from steward.model.agent_action import Action
from steward.model.ids import JobId
from steward.model.instance import Slot
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.reservation import Reservation, hot_name
from steward.model.resume_mode import ResumeMode
from tests.builders.picture import Picture, a_cluster, names
from tests.fakes.head import Head
from tests.fakes.world import World

J, P = JobId(7), JobId(9)
OTHERS = (KeepNodes, FreeNodes, SetNice)
"""What is done at the cost of others."""


def of(picture: Picture, *kinds: type[Action]) -> list[Action]:
    return [a for a in picture.plan().actions if isinstance(a, kinds)]


def base(picture: Picture, base: NodeBase, flags: frozenset[str] = frozenset()) -> Picture:
    for name in ("n1", "n2", "n3"):
        picture = picture.node(name, base=base, flags=flags)
    return picture


def full(mode: str = "1") -> Picture:
    """Three nodes, all of the job; another one wants two of them and is higher in the queue."""
    picture = base(a_cluster(3).job(priority=100), NodeBase.ALLOCATED).opted_in(mode=ResumeMode.parse(mode)).then()
    fields = {"state": JobState.PENDING, "node_count": 2, "user_id": 1, "started": None, "reason": "Resources"}
    return picture.job(P, on=(), priority=300, **{**fields, "submitted": picture.now, "eligible": picture.now})


def put_back(picture: Picture) -> Picture:
    """In the queue, by Slurm for the other job or by a person; it still cleans up."""
    completing = frozenset({"COMPLETING"})
    back = picture.requeued(node_count=3, flags=completing)
    return base(back, NodeBase.ALLOCATED, completing)


def cleaned(picture: Picture) -> Picture:
    """The second in which it ended is over, and its nodes are idle."""
    return base(picture.change_job(flags=frozenset()), NodeBase.IDLE).then(1.1)


def cancelled_for_others() -> Picture:
    """With PreemptMode=CANCEL, where the site brings such jobs back."""
    picture = full().resume(preempted=True)
    return picture.change_job(state=JobState.PREEMPTED, ended=picture.now)


def out_of_time() -> Picture:
    picture = full("1,timeout=1")
    return picture.change_job(state=JobState.TIMEOUT, ended=picture.now)


def test_a_preempted_job_keeps_nothing_from_its_preemptor_and_costs_no_resume() -> None:
    picture = put_back(full())
    assert of(picture, *OTHERS) == []
    assert of(picture.then(0.3), *OTHERS) == []
    assert picture.plan().memory.jobs[J].resumes == 0


def test_a_preempted_job_is_not_put_before_its_preemptor() -> None:
    picture = cleaned(put_back(full()).then(0.3))
    assert [type(a) for a in of(picture, *OTHERS, NudgeJob)] == [NudgeJob]


def test_a_preempted_job_is_given_no_hot_spare() -> None:
    picture = put_back(full()).then(0.3)
    hot = Reservation(name=hot_name("main"), nodes=names("n3"), starts=picture.now, ends=picture.now + 3600)
    spare = picture.resume(hot_spares=1).see(reservations={hot.name: hot}, reservations_at=picture.now)
    assert cleaned(spare).plan().memory.jobs[J].lent is None


def test_what_was_decided_about_an_earlier_run_gives_no_right_to_go_first() -> None:
    lost = full().lost("n2").then()
    back = cleaned(lost.marked("n2").requeued(node_count=3)).then()
    healthy = a_cluster(3).seen
    mended = back.see(nodes=healthy.nodes, agents=healthy.agents)
    mended = replace(mended, memory=replace(mended.memory, cases={}))
    again = base(mended, NodeBase.ALLOCATED).then(30)
    runs = again.change_job(state=JobState.RUNNING, nodes=names("n1", "n2", "n3"), started=again.now).then(3600)
    assert runs.memory.jobs[J].resumes == 1
    picture = put_back(runs)
    assert of(picture, KeepNodes, SetNice) == []
    assert of(cleaned(picture.then(0.3)), KeepNodes, SetNice) == []


@pytest.mark.parametrize("over", [cancelled_for_others, out_of_time])
def test_a_job_whose_turn_was_over_is_put_back_and_waits_for_the_next_one(over: Callable[[], Picture]) -> None:
    picture = over()
    assert [type(a) for a in of(picture, *OTHERS, RequeueJob)] == [RequeueJob]
    back = put_back(picture.then(0.3))
    assert of(back, *OTHERS) == []
    assert [type(a) for a in of(cleaned(back.then(0.3)), *OTHERS, NudgeJob)] == [NudgeJob]


def test_a_preemptor_runs_to_its_end_and_the_job_after_it() -> None:
    world = World.of(3)
    slots = {node: Slot(node=node, group="main") for node in world.slurm.nodes}
    head = Head(world=world, want=replace(a_cluster().want, slots=slots))
    low = world.submit(3, works_s=60.0)
    head.run(10.0)
    high = world.submit(3, mode=None, works_s=20.0)
    world.preemption.firsts.add(high)
    head.run(120.0)
    jobs = world.slurm.jobs
    assert [(jobs[id].state, jobs[id].restarts) for id in (low, high)] == [(JobState.COMPLETED, n) for n in (1, 0)]
    assert not {e.kind for e in head.events} & {"job.keep", "job.first", "job.hot_spare"}


def lost_for(**waiting: Any) -> Picture:
    """The job lost a node that is back; in the queue its user changed it, and another one is higher there."""
    had: dict[str, Any] = {
        "time_limit_s": 3600.0,
        "allocated": "cpu=24,mem=96G,node=3,gres/gpu=6",
        "requested": "cpu=24,node=3",
    }
    picture = base(a_cluster(4).job(priority=100, **had), NodeBase.ALLOCATED).opted_in().then()
    fields: dict[str, Any] = {
        "state": JobState.PENDING,
        "node_count": 4,
        "user_id": 1,
        "started": None,
        "reason": "Resources",
    }
    picture = picture.job(P, on=(), priority=300, **{**fields, "submitted": picture.now, "eligible": picture.now})
    back = picture.lost("n2").then().marked("n2").requeued(node_count=3, allocated="").then(1.2)
    healthy = a_cluster(4).seen
    mended = back.see(nodes=healthy.nodes, agents=healthy.agents)
    return replace(mended, memory=replace(mended.memory, cases={})).change_job(**waiting)


GROWN: list[dict[str, Any]] = [
    {"node_count": 4},
    {"most_nodes": 4},
    {"time_limit_s": 7200.0},
    {"time_limit_s": None},
    {"partition": "other"},
    {"exclusive": True},
    {"requested": "cpu=25,node=3"},
    {"requested": "cpu=3,node=3,gres/gpu=12"},
]


def test_a_job_that_lost_its_place_goes_first_with_what_it_had_or_less() -> None:
    assert len(of(lost_for(), SetNice)) == 1
    assert len(of(lost_for(node_count=2, time_limit_s=60.0), SetNice)) == 1


@pytest.mark.parametrize("grown", GROWN, ids=str)
def test_a_job_that_its_user_made_larger_has_no_place_to_get_back(grown: dict[str, Any]) -> None:
    assert of(lost_for(**grown), SetNice) == []


@pytest.mark.parametrize("grown", GROWN, ids=str)
def test_a_job_that_grows_while_it_is_first_is_first_no_longer(grown: dict[str, Any]) -> None:
    first = lost_for().then(0.2)
    raised = first.memory.jobs[J].raised
    assert raised is not None
    (back,) = of(first.change_job(nice=raised.nice, **grown), SetNice)
    assert isinstance(back, SetNice)
    assert back.nice == raised.before


def started_first(nodes: int, **changed: Any) -> Picture:
    """The job was put first, and has started on so many nodes; it had three."""
    first = lost_for().then(0.2)
    raised = first.memory.jobs[J].raised
    assert raised is not None
    on = names(*(f"n{at}" for at in range(1, nodes + 1)))
    runs = first.change_job(state=JobState.RUNNING, restarts=1, started=first.now, nice=raised.nice, reason="")
    return runs.change_job(nodes=on, node_count=nodes, batch_host="n1", **changed)


def test_a_job_that_starts_out_of_turn_with_more_goes_back_into_the_queue() -> None:
    assert of(started_first(3), RequeueJob) == []
    assert len(of(started_first(3, time_limit_s=9e5), RequeueJob)) == 1
    more = started_first(4)
    assert len(of(more, RequeueJob)) == 1
    assert len(of(more.change_job(nice=0), RequeueJob)) == 1, "it was set back in that second"
    back = more.then(1.0).requeued(restarts=2, node_count=4, nice=0).then(1.2)
    assert [type(a) for a in of(back.then(1.2), SetNice, NudgeJob)] == [NudgeJob]


def test_a_requeue_out_of_turn_that_must_wait_is_asked_for_later() -> None:
    waits = started_first(4).node("n4", gres="gpu:8").agent_lost("n4", ago_s=0.1)
    assert of(waits, RequeueJob) == [], "n4 is silent and not DOWN"
    assert len(of(waits.then(0.3).heard("n4"), RequeueJob)) == 1


def test_a_run_that_goes_on_without_a_lost_node_still_had_it() -> None:
    """As with `--no-kill`."""
    picture = base(a_cluster(4).job(priority=100), NodeBase.ALLOCATED).opted_in().then()
    size = picture.then().change_job(nodes=names("n1", "n3"), node_count=2).then().memory.jobs[J].size
    assert size is not None
    assert size.nodes == 3
