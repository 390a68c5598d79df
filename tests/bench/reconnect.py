"""How fast all agents are back after a restart of the head: `python -m tests.bench.reconnect [--agents N]`.

The agents are there first, and try again and again while nobody listens, with the waits of a real agent. Then a
head's hub begins to listen. Each agent comes from an address of its own, which Slurm knows as its node's, and the hub
is told of all nodes. The agents run in processes of their own and their credentials prove nothing; the head's side
makes and reads one of MUNGE's for each of theirs, where munged is installed, so that it pays what it pays on a site.
Goal: 10,000 agents within 20 s, and none of them lost or late in the first minute after that (--watch-s).

With --takeover there are two heads: all agents are connected to the first one, a process of its own, which is killed.
The second one follows, and leads once the first one's lease has run out (--lease-s). The time counts from the kill.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import random
import resource
import secrets
import socket
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TypeVar

from steward.adapters.clock import SystemClock
from steward.adapters.munge import Munge
from steward.adapters.offload import Threads
from steward.adapters.wire.handshake import Hello, greet_head, seconds_to_next_beat
from steward.adapters.wire.head_messages import HeadFollows
from steward.adapters.wire.seal import Sealer
from steward.agent.head_order import STEADY_S, HeadOrder
from steward.head.hub import Hub
from steward.head.origin import Origins
from steward.head.serve import suit_many_nodes
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, NodeName
from steward.model.leadership import Leadership
from steward.model.node import Node, NodeBase
from steward.ports import MungePort, PortError
from steward_bed.local_setup import free_ports
from tests.bench.heartbeats import OpenMunge
from tests.contract.munged import a_munged, is_installed

GOAL_S = 20.0
_CROWDS = 2
_LOOK_S = 0.1
_MUNGE_THREADS = 8

T = TypeVar("T")


class AtOnce(Threads):
    """No threads: what makes OpenMunge's credentials never waits, and the agents are not to be what is measured."""

    async def call(self, what: Callable[[], T], *, name: str, timeout_s: float) -> T:
        return what()


class PaidMunge(OpenMunge):
    """Believes what OpenMunge makes, and has a real munged do as much work."""

    def __init__(self, munge: MungePort) -> None:
        self._munge = munge
        self._kept = munge.encode(b"x" * 32)

    def encode(self, payload: bytes, reader: int | None = None) -> str:
        self._munge.encode(payload, reader)
        return super().encode(payload, reader)

    def decode(self, credential: str) -> tuple[int, bytes]:
        with contextlib.suppress(PortError):  # it is one that was read before: munged says so once it has read it
            self._munge.decode(self._kept)
        return super().decode(credential)


def address(number: int) -> str:
    return f"127.{1 + (number >> 16)}.{(number >> 8) & 255}.{number & 255}"


async def _agent(node: NodeName, source: str, ports: Sequence[int], munge: MungePort, rng: random.Random) -> None:
    """As the agent's own link: it tries with growing waits, beats once it is in, and begins again when that ends."""
    who = Incarnation(instance=InstanceId(f"i-{node}"), boot=BootId(secrets.token_hex(8)))
    hello = Hello(node=node, incarnation=who, version="bench")
    sealer = Sealer(munge, frozenset({0}), AtOnce(1))
    order = HeadOrder(map(str, ports), rng.random)
    while True:
        head, wait_s = order.next(time.monotonic())
        await asyncio.sleep(wait_s)
        began = time.monotonic()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(head), local_addr=(source, 0))
            try:
                channel, terms = await greet_head(reader, writer, sealer, hello)
                wait_s = terms.interval_s * rng.random()
                while not reader.at_eof():
                    await channel.beat(sent=time.time())
                    await _read_for(reader, seconds_to_next_beat(wait_s, time.time()))
                    wait_s = terms.interval_s
            finally:
                writer.close()
        except HeadFollows as error:
            order.follows(head, time.monotonic(), error.word)
            continue
        except (OSError, PortError):
            pass
        order.ended(head, time.monotonic(), lasted_s=time.monotonic() - began)


