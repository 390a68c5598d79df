"""What heartbeats cost the head: `python -m tests.bench.heartbeats [--agents N] [--seconds S] [--json FILE]`.

The interval grows with the cluster so that 250 beats a second come in, whatever its size: 250 simulated agents that
beat each second cost what 10,000 cost that beat every 40 s, but for memory and their connections' bookkeeping. The
agents run in a process of their own; the credentials are not MUNGE's, because only the handshake needs them.
Goal: <= 2 % of a core. (A bare asyncio server that echoes as many bytes needs most of it.)
"""

import argparse
import asyncio
import base64
import json
import multiprocessing
import random
import resource
import secrets
import socket
import sys
import time
from pathlib import Path

from steward.adapters.clock import SystemClock
from steward.adapters.offload import Threads
from steward.adapters.wire.handshake import Hello, greet_head, seconds_to_next_beat
from steward.adapters.wire.seal import Sealer
from steward.head.hub import Hub
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, NodeName

GOAL_PERCENT = 2.0
_AT_ONCE = 100


class OpenMunge:
    """Credentials that prove nothing: the payload itself, from uid 0."""

    def encode(self, payload: bytes, reader: int | None = None) -> str:
        return base64.b64encode(payload).decode()

    def decode(self, credential: str) -> tuple[int, bytes]:
        return 0, base64.b64decode(credential)


def sealer() -> Sealer:
    return Sealer(OpenMunge(), frozenset({0}), Threads(8))


async def _agent(number: int, port: int, gate: asyncio.Semaphore) -> None:
    """Connect, then beat for ever; what the head answers is read and thrown away."""
    who = Incarnation(instance=InstanceId(f"i-{number}"), boot=BootId(secrets.token_hex(8)))
    async with gate:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        hello = Hello(node=NodeName(f"n{number}"), incarnation=who, version="bench")
        channel, terms = await greet_head(reader, writer, sealer(), hello)
    await asyncio.sleep(random.uniform(0, terms.interval_s))
    while True:
        await channel.beat(sent=time.time())
        await reader.read(65536)
        await asyncio.sleep(seconds_to_next_beat(terms.interval_s, time.time()))


def _agents(count: int, port: int) -> None:
    async def run() -> None:
        gate = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*(_agent(number, port, gate) for number in range(count)))

    asyncio.run(run())


async def _measure(agents: int, seconds: float) -> dict[str, float]:
    rings: list[float] = []
    hub = Hub(sealer=sealer(), clock=SystemClock(), ring=lambda: rings.append(0.0), tell=lambda _event: None)
    hub.expect(agents)
    port = await hub.start(socket.create_server(("127.0.0.1", 0)))
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    crowd = multiprocessing.get_context("spawn").Process(target=_agents, args=(agents, port), daemon=True)
    crowd.start()
    try:
        began = time.monotonic()
        while sum(view.connected for view in hub.views().values()) < agents:
            await asyncio.sleep(0.1)
        joined_s = time.monotonic() - began
        await asyncio.sleep(max(2.0, agents / 250))
        rings.clear()
        cpu, start, beats = time.process_time(), time.monotonic(), hub.beats
        await asyncio.sleep(seconds)
        took = time.monotonic() - start
        percent = (time.process_time() - cpu) / took * 100
        per_s, rung = (hub.beats - beats) / took, len(rings)
    finally:
        crowd.kill()
        await hub.close()
    began = time.monotonic()
    for _ in range(20):
        hub.views()
    return {
        "agents": agents,
        "joined_s": round(joined_s, 2),
        "beats_per_s": round(per_s, 1),
        "cpu_percent": round(percent, 2),
        "cpu_us_per_beat": round(percent / 100 / per_s * 1e6, 1),
        "rings": rung,
        "views_ms": round((time.monotonic() - began) / 20 * 1e3, 2),
        "kib_per_agent": round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) / agents, 1),
        "goal_percent": GOAL_PERCENT,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=250)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    found = asyncio.run(_measure(options.agents, options.seconds))
    print(json.dumps(found, indent=2))
    if options.json:
        options.json.write_text(json.dumps(found))
    return 0 if found["cpu_percent"] <= GOAL_PERCENT and not found["rings"] else 1


if __name__ == "__main__":
    sys.exit(main())
