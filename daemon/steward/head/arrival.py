"""What is told of an agent that has just connected."""

import asyncio

from steward.adapters.handshake import Hello
from steward.model.events import Event, Level
from steward.model.observed import AgentView


def host_of(writer: asyncio.StreamWriter) -> str:
    """Where the peer is, as an IP address; empty when it is gone already."""
    peer = writer.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) and peer else ""


def conflict(other: AgentView, hello: Hello, now: float) -> Event:
    old = other.incarnation.instance if other.incarnation else "?"
    return Event(
        at=now,
        kind="agent.conflict",
        level=Level.WARNING,
        node=hello.node,
        text=f"two machines speak as {hello.node}: {old} and {hello.incarnation.instance}; the later one is believed",
    )
