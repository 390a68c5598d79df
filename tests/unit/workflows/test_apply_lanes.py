"""Slow calls of one kind hold up none of another: least of all the look at a node that may be dead."""

from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest

from steward.model.action import BackUpNode, ExtendLimit, LaunchInstance, ProbeNode
from steward.model.agent_action import Action
from steward.model.ids import CaseId, InstanceId, JobId, Key, NodeName
from steward.model.instance import Slot
from tests.fakes.applier import J7, N1, WHY, Bench, launch
from tests.fakes.head_ports import FakeSite
from tests.fakes.slurm import FakeSlurm
from tests.fakes.until import FACT_S, until

MANY = 50
PROBE = ProbeNode(key=Key("probe:n1"), why=WHY, node=N1, peers=frozenset())


def launches() -> list[Action]:
    return [
        LaunchInstance(
            key=Key(f"launch:{number}"),
            why=WHY,
            slot=Slot(node=NodeName(f"g{number}"), group="g"),
            token=f"t{number}",
            case=CaseId(""),
        )
        for number in range(MANY)
    ]


def backups() -> list[Action]:
    return [
        BackUpNode(
            key=Key(f"backup:{number}"), why=WHY, node=NodeName(f"g{number}"), instance=InstanceId(f"i-{number}")
        )
        for number in range(MANY)
    ]


def extensions(count: int = MANY) -> list[Action]:
    return [
        ExtendLimit(key=Key(f"extend:{number}"), why=WHY, job=JobId(J7 + number), limit_s=60.0)
        for number in range(count)
    ]


@dataclass(kw_only=True)
class HungSite(FakeSite):
    gate: Event = field(default_factory=Event)

    def back_up(self, *words: Any, restore: bool) -> None:
        self.gate.wait(FACT_S)


class HungSlurm(FakeSlurm):
    gate = Event()

    def extend(self, *words: Any) -> None:
        self.gate.wait(FACT_S)


@pytest.mark.parametrize("slow", [launches(), backups(), extensions()], ids=["launches", "backups", "limits"])
def test_a_dead_node_is_looked_at_while_many_slow_calls_hang(slow: list[Action]) -> None:
    site, slurm = HungSite(), HungSlurm.with_nodes("n1", "n2", "n3")
    HungSlurm.gate.clear()
    bench = Bench(slurm=slurm, site=site)
    bench.apply(*slow, PROBE)
    until("the node is looked at", lambda: bench.counted == [("ProbeNode", "done")])
    assert bench.witness.looks == [{N1}]
    for gate in (bench.provider.gate, site.gate, HungSlurm.gate):
        gate.set()
    until("all are done", lambda: len(bench.counted) == MANY + 1)


def test_a_limit_is_extended_while_machines_and_backups_hang() -> None:
    site = HungSite()
    bench = Bench(site=site)
    bench.run_job()
    bench.apply(*launches(), *backups(), *extensions(1))
    until("the limit is extended", lambda: [kind for kind, _ in bench.counted] == ["ExtendLimit"])
    bench.provider.gate.set()
    site.gate.set()
    until("all are done", lambda: len(bench.counted) == 2 * MANY + 1)


def test_backups_that_hang_hold_up_no_launch() -> None:
    site = HungSite()
    bench = Bench(site=site)
    bench.provider.gate.set()
    bench.apply(*backups(), launch())
    until("the machine is launched", lambda: bench.counted == [("LaunchInstance", "done")])
    site.gate.set()
    until("all are done", lambda: len(bench.counted) == MANY + 1)
