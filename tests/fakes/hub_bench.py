"""A hub that listens on a loopback port, and agents that connect to it."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from steward.adapters.wire.frames import Channel
from steward.adapters.wire.handshake import Hello, Terms
from steward.adapters.wire.order_messages import LogChunk
from steward.adapters.wire.seal import Sealer
from steward.head.hub import Hub
from steward.head.origin import Origins
from steward.head.passed import PassedRequests
from steward.head.watch import Examine
from steward.model.events import Event
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, JobId, NodeName
from steward.model.instance import Instance, InstanceState
from steward.model.job_report import ResumeFacts
from steward.model.leadership import ALONE, Leadership
from steward.model.observed import AgentView
from steward.model.resume_mode import SiteDefault
from steward.model.setting_types import AddressRule
from tests.fakes.clock import FakeClock
from tests.fakes.munge import FakeMunged
from tests.fakes.until import FACT_S, comes_true
from tests.fakes.wires import greet_head, sealer


def hello(node: str = "n1", instance: str = "i-1", boot: str = "b-1", version: str = "1.0") -> Hello:
    who = Incarnation(instance=InstanceId(instance), boot=BootId(boot))
    return Hello(node=NodeName(node), incarnation=who, version=version)


def a_machine(id: str, node: str = "n1", launched: float = 0.0, address: str = "") -> Instance:
    """As its provider lists it."""
    state = InstanceState.RUNNING
    return Instance(id=InstanceId(id), node=NodeName(node), state=state, launched=launched, address=address)


@dataclass
class HubBench:
    """A hub that listens, and agents that connect to it."""

    munged: FakeMunged = field(default_factory=FakeMunged)
    clock: FakeClock = field(default_factory=FakeClock)
    rings: int = 0
    events: list[Event] = field(default_factory=list)
    logs: list[tuple[NodeName, LogChunk]] = field(default_factory=list)
    agents: list[asyncio.StreamWriter] = field(default_factory=list)
    facts: Callable[[JobId], ResumeFacts | None] = lambda job: None
    nodes_of: Callable[[JobId], Collection[NodeName]] = lambda job: ()
    defaults: tuple[SiteDefault, ...] = ()
    origins: Origins = field(default_factory=Origins)
    addresses: AddressRule = AddressRule.AUTO
    examine: Examine | None = None
    leadership: Callable[[], Leadership] = lambda: ALONE
    passed: PassedRequests | None = None

    async def listen(self, heartbeat_s: float) -> None:
        self.hub = Hub(
            sealer=sealer(self.munged),
            clock=self.clock,
            ring=self._ring,
            tell=self.events.append,
            heartbeat_s=heartbeat_s,
            keep_log=lambda node, chunk: self.logs.append((node, chunk)),
            facts=self.facts,
            nodes_of=self.nodes_of,
            defaults=self.defaults,
            origins=self.origins,
            addresses=self.addresses,
            examine=self.examine,
            handshake_s=FACT_S,
            leadership=self.leadership,
            passed=self.passed,
        )
        self.port = await self.hub.start(socket.create_server(("127.0.0.1", 0)))

    def _ring(self) -> None:
        self.rings += 1

    async def connect(
        self, who: Hello | None = None, by: Sealer | None = None, at: str = "127.0.0.1"
    ) -> tuple[Channel, Terms]:
        """`at` is the agent's own address: another than 127.0.0.1 is another host to the head."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(at, 0))
        self.agents.append(writer)
        return await greet_head(reader, writer, by or sealer(self.munged), who or hello())

    def view(self, node: str = "n1") -> AgentView:
        return self.hub.views()[NodeName(node)]

    async def until_connected(self, node: str = "n1") -> None:
        await comes_true("it is connected", lambda: NodeName(node) in self.hub.views() and self.view(node).connected)


@contextlib.asynccontextmanager
async def a_hub(heartbeat_s: float = FACT_S, **given: Any) -> AsyncIterator[HubBench]:
    """By itself nobody is late there before any test is over."""
    bench = HubBench(**given)
    await bench.listen(heartbeat_s)
    try:
        yield bench
    finally:
        for writer in bench.agents:
            writer.transport.abort()
        await bench.hub.close()
