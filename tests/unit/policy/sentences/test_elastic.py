"""The same of the sentences about an elastic run: why its size changes, or does not, and why a replica is ended."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from steward.model.action import CancelReplica
from steward.model.agent_action import ResizeRun, SubmitReplica
from steward.model.elastic import Activity, RunPhase, replica_comment
from steward.model.fit import Fit, FitState
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.plan import Plan
from steward.model.quota import Eviction, QuotaJob, Reclaimed
from steward.views.explain_group import run_lines
from tests.builders.picture import n
from tests.builders.sentences import ROOT, lacking
from tests.builders.want import but
from tests.fakes.elastic_world import QUICK, RUN, ElasticWorld

TOLD_BY = (CancelReplica, ResizeRun, SubmitReplica)


class Told(ElasticWorld):
    """A run that keeps what was said of it: in its explanation, in events, and as reasons of what was done."""

    def __init__(self, **fields: Any) -> None:
        self.said = list[str]()
        super().__init__(**fields)

    def step(self, seconds: float = 1.0) -> Plan:
        plan = super().step(seconds)
        self.said += [action.why.text for action in plan.actions if isinstance(action, TOLD_BY)]
        self.said += [event.text for event in plan.events]
        if (run := plan.memory.elastic.get(RUN)) is not None:
            self.said += run_lines(run, QUICK, self.now)
        return plan

    def remember(self, **memory: Any) -> None:
        self.picture = replace(self.picture, memory=replace(self.picture.memory, **memory))

    def change_run(self, **fields: Any) -> None:
        self.remember(elastic={RUN: replace(self.run, **fields)})

    @property
    def replica(self) -> JobId:
        return self.replicas()[0].id


Story = Callable[[], Told]
ROWS: list[tuple[str, Story, Story]] = []


@cache
def told(story: Story) -> str:
    return "\n".join(story().said)


def say(*sentences: str, where: Story, but_not: Story) -> None:
    ROWS.extend((sentence, where, but_not) for sentence in sentences)


def small() -> Told:
    """A run of two nodes whose site lets none grow."""
    world = Told(policy=but(QUICK, enabled=False))
    world.go(20)
    return world


def unformed() -> Told:
    """No rank has made a step yet."""
    world = Told(policy=but(QUICK, enabled=False))
    world.word = replace(world.word, state=Activity.WAITING)
    world.picture = world.picture.agent("n1", elastic=(world.word,))
    world.go(5)
    return world


def strangers() -> Told:
    """What is told of the job is told in another user's name."""
    world = Told(uid=4711)
    world.go(5)
    return world


def grown(seconds: float = 40, **fields: Any) -> Told:
    world = Told(**fields)
    world.go(seconds)
    return world


say("elastic run 7 of 2 nodes may grow (5)", where=small, but_not=strangers)
say("starts with 2 nodes", where=small, but_not=unformed)
say(
    "grows from 2 to 5 nodes: nodes are idle, have passed their checks and have settled",
    "1 idle node let it grow to 3",
    "makes steps with 5 nodes",
    "the new generation starts",
    where=grown,
    but_not=small,
)


def lost() -> Told:
    """A replica's node dies."""
    world = grown(nodes=5)
    world.die(sorted(world.word.members - world.jobs()[RUN].nodes)[0])
    world.go(5)
    return world


def slept() -> Told:
    """The base's agent is away for a while, and nothing else is."""
    world = Told(deaf=True)
    while not world.ordered:
        world.step()
    world.picture = world.picture.agent_lost("n1").agent("n1", fell_silent=True).node("n1", responding=False)
    world.go(10)
    world.picture, world.deaf = world.picture.heard("n1").node("n1", responding=True), False
    world.go(1)
    return world


say(
    "goes on from 5 to 4 nodes: a node of the run is lost",
    "elastic run 7: lost n3",
    where=lost,
    but_not=grown,
)
say("a member is lost", where=slept, but_not=grown)


