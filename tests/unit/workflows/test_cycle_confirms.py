"""The cycle does nothing to a node that is another one than it planned on."""

from steward.model.desired import Desired
from steward.model.memory import Memory
from steward.model.node import NodeBase
from steward.model.observed import Freshness, Observed
from steward.model.plan import Plan
from steward.ports import Retryable
from tests.fakes.applier import N1, down
from tests.unit.workflows.test_cycle import Bench


def down_if_idle(seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
    """Takes n1 out on a fresh picture that shows it idle."""
    is_idle = seen.slurm is Freshness.FRESH and seen.nodes[N1].base is NodeBase.IDLE
    return Plan(actions=(down(),) if is_idle else (), memory=memory)


def test_a_node_that_changed_since_the_last_sweep_is_not_acted_on() -> None:
    bench = Bench()
    bench.cycle.turn()
    bench.clock.at += 0.5
    bench.slurm.submit(on="n1")
    bench.slurm.tick()
    bench.plan = down_if_idle
    bench.cycle.turn()
    assert not bench.slurm.node_table[N1].is_down
    assert bench.snapshots[-1].seen.nodes[N1].base is NodeBase.ALLOCATED
    assert bench.store.commits == 0


def test_a_node_that_is_as_the_last_sweep_showed_it_is_acted_on() -> None:
    bench = Bench()
    bench.cycle.turn()
    bench.clock.at += 0.5
    bench.plan = down_if_idle
    bench.cycle.turn()
    assert bench.slurm.node_table[N1].is_down
    times = bench.snapshots[-1].seen.node_times
    assert times is not None
    assert times.at(N1) == bench.clock.at


def test_nothing_is_done_to_a_node_that_cannot_be_looked_at_now() -> None:
    bench = Bench()
    bench.cycle.turn()
    bench.clock.at += 0.5
    bench.slurm.refuse = Retryable("slurmctld is away")
    bench.plan = down_if_idle
    bench.cycle.turn()
    assert bench.snapshots[-1].seen.slurm is Freshness.OLD
    assert bench.store.commits == 0