async def _read_for(reader: asyncio.StreamReader, seconds: float) -> None:
    """Throw away what the head says, for so long or until it hangs up."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while await reader.read(65536):
                pass


def _crowd(agents: Sequence[tuple[NodeName, str]], ports: Sequence[int], munged: str) -> None:
    munge = Munge(munged) if munged else OpenMunge()

    async def run() -> None:
        await asyncio.gather(*(_agent(node, source, ports, munge, random.Random(node)) for node, source in agents))

    suit_many_nodes()
    asyncio.run(run())


@contextlib.contextmanager
def crowd(agents: Sequence[tuple[NodeName, str]], *ports: int, munged: str = "") -> Iterator[None]:
    """They, nodes and the addresses they come from, try to connect to the heads while this lasts. `munged` is the
    socket of the munged that makes their credentials; without one they prove nothing."""
    context = multiprocessing.get_context("spawn")
    crowds = [
        context.Process(target=_crowd, args=(agents[part::_CROWDS], ports, munged), daemon=True)
        for part in range(_CROWDS)
    ]
    for one in crowds:
        one.start()
    try:
        yield
    finally:
        for one in crowds:
            one.kill()
            one.join()


async def measure(agents: int, munge: MungePort, *, away_s: float, watch_s: float) -> dict[str, object]:
    """`away_s`: how long nobody listens."""
    origins = Origins()
    hub = Hub(
        sealer=Sealer(munge, frozenset({0}), Threads(_MUNGE_THREADS)),
        clock=SystemClock(),
        ring=lambda: None,
        tell=lambda _event: None,
        origins=origins,
    )
    port = free_ports(1)[0]
    with crowd(_named(agents), port):
        await asyncio.sleep(away_s)
        cpu = time.process_time()
        await hub.start(socket.create_server(("127.0.0.1", port)))
        hub.expect(agents)
        origins.learn(_nodes(agents), {})
        joined = await _joined(hub, agents)
        cpu_s = time.process_time() - cpu
        lost = await _lost(hub, watch_s)
        await hub.close()
    return _figures(agents, joined, cpu_s, lost)


async def measure_takeover(agents: int, munge: MungePort, *, lease_s: float, watch_s: float) -> dict[str, object]:
    """The second of two heads leads `lease_s` after the first one was killed."""
    first, second = free_ports(2)
    origins, lead = Origins(), Leadership(leader=str(first), epoch=1)
    hub = Hub(
        sealer=Sealer(munge, frozenset({0}), Threads(_MUNGE_THREADS)),
        clock=SystemClock(),
        ring=lambda: None,
        tell=lambda _event: None,
        origins=origins,
        leadership=lambda: lead,
    )
    await hub.start(socket.create_server(("127.0.0.1", second)))
    hub.expect(agents)
    origins.learn(_nodes(agents), {})
    context = multiprocessing.get_context("spawn")
    are_there = context.Event()
    leader = context.Process(target=_leader, args=(first, agents, are_there), daemon=True)
    leader.start()
    with crowd(_named(agents), first, second):
        assert await asyncio.to_thread(are_there.wait, 10 * GOAL_S), "the agents never came to the first head"
        await asyncio.sleep(STEADY_S)
        leader.kill()
        began, cpu = time.monotonic(), time.process_time()
        await asyncio.sleep(lease_s)
        followed_s, cpu = time.process_time() - cpu, time.process_time()
        lead = Leadership(leader=str(second), epoch=2, is_mine=True)
        joined = await _joined(hub, agents, began)
        cpu_s = time.process_time() - cpu
        lost = await _lost(hub, watch_s)
        await hub.close()
    leader.join()
    return {**_figures(agents, joined, cpu_s, lost), "lease_s": lease_s, "follower_cpu_s": round(followed_s, 2)}


def _leader(port: int, agents: int, are_there: Event) -> None:
    """A head that says when all agents are connected to it."""

    async def run() -> None:
        origins = Origins()
        hub = Hub(
            sealer=Sealer(OpenMunge(), frozenset({0}), Threads(_MUNGE_THREADS)),
            clock=SystemClock(),
            ring=lambda: None,
            tell=lambda _event: None,
            origins=origins,
            leadership=lambda: Leadership(leader=str(port), epoch=1, is_mine=True),
        )
        await hub.start(socket.create_server(("127.0.0.1", port)))
        hub.expect(agents)
        origins.learn(_nodes(agents), {})
        await _joined(hub, agents)
        are_there.set()
        await asyncio.Event().wait()

    suit_many_nodes()
    asyncio.run(run())


def _named(agents: int) -> list[tuple[NodeName, str]]:
    return [(NodeName(f"n{number}"), address(number)) for number in range(1, agents + 1)]


def _figures(agents: int, joined: Sequence[float], cpu_s: float, lost: Collection[NodeName]) -> dict[str, object]:
    return {
        "agents": agents,
        "joined": len(joined),
        "half_s": round(joined[len(joined) // 2], 2) if joined else None,
        "all_s": round(joined[-1], 2) if len(joined) == agents else None,
        "head_cpu_s": round(cpu_s, 2),
        "cpu_us_per_agent": round(cpu_s / agents * 1e6),
        "lost_or_late": len(lost),
        "rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "goal_s": GOAL_S,
    }


async def _joined(hub: Hub, agents: int, began: float | None = None) -> list[float]:
    """Seconds from `began` (now) after which each was there; fewer than all when it took far too long."""
    began, found = time.monotonic() if began is None else began, list[float]()
    while len(found) < agents and time.monotonic() < began + 10 * GOAL_S:
        await asyncio.sleep(_LOOK_S)
        there = sum(view.connected for view in hub.views().values())
        found += [time.monotonic() - began] * (there - len(found))
    return found


async def _lost(hub: Hub, watch_s: float) -> set[NodeName]:
    """Whose connection ended, or whose beats did not come in time."""
    end, found = time.monotonic() + watch_s, set[NodeName]()
    while time.monotonic() < end:
        await asyncio.sleep(1.0)
        found |= {view.node for view in hub.views().values() if not view.connected or view.late}
    return found


def _nodes(agents: int) -> dict[NodeName, Node]:
    return {name: Node(name=name, base=NodeBase.IDLE, address=where) for name, where in _named(agents)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--away-s", type=float, default=15.0, help="how long no head listens")
    parser.add_argument("--watch-s", type=float, default=60.0, help="how long losses are looked for afterwards")
    parser.add_argument("--takeover", action="store_true", help="the leader of two heads is killed")
    parser.add_argument("--lease-s", type=float, default=4.0, help="how long after the kill the other head leads")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    suit_many_nodes()
    with a_munged() if is_installed() else contextlib.nullcontext() as munged:
        munge = OpenMunge() if munged is None else PaidMunge(Munge(str(munged)))
        if asked.takeover:
            measured = measure_takeover(asked.agents, munge, lease_s=asked.lease_s, watch_s=asked.watch_s)
        else:
            measured = measure(asked.agents, munge, away_s=asked.away_s, watch_s=asked.watch_s)
        found = asyncio.run(measured)
    print(json.dumps(found, indent=2))
    if asked.json:
        asked.json.write_text(json.dumps(found))
    in_time = found["all_s"] is not None and float(str(found["all_s"])) <= GOAL_S
    return 0 if in_time and not found["lost_or_late"] else 1


if __name__ == "__main__":
    sys.exit(main())