def preempted(saved_s: float | None = None) -> Told:
    world = grown()
    world.word = replace(world.word, saved_s=saved_s)
    world.warn(world.replica)
    world.go(6)
    return world


def needed() -> Told:
    """Somebody waits for two nodes, and none is idle."""
    world = grown(nodes=5)
    world.queue(2)
    world.go(12)
    return world


def reclaimed() -> Told:
    world = grown()
    eviction = Eviction(
        at=world.now, restart=0, cause=Reclaimed.RECLAIM, to_team="b", to_job=3, text="is evicted for job 3 of team b"
    )
    memory = {world.replica: QuotaJob(team="a", evictions=(eviction,), count=1)}
    for _ in range(8):
        world.remember(quota_jobs=memory)
        world.step()
    return world


def asked() -> Told:
    world = grown()
    world.change_run(wish=3)
    world.go(10)
    return world


def ended() -> Told:
    world = grown()
    world.end(world.replica)
    world.go(5)
    return world


say("shrinks from 5 to 4 nodes: Slurm preempts a replica job", where=preempted, but_not=ended)
say("shrinks from 5 to 3 nodes: others need the nodes", where=needed, but_not=reclaimed)
say("a team reclaims its quota", where=reclaimed, but_not=needed)
say("a person asked for it", where=asked, but_not=needed)
say("a replica job has ended", where=ended, but_not=preempted)


def by_itself() -> Told:
    """Its coordinator forms it again without being told to."""
    world = grown()
    fewer = world.word.members - {max(world.word.members)}
    world.word = replace(world.word, generation=world.word.generation + 1, members=fewer, state=Activity.FORMING)
    world.picture = world.picture.agent("n1", elastic=(world.word,))
    world.step()
    return world


say("formed again without an order, with 4 nodes instead of 5", where=by_itself, but_not=preempted)
say(
    "made no step at its new size in time",
    where=lambda: grown(100, forms_s=500.0),
    but_not=grown,
)
say(
    "elastic run 7: from the request until all ranks had saved took 40 s, longer than its grace of 20 s: when nodes "
    "must be given back, steps may be lost. Submit it with a longer grace=",
    where=lambda: preempted(40.0),
    but_not=lambda: preempted(10.0),
)
say(
    "the change of size was not carried out in time: the run stays at its size",
    where=lambda: grown(60, deaf=True, seams=True, saves_s=0.0),
    but_not=grown,
)
say(
    "its ranks have not saved within",
    where=lambda: grown(150, saves_s=1000.0),
    but_not=lambda: grown(60, seams=False),
)


def pressed() -> Told:
    """Somebody comes to wait while no rank has begun to save for a growth."""
    world = Told(seams=False, nodes=5)
    while not world.ordered:
        world.step()
    world.queue(1)
    world.go(8)
    return world


def gone() -> Told:
    """The new nodes are gone before a rank has begun to save."""
    world = Told(seams=False, nodes=3, spec="3")
    while not world.ordered:
        world.step()
    world.end(world.replica)
    world.go(5)
    return world


say(
    "the growth from 2 to 5 nodes is called off: no rank finished a step within 35 s; next try in 20 s",
    where=lambda: grown(45, seams=False),
    but_not=pressed,
)
say("called off: others need the nodes", where=pressed, but_not=gone)
say("called off: the new nodes are gone", where=gone, but_not=pressed)
say("the change of size is called off", where=pressed, but_not=grown)


def forced(**word: Any) -> Told:
    """A replica is preempted; what that cost."""
    world = grown()
    world.warn(world.replica)
    while world.word.generation < 3:
        world.step()
    world.word = replace(world.word, **word)
    world.go(5)
    return world


