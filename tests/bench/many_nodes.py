"""A site of thousands of simulated nodes behind the real ports: every Slurm command is counted and costs its time.

Slurm and the provider are the fakes of the contract suite. A read of the nodes is what steward-slurm would tell, read
by the head's own reader: what that costs the head is part of the figures.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from steward.adapters.slurm import records
from steward.model.agent_action import SetUpNode
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, JobId, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.model.job import Job
from steward.model.mark import Mark
from steward.model.node import Node, NodeBase
from steward.model.observed import AgentView
from steward.model.partition import Partition
from steward.model.setup import SetupReport, SetupState
from tests.fakes.head_ports import FakeAgents
from tests.fakes.provider import FakeProvider
from tests.fakes.reader_lines import node_line
from tests.fakes.slurm import FakeSlurm

_TICK_S = 0.05


@dataclass(kw_only=True)
class CountedSlurm(FakeSlurm):
    """`commands` counts what the real adapter would run; each takes `command_s` s besides its answer's reading."""

    command_s: float
    commands: "Counter[str]" = field(default_factory=Counter)
    lock: threading.RLock = field(default_factory=threading.RLock)
    rendered: dict[NodeName, tuple[Node, str]] = field(default_factory=dict)

    def nodes(self, only: Collection[NodeName] | None = None) -> Mapping[NodeName, Node]:
        with self._command("read nodes"):
            texts = [self._text(node) for node in FakeSlurm.nodes(self, only).values()]
        return {node.name: node for node in map(records.node_of, texts)}

    def jobs(self, only: Collection[JobId] | None = None, *, on: Collection[NodeName] = ()) -> Mapping[JobId, Job]:
        with self._command("read jobs"):
            return FakeSlurm.jobs(self, only, on=on)

    def partitions(self) -> Mapping[str, Partition]:
        with self._command("read partitions"):
            return FakeSlurm.partitions(self)

    def drain(self, marks: Mapping[NodeName, Mark], cleared: Collection[NodeName] = ()) -> None:
        with self._command("drain"):
            FakeSlurm.drain(self, marks, cleared)

    def down(self, marks: Mapping[NodeName, Mark]) -> None:
        with self._command("down"):
            FakeSlurm.down(self, marks)

    def give_back(self, nodes: Iterable[NodeName], mark: Mark, command: str = "") -> None:
        with self._command("resume"):
            FakeSlurm.give_back(self, nodes, mark, command)

    def forget_nodes(self, nodes: Iterable[NodeName]) -> None:
        with self._command("delete"):
            FakeSlurm.forget_nodes(self, nodes)

    def set_gate(self, partition: str, *, open: bool) -> None:
        with self._command("partition"):
            FakeSlurm.set_gate(self, partition, open=open)

    def write_partitions(self, text: str) -> None:
        with self._command("reconfigure"):
            FakeSlurm.write_partitions(self, text)

    @contextmanager
    def _command(self, name: str) -> Iterator[None]:
        self.commands[name] += 1
        time.sleep(self.command_s)
        with self.lock:
            yield

    def _text(self, node: Node) -> str:
        known, text = self.rendered.get(node.name, (None, ""))
        if known is None or (known is not node and known != node):
            text = _line(node)
            self.rendered[node.name] = (node, text)
        return text


def _line(node: Node) -> str:
    """As steward-slurm tells of it."""
    return node_line(
        name=node.name,
        address=node.address,
        state="+".join([node.base.value, *sorted(node.flags)]),
        features=",".join(sorted(node.features)),
        active_features="",
        partitions=",".join(sorted(node.partitions)),
        reason=node.reason.text if node.reason else "",
        reason_user=node.reason.user if node.reason else "",
        reason_at=int(node.reason.at) if node.reason else "",
        slurmd_started=int(node.slurmd_started or 0) or "",
    )


