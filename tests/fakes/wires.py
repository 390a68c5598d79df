"""Both ends of an agent's connection in one process: real streams on a loopback port, a munged in memory."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from steward.adapters.offload import Threads
from steward.adapters.wire import handshake
from steward.adapters.wire.frames import Channel
from steward.adapters.wire.handshake import HandshakeGate, Hello, Terms, accept_agent
from steward.adapters.wire.seal import Sealer
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, NodeName
from tests.fakes.munge import FakeMunge, FakeMunged
from tests.fakes.until import FACT_S

TERMS = Terms(interval_s=0.05, late_after_s=FACT_S, now=1000.0)
WHO = Incarnation(instance=InstanceId("i-1"), boot=BootId("b0000001"))
HELLO = Hello(node=NodeName("n1"), incarnation=WHO, version="1.0")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def sealer(munged: FakeMunged, uid: int = 0, trusted: frozenset[int] = frozenset({0}), behind_s: float = 0.0) -> Sealer:
    return Sealer(FakeMunge(munged, uid, behind_s), trusted, Threads(4))


async def greet_agent(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sealer: Sealer, terms: Terms
) -> tuple[Channel, Hello]:
    """The head's side of the handshake, and its channel. Raises as `accept_agent` does."""
    gate = HandshakeGate(usual_s=FACT_S)
    seals, hello, _ = await accept_agent(reader, writer, sealer, lambda: terms, gate=gate)
    return Channel(reader, writer, seals), hello


async def greet_head(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sealer: Sealer, hello: Hello
) -> tuple[Channel, Terms]:
    """The agent's side, with a limit that no machine needs."""
    return await handshake.greet_head(reader, writer, sealer, hello, usual_s=FACT_S)


@contextlib.asynccontextmanager
async def stream_pair() -> AsyncIterator[tuple[Streams, Streams]]:
    """(head's end, agent's end) of one TCP connection."""
    accepted: asyncio.Queue[Streams] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accepted.put((reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    agent = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    head = await accepted.get()
    try:
        yield head, agent
    finally:
        for _, writer in (head, agent):
            writer.transport.abort()
        server.close()


@dataclass
class Wire:
    """A connection after its handshake, as each side has it."""

    head: Channel
    agent: Channel
    hello: Hello
    terms: Terms
    munged: FakeMunged = field(default_factory=FakeMunged)


@contextlib.asynccontextmanager
async def wire(hello: Hello = HELLO, terms: Terms = TERMS) -> AsyncIterator[Wire]:
    munged = FakeMunged()
    async with stream_pair() as (head, agent):
        ends = await asyncio.gather(
            greet_agent(*head, sealer(munged), terms), greet_head(*agent, sealer(munged), hello)
        )
        (head_channel, said), (agent_channel, told) = ends
        yield Wire(head=head_channel, agent=agent_channel, hello=said, terms=told, munged=munged)