say(
    "makes steps with 4 nodes; n2 had not saved in time: 12 steps (30 s of work) are made again",
    where=lambda: forced(unsaved=frozenset({n("n2")}), again=12, again_s=30.0),
    but_not=lambda: forced(again=12, again_s=30.0),
)
say(
    "12 steps (30 s of work) are made again",
    where=lambda: forced(again=12, again_s=30.0),
    but_not=lambda: forced(unsaved=frozenset({n("n2")})),
)
say(
    "its steps since the last checkpoint are made again (how many is not known)",
    where=lambda: forced(unsaved=frozenset({n("n2")})),
    but_not=lambda: forced(),
)


def alone() -> Told:
    world = Told()
    world.word = replace(world.word, alone="no token")
    world.picture = world.picture.agent("n1", elastic=(world.word,))
    world.go(5)
    return world


say(
    "elastic run 7: stays at its size, it has no coordinator: no token",
    where=alone,
    but_not=lambda: grown(5, steerable=False),
)
say(
    "elastic run 7: does not grow, as its program never asks whether to save (resize_wanted)",
    where=lambda: grown(5, steerable=False),
    but_not=alone,
)


def unjoined() -> Told:
    return grown(100, joins=False, base=4, spec="5")


def short_lived() -> Told:
    """Its replicas end at once."""
    world = Told(nodes=3, spec="3", joins=False)
    for _ in range(10):
        world.step()
        for job in [one.job for one in world.run.replicas if one.job is not None]:
            world.end(job)
    return world


say(
    "elastic run 7: a replica job could not be submitted: sbatch: no",
    "elastic run 7: a replica job could not be submitted; no growth for",
    where=lambda: grown(15, refuses=True),
    but_not=short_lived,
)
say("elastic run 7: a replica job ended before it took part; no growth for", where=short_lived, but_not=unjoined)
say("it did not join in time", where=unjoined, but_not=short_lived)


def unfit(missing: str) -> Told:
    world = Told(nodes=3)
    (question,) = world.picture.plan().questions
    world.picture = world.picture.see(fits={question: Fit(state=FitState.LATER, at=world.now, missing=missing)})
    world.step()
    return world


say("elastic run 7: it does not grow to 3: ", where=lambda: unfit("gres"), but_not=lambda: unfit("nodelist"))


def base_ends() -> Told:
    world = grown()
    world.cleans_s = 30.0
    world.end(RUN)
    world.go(3)
    return world


def over() -> Told:
    world = grown()
    world.picture = world.picture.change_job(RUN, state=JobState.CANCELLED, ended=world.now)
    world.go(3)
    return world


def trained() -> Told:
    """The script of its base goes on after the training."""
    world = grown()
    world.word = replace(world.word, state=Activity.ENDED)
    world.go(10)
    return world


def queued() -> Told:
    world = grown()
    waits = {"state": JobState.PENDING, "nodes": frozenset(), "started": None, "restarts": 1}
    world.picture = world.picture.change_job(RUN, **waits)
    world.picture = world.picture.agent("n1", elastic=())
    world.go(3)
    return world


say("its base job ends", where=base_ends, but_not=over)
say("its training is done, or its base job has ended", where=over, but_not=queued)
say("its base job was requeued", where=queued, but_not=over)
say("its base job does not run", where=queued, but_not=grown)
say("the training of its run is done", where=trained, but_not=base_ends)


def stray(base: bool) -> Told:
    """A replica of a run of which nobody knows, with or without the job that it names."""
    world = small() if base else strangers()
    other = RUN if base else JobId(8)
    world.picture = world.picture.job(100, on=("n4",), comment=replica_comment(other, "r1"), user_id=world.uid)
    world.picture = world.picture.change_job(100, user_id=world.jobs()[RUN].user_id)
    world.go(70)
    return world


say("its base job is gone", where=lambda: stray(base=False), but_not=lambda: stray(base=True))


def doubled() -> Told:
    """A replica runs on a node of its own run."""
    world = grown()
    id = world.queue(1, comment=replica_comment(RUN, "x"))
    there = {"state": JobState.RUNNING, "nodes": frozenset({n("n2")}), "batch_host": n("n2"), "started": world.now}
    world.picture = world.picture.change_job(id, **there)
    world.step()
    return world