@dataclass(kw_only=True)
class CountedProvider(FakeProvider):
    """`slots` is what each instance was launched for; `launches` and `ends` count calls."""

    call_s: float
    slots: dict[InstanceId, Slot] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    calls: "Counter[str]" = field(default_factory=Counter)

    def instances(self) -> Mapping[InstanceId, Instance]:
        time.sleep(self.call_s)
        with self.lock:
            return {id: one for id, one in self.table.items() if one.state is not InstanceState.GONE}

    def launch(self, slot: Slot, token: str) -> Instance:
        time.sleep(self.call_s)
        with self.lock:
            self.calls["launch"] += 1
            self.now = time.time()
            made = FakeProvider.launch(self, slot, token)
            self.slots[made.id] = slot
            return made

    def terminate(self, instance: InstanceId) -> None:
        time.sleep(self.call_s)
        with self.lock:
            self.calls["terminate"] += 1
            self.calls["end"] += self.table[instance].state is not InstanceState.GONE
            FakeProvider.terminate(self, instance)


@dataclass(kw_only=True)
class Nature:
    """Machines boot, their slurmds register, their agents connect and answer; what was ended falls silent."""

    slurm: CountedSlurm
    provider: CountedProvider
    agents: FakeAgents
    ring: Callable[[], None]
    boot_s: float
    stopping: threading.Event = field(default_factory=threading.Event)
    alive: set[InstanceId] = field(default_factory=set)

    def run(self) -> None:
        while not self.stopping.wait(_TICK_S):
            if self.tick(time.time()):
                self.ring()

    def tick(self, now: float) -> bool:
        """Whether the head has news."""
        with self.provider.lock:
            table = dict(self.provider.table)
        came = [i for i in table.values() if i.id not in self.alive and self._is_up(i, now)]
        gone = [id for id in self.alive if table[id].state is InstanceState.GONE]
        with self.slurm.lock:
            for instance in came:
                self._come(instance, now)
            for id in gone:
                self._go(table[id], now)
            self._answer_slurm()
        answered = self._answer_checks(now) | self._run_setups(now)
        return bool(came or gone or answered)

    def _is_up(self, instance: Instance, now: float) -> bool:
        return instance.state is InstanceState.RUNNING and now >= instance.launched + self.boot_s

    def _come(self, instance: Instance, now: float) -> None:
        self.alive.add(instance.id)
        who = Incarnation(instance=instance.id, boot=BootId(f"boot-{instance.id}"))
        self.agents.table[instance.node] = AgentView(
            node=instance.node, incarnation=who, connected=True, last_heard=now, reported_at=now
        )
        self.slurm.node_table[instance.node] = Node(
            name=instance.node,
            base=NodeBase.IDLE,
            flags=frozenset({"DRAIN", "DYNAMIC_NORM"}),
            features=self.provider.slots[instance.id].features,
            address="127.0.0.1",
            slurmd_started=now,
        )

    def _go(self, instance: Instance, now: float) -> None:
        self.alive.discard(instance.id)
        view = self.agents.table[instance.node]
        self.agents.table[instance.node] = replace(view, connected=False, lost_at=now, lost_why="connection reset")

    def _answer_slurm(self) -> None:
        """A node that was given back is heard of again."""
        for name, node in self.slurm.node_table.items():
            if not node.responding:
                flags = node.flags - {"NOT_RESPONDING"}
                self.slurm.node_table[name] = replace(node, responding=True, flags=flags)

    def _answer_checks(self, now: float) -> bool:
        asked, self.agents.checked[:] = list(self.agents.checked), []
        names = {name for names in asked for name in names if self.agents.table[name].connected}
        for name in names:
            self.agents.table[name] = replace(self.agents.table[name], checked_at=now, reported_at=now)
        return bool(names)

    def _run_setups(self, now: float) -> bool:
        """Lifecycle scripts that take no time."""
        orders = [order for order in self.agents.orders if isinstance(order, SetUpNode)]
        self.agents.orders[:] = [order for order in self.agents.orders if order not in orders]
        for order in orders:
            done = SetupReport(token=order.token, state=SetupState.SUCCEEDED, at=now)
            self.agents.table[order.node] = replace(self.agents.table[order.node], setup=done)
        return bool(orders)
