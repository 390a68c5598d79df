"""Nothing is done on a record that was not read in this turn: what turns out to be another one is decided anew."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from steward.model.action import DrainNode, ProbeNode
from steward.model.agent_action import Action
from steward.model.events import Event
from steward.model.fit import UNKNOWN, Fit, FitState, Question
from steward.model.ids import JobId, Key, NodeName
from steward.model.mark import Mark
from steward.model.memory import Memory
from steward.model.node import Node, NodeBase
from steward.model.observed import Freshness, Observed, Subject
from steward.model.plan import Plan
from steward.model.why import Why
from steward.workflows.confirm import ROUNDS, Confirmed, plan_confirmed

WHY = Why(rule="test", text="a test wants it", evidence=("e",))
N = [NodeName(f"n{i}") for i in range(9)]


def node(name: NodeName, base: NodeBase = NodeBase.IDLE) -> Node:
    return Node(name=name, base=base)


def drain(name: NodeName) -> Action:
    return DrainNode(key=Key(f"drain:{name}"), why=WHY, node=name, mark=Mark(check="gpu", action="replace", id="c1-0"))


SEEN = Observed(at=0.0, nodes={name: node(name) for name in N})


@dataclass
class World:
    """`truth` differs from the picture; a node is as it is once it was read."""

    truth: dict[NodeName, Node] = field(default_factory=dict)
    away: bool = False
    asked: list[frozenset[NodeName]] = field(default_factory=list)
    read: set[NodeName] = field(default_factory=set)

    def confirm(self, seen: Observed, subject: Subject) -> Confirmed:
        new = subject.nodes - self.read
        if not new:
            return Confirmed(seen=seen, same=True)
        if self.away:
            return Confirmed(seen=replace(seen, slurm=Freshness.OLD), same=False)
        self.asked.append(new)
        self.read |= new
        nodes = {**seen.nodes, **{name: self.truth[name] for name in new if name in self.truth}}
        return Confirmed(seen=replace(seen, nodes=nodes), same=nodes == seen.nodes)

    def confirm_all(self, seen: Observed) -> Observed:
        self.read |= set(N)
        self.asked.append(frozenset(N))
        return replace(seen, nodes={**seen.nodes, **self.truth})


def a_plan(*actions: Action, events: tuple[Event, ...] = ()) -> Plan:
    return Plan(actions=actions, memory=Memory(), events=events)


def idle_ones(seen: Observed) -> Plan:
    """Drain the first idle node."""
    if seen.slurm is not Freshness.FRESH:
        return a_plan()
    first = next((name for name in N if seen.nodes[name].base is NodeBase.IDLE), None)
    return a_plan(drain(first)) if first else a_plan()


def same(plan: Plan) -> Plan:
    return plan


def decided(world: World) -> tuple[Action, ...]:
    return plan_confirmed(idle_ones, same, SEEN, world).result.actions


def test_what_is_as_it_was_planned_on_is_decided_once() -> None:
    world = World()
    assert decided(world) == (drain(N[0]),)
    assert world.asked == [{N[0]}]


def test_what_changed_is_decided_anew() -> None:
    world = World(truth={N[0]: node(N[0], NodeBase.ALLOCATED)})
    assert decided(world) == (drain(N[1]),)
    assert world.asked == [{N[0]}, {N[1]}]


def test_what_cannot_be_read_is_withheld() -> None:
    assert decided(World(away=True)) == ()


def test_a_world_that_differs_in_every_round_is_read_as_a_whole() -> None:
    world = World(truth={name: node(name, NodeBase.ALLOCATED) for name in N[:-1]})
    assert decided(world) == (drain(N[-1]),)
    assert len(world.asked) == ROUNDS + 1
    assert world.asked[-1] == set(N)


def test_an_old_picture_is_not_confirmed() -> None:
    world = World()
    seen = replace(SEEN, slurm=Freshness.OLD)
    assert plan_confirmed(idle_ones, same, seen, world).result.actions == ()
    assert world.asked == []


def test_a_look_at_a_node_needs_no_confirmation() -> None:
    world = World()
    probe = ProbeNode(key=Key("probe:n0"), why=WHY, node=N[0])
    plan_confirmed(lambda seen: a_plan(probe), same, SEEN, world)
    assert world.asked == []


def test_nothing_is_told_of_a_node_that_is_another_one_by_now() -> None:
    def tell_of_idle(seen: Observed) -> Plan:
        is_idle = seen.nodes[N[0]].base is NodeBase.IDLE
        event = Event(at=0.0, kind="case.withheld", text="n0 would be repaired", node=N[0])
        return a_plan(events=(event,) if is_idle else ())

    world = World(truth={N[0]: node(N[0], NodeBase.DOWN)})
    assert plan_confirmed(tell_of_idle, same, SEEN, world).result.events == ()
    assert world.asked == [{N[0]}]


def test_what_a_plan_asks_of_slurm_is_answered_before_it_counts() -> None:
    question, told = Question(job=JobId(7)), Fit(state=FitState.NOW)
    asked: list[Question] = []

    def think(seen: Observed) -> Plan:
        known = seen.fits.get(question)
        return replace(a_plan(drain(N[1]) if known else drain(N[0])), questions=() if known else (question,))

    def ask(seen: Observed, questions: Sequence[Question]) -> Observed:
        asked.extend(questions)
        return replace(seen, fits={question: told})

    decided = plan_confirmed(think, lambda plan: plan, SEEN, World(truth=dict(SEEN.nodes)), ask)
    assert decided.result.actions == (drain(N[1]),)
    assert decided.seen.fits == {question: told}
    assert asked == [question]


def test_a_plan_that_asks_on_and_on_counts_at_last() -> None:
    def think(seen: Observed) -> Plan:
        return replace(a_plan(drain(N[0])), questions=(Question(job=JobId(len(seen.fits) + 1)),))

    def ask(seen: Observed, questions: Sequence[Question]) -> Observed:
        return replace(seen, fits={**seen.fits, **dict.fromkeys(questions, UNKNOWN)})

    assert plan_confirmed(think, lambda plan: plan, SEEN, World(truth=dict(SEEN.nodes)), ask).result.actions == (
        drain(N[0]),
    )