def replica(*, is_lost: bool = False, stays: bool = True, ending: bool = False) -> Told:
    """A replica that runs and does not take part; its node is lost, or it ends, or is ended, or is not needed."""
    world = grown(3, joins=False, nodes=6, spec="3")
    (one,) = world.run.replicas
    assert one.job is not None
    node = next(iter(world.jobs()[one.job].nodes))
    if is_lost:
        world.dead.add(node)
        world.picture = world.picture.node(node, base=NodeBase.DOWN, responding=False)
    if not stays:
        world.word = replace(world.word, leaving=frozenset({node}))
        world.picture = world.picture.agent("n1", elastic=(world.word,))
    if ending:
        world.change_run(replicas=(replace(one, ending=world.now),))
    world.step()
    return world


say("another part of the run is on its node", where=doubled, but_not=grown)
say("its node is lost", where=lambda: replica(is_lost=True), but_not=replica)
say("the replica ends, and the run goes on without it", where=lambda: replica(stays=False), but_not=replica)
say("elastic run 7", where=replica, but_not=strangers)
say("the run goes on without it", where=lambda: replica(ending=True), but_not=replica)


def not_formed() -> Told:
    world = grown()
    world.change_run(phase=RunPhase.WAITING)
    world.word = replace(world.word, state=Activity.WAITING, members=frozenset())
    world.picture = world.picture.agent("n1", elastic=(world.word,))
    world.go(QUICK.form_s + 30)
    return world


def forming() -> Told:
    world = grown()
    world.change_run(phase=RunPhase.WAITING)
    world.word = replace(world.word, state=Activity.WAITING, members=frozenset())
    world.picture = world.picture.agent("n1", elastic=(world.word,))
    world.go(5)
    return world


def waiting(*, paused: bool = False, seconds: float = 1, busy: bool = False, wish: int | None = None) -> Told:
    """A replica that waits for a node."""
    world = grown(3, joins=False, spec="3")
    world.picture = world.picture.change_job(world.replica, **WAITS)
    if busy:
        world.picture = world.picture.job(50, on=("n3", "n4", "n5", "n6"))
    world.change_run(paused=paused, wish=wish)
    world._settle()
    world.go(seconds)
    return world


def contended(others: int) -> Told:
    """One of three replicas waits, and so do jobs of others; no node is idle."""
    world = grown(nodes=5)
    one = world.replica
    (node,) = world.jobs()[one].nodes
    world.picture = world.picture.change_job(one, **WAITS).job(50, on=(node,))
    world._settle()
    for _ in range(others):
        world.queue(1)
    world.go(12)
    return world


WAITS = {"state": JobState.PENDING, "nodes": frozenset(), "started": None, "node_count": 1}


say("the run has not formed in time", where=not_formed, but_not=forming)
say("others wait for nodes", where=lambda: contended(1), but_not=lambda: contended(0))
say("a person paused the run", where=lambda: waiting(paused=True), but_not=waiting)
say("the run needs no more nodes than it has", where=lambda: waiting(wish=2), but_not=waiting)
say("no idle nodes are left for it", where=lambda: waiting(busy=True, seconds=70), but_not=lambda: waiting(busy=True))


@pytest.mark.parametrize(("sentence", "true", "false"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_it_is_said_where_it_is_true_and_not_where_it_would_be_false(sentence: str, true: Story, false: Story) -> None:
    assert sentence in told(true)
    assert sentence not in told(false)


def test_every_sentence_in_the_code_has_its_two_cases() -> None:
    paths = [ROOT / f"policy/elastic/{name}.py" for name in ("enter", "follow", "replicas")]
    assert lacking(paths, "", ((told(true), told(false)) for _, true, false in ROWS)) == []
