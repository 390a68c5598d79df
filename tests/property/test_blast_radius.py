"""The blast radius on a simulated cluster of 200 nodes: storms, many faults of their own, flaps, and breakers."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steward.model.action import DownNode, DrainNode, LaunchInstance, ReturnNode, SetFeature
from steward.model.agent_tables import HealthPolicy
from steward.model.case import CaseStep
from steward.model.desired import Desired
from steward.model.health import Advice, Finding, Outcome, Severity
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.model.memory import Memory
from steward.model.node import Reason
from steward.model.observed import Observed
from steward.model.plan import Plan
from steward.model.repair_policy import RepairPolicy
from steward.policy.controls import resume_actions
from tests.builders.want import a_want, acts, but
from tests.fakes.head import Head
from tests.fakes.world import World
from tests.property.law import Law

NODES = 200
RULES = acts(replacements_per_hour=100, agents_grace_s=5.0)


@dataclass(slots=True)
class Watch:
    """What holds of each plan here: breakers stay tripped, and nobody touches more than he may."""

    want: Desired
    law: bool = True
    most_at_once: int = 0
    touched: Counter[NodeName] = field(default_factory=Counter)
    foreign: dict[NodeName, Reason] = field(default_factory=dict)

    def __call__(self, seen: Observed, memory: Memory, decided: Plan) -> None:
        if self.law:
            Law(self.want)(seen, memory, decided)
        closed = {event.text.split()[1].rstrip(":") for event in decided.events if event.kind == "breaker.closed"}
        assert memory.breakers.keys() - closed <= decided.memory.breakers.keys(), "a breaker was forgotten"
        running = [
            c for c in decided.memory.cases.values() if c.step in (CaseStep.LAUNCH, CaseStep.PROVISION, CaseStep.VERIFY)
        ]
        self.most_at_once = max(self.most_at_once, len(running))
        for action in decided.actions:
            if isinstance(action, DrainNode | DownNode | ReturnNode):
                assert action.node not in self.foreign, f"{action.key} on a node of somebody else"
                self.touched[action.node] += isinstance(action, DrainNode | DownNode)


def a_big_head(nodes: int = NODES, rules: RepairPolicy = RULES, *, law: bool = False, **health: bool) -> Head:
    world = World.of(nodes)
    world.tick_s = 1.0
    slots = {node: Slot(node=node, group=f"rack{i % 4}") for i, node in enumerate(world.slurm.nodes)}
    want = a_want(repair=rules, slots=slots, health=HealthPolicy(features=health.get("features", False)))
    head = Head(world=world, want=want, watch=Watch(want, law=law))
    run(head, 1.0)
    return head


def run(head: Head, seconds: float) -> None:
    """Coarser than Head.run: an hour of 200 nodes in seconds."""
    until = head.world.now + seconds
    while head.world.now < until - 1e-9:
        wake = head.cycle() or until
        head.world.advance(max(0.1, min(5.0, wake - head.world.now, until - head.world.now)))


def watch(head: Head) -> Watch:
    assert isinstance(head.watch, Watch)
    return head.watch


def memory(head: Head) -> Memory:
    assert head.memory is not None
    return head.memory


def names(count: int, first: int = 1) -> list[NodeName]:
    return [NodeName(f"n{i}") for i in range(first, first + count)]


def fail(head: Head, node: NodeName, severity: Severity = Severity.DEGRADED, check: str = "disk") -> None:
    head.world.machines.fail_check(node, severity, Advice.REPLACE, head.world.now, check)


@pytest.mark.parametrize("severity", [Severity.DEGRADED, Severity.FATAL])
def test_one_cause_on_sixty_of_two_hundred_nodes_is_one_incident_and_no_drain(severity: Severity) -> None:
    head = a_big_head()
    for node in names(60):
        fail(head, node, severity, "mounts")
    run(head, 10.0)
    assert [kind for kind, one in memory(head).incidents.items() if one.over is None] == ["check:mounts"]
    assert [e.kind for e in head.events].count("incident.opened") == 1
    assert watch(head).touched == {}
    assert "case.opened" not in [event.kind for event in head.events]


@given(
    delays=st.lists(st.floats(0.0, 8.0), min_size=3, max_size=6),
    nodes=st.sampled_from([6, 20]),
    restart=st.booleans(),
)
@settings(max_examples=25)
def test_a_cause_that_reaches_the_nodes_one_after_the_other_while_the_first_settles_drains_none(
    delays: list[float], nodes: int, restart: bool
) -> None:
    """However they follow each other, also when the head is killed in between."""
    head = a_big_head(nodes)
    last = 0.0
    for number, (node, at) in enumerate(zip(names(len(delays)), sorted(delays), strict=True)):
        run(head, at - last)
        last = at
        fail(head, node, check="mounts")
        if restart and number == 0:
            run(head, 0.1)
            head.memory = None
            head.world.restart_head()
    run(head, 60.0)
    assert watch(head).touched == {}
    assert "check:mounts" in memory(head).incidents


def test_a_degraded_finding_that_stands_alone_drains_its_node_once_it_has_settled() -> None:
    head = a_big_head(20)
    fail(head, NodeName("n3"))
    run(head, 9.0)
    assert watch(head).touched == {}
    run(head, 9.0)
    assert set(watch(head).touched) == {NodeName("n3")}


def test_one_that_passes_again_before_it_settled_begins_anew_the_next_time() -> None:
    head = a_big_head(20)
    node = NodeName("n3")
    for _ in range(5):
        fail(head, node)
        run(head, 6.0)
        machine = head.world.machines.of(node)
        assert machine is not None
        machine.findings = ()
        run(head, 6.0)
    assert watch(head).touched == {}
    assert not memory(head).nodes


def test_a_fatal_finding_does_not_wait_also_where_a_degraded_one_settles() -> None:
    head = a_big_head(20)
    fail(head, NodeName("n3"))
    run(head, 3.0)
    fail(head, NodeName("n3"), Severity.FATAL, "gpu")
    run(head, 2.0)
    run(head, 1.0)
    assert set(watch(head).touched) == {NodeName("n3")}


def test_sixty_agents_that_fall_silent_at_once_are_one_incident_and_no_drain() -> None:
    head = a_big_head()
    for node in names(60):
        head.world.machines.mute(node, head.world.now)
    run(head, 20.0)
    assert [e.kind for e in head.events].count("incident.opened") == 1
    assert watch(head).touched == {}


def test_a_cause_that_creeps_over_the_cluster_is_stopped_by_the_breaker_of_its_check() -> None:
    """Too slow for an incident: one node in half a minute is ten in five minutes, and twenty in ten."""
    rules = but(RULES, correlated_min=1000)
    head = a_big_head(rules=rules)
    for node in names(40):
        fail(head, node, check="driver")
        run(head, 15.0)
    assert "check:driver" in memory(head).breakers
    assert len(watch(head).touched) == 20


@pytest.mark.long
def test_twenty_faults_of_their_own_in_an_hour_are_all_repaired_within_the_caps() -> None:
    head = a_big_head()
    for number, node in enumerate(names(20)):
        fail(head, node, Severity.FATAL if number % 2 else Severity.DEGRADED, f"check-{number}")
        run(head, 170.0)
    run(head, 600.0)
    assert all(head.world.slurm.nodes[node].is_schedulable for node in names(20))
    assert set(watch(head).touched) == set(names(20))
    assert memory(head).breakers == {}
    assert 0 < watch(head).most_at_once <= 4 * max(1, int(RULES.concurrent_fraction * NODES / 4))


def test_more_faults_than_may_be_repaired_in_an_hour_wait_for_their_hour() -> None:
    head = a_big_head(20, but(RULES, replacements_per_hour=3, breaker_min=100), law=True)
    for number, node in enumerate(names(6)):
        fail(head, node, Severity.FATAL, f"check-{number}")
        run(head, 20.0)
    run(head, 600.0)
    assert sum(isinstance(action, LaunchInstance) for action in head.done) == 3
    run(head, 3600.0)
    assert all(head.world.slurm.nodes[node].is_schedulable for node in names(6))


def test_a_node_whose_finding_flaps_is_not_drained_and_given_back_in_turn() -> None:
    """Each good minute would be an end, each bad one a beginning: the node goes once, and comes back repaired."""
    head = a_big_head(20, but(RULES, settle_degraded_s=0.0))
    node = NodeName("n3")
    for _ in range(20):
        fail(head, node, check="ib.flap")
        run(head, 5.0)
        machine = head.world.machines.of(node)
        if machine is not None:
            machine.findings = ()
        run(head, 5.0)
    run(head, 300.0)
    returned = [a for a in head.done if isinstance(a, ReturnNode) and a.node == node]
    assert len(returned) <= RULES.node_repairs
    assert len(watch(head).touched) == 1


def test_what_nobody_knows_drains_nothing() -> None:
    head = a_big_head(20)
    for node in list(head.world.slurm.nodes):
        machine = head.world.machines.of(node)
        assert machine is not None
        unknown = [
            Finding(
                check=f"check-{i}", outcome=Outcome.UNKNOWN, severity=each, advice=Advice.REPLACE, at=head.world.now
            )
            for i, each in enumerate(Severity)
        ]
        machine.findings = tuple(unknown)
    run(head, 60.0)
    assert head.done == []


def test_nodes_that_others_took_out_are_left_alone_over_every_path() -> None:
    """Also while their checks fail, their agents die, breakers trip and are reset, and features are written."""
    head = a_big_head(20, law=True, features=True)
    theirs = names(3)
    for node in theirs:
        head.world.slurm.admin(node, "DRAIN", "fans; do not touch", head.world.now)
        reason = head.world.slurm.nodes[node].reason
        assert reason is not None
        watch(head).foreign[node] = reason
    fail(head, theirs[0], Severity.FATAL)
    head.world.machines.kill(theirs[1])
    for node in names(6, first=10):
        fail(head, node, Severity.FATAL, check="gpu")
        run(head, 200.0)
    head.order(lambda old: resume_actions(old, head.world.now))
    run(head, 300.0)
    for node in theirs:
        assert head.world.slurm.nodes[node].reason == watch(head).foreign[node]
    assert any(isinstance(action, SetFeature) for action in head.done)


def test_a_tripped_breaker_outlives_the_head_and_lets_one_repair_through_after_its_patience() -> None:
    head = a_big_head(20, but(RULES, correlated_min=1000, breaker_min=100), law=True)
    for node in names(4):
        fail(head, node, check="driver")
        run(head, 30.0)
    assert set(memory(head).breakers) == {"check:driver"}
    assert len(watch(head).touched) == 2
    head.memory = None
    head.world.restart_head()
    run(head, 60.0)
    assert set(memory(head).breakers) == {"check:driver"}
    run(head, RULES.breaker_patience_s + 300.0)
    assert memory(head).breakers == {}
    assert "breaker.half_open" in [event.kind for event in head.events]
    assert "breaker.closed" in [event.kind for event in head.events]
    assert all(head.world.slurm.nodes[node].is_schedulable for node in names(4))


def test_a_breaker_whose_trial_ends_badly_stays_tripped_for_longer() -> None:
    head = a_big_head(20, but(RULES, correlated_min=1000, breaker_min=100, max_launches=1), law=True)
    for node in names(4):
        fail(head, node, check="driver")
        run(head, 30.0)
    head.world.machines.refusals.extend(["broken for ever"] * 1000)
    run(head, RULES.breaker_patience_s + 600.0)
    breaker = memory(head).breakers["check:driver"]
    assert breaker.patience_s == 2 * RULES.breaker_patience_s
    assert len(watch(head).touched) == 3
