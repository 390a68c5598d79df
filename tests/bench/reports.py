"""What reports cost the head: `python -m tests.bench.reports [--agents N] [--seconds S] [--every S] [--json FILE]`.

Simulated agents connect, and each sends a full report (80 checks: most passed or skipped, two findings, nine pieces of
hardware), as after a restart of the head; then they beat, and each sends a changed report every `--every` seconds on
average. Opening seals and reading reports is all the real hub's; MUNGE alone is left out (only handshakes need it).
Goals: <= 5 % of a core once all are there, <= 40 KiB for each agent, nothing but changes rings the cycle.
"""

import argparse
import asyncio
import json
import multiprocessing
import random
import secrets
import sys
import time
from dataclasses import replace
from pathlib import Path

from steward.adapters.clock import SystemClock
from steward.adapters.wire.frames import Channel, Frame
from steward.adapters.wire.handshake import Hello, greet_head, until_beat
from steward.adapters.wire.messages import report_frame
from steward.head.hub import Hub
from steward.model.health import Finding, Incarnation, Outcome, Severity
from steward.model.ids import BootId, InstanceId, NodeName
from steward.ports import PortError
from tests.bench.heartbeats import sealer

GOAL_PERCENT, GOAL_KIB = 5.0, 40.0
_AT_ONCE = 100
_PASSED, _SKIPPED = 55, 23
_ODD = (
    Finding(check="gpu.throttle", outcome=Outcome.FAILED, text="GPU 3 is slowed down by heat (87 C) since 40 s"),
    Finding(check="clock", outcome=Outcome.UNKNOWN, text="no answer of the head yet"),
)


def report(number: int, turn: int) -> Frame:
    """What the agent of node `number` says; every other turn it has a finding more."""
    at = time.time()
    quiet = [Finding(check=f"check.number{n}", outcome=Outcome.PASSED, at=at) for n in range(_PASSED)]
    absent = [Finding(check=f"absent.number{n}", outcome=Outcome.SKIPPED, at=at) for n in range(_SKIPPED)]
    odd = [replace(one, at=at) for one in _ODD]
    if turn % 2:
        odd.append(Finding(check="net.flap", outcome=Outcome.FAILED, severity=Severity.SUSPECT, text="eth0", at=at))
    hardware = (f"board-{number:08}", *(f"GPU-{number:08x}-0000-4000-8000-{gpu:012x}" for gpu in range(8)))
    return report_frame([*quiet, *absent, *odd], None, hardware=hardware, versions={"site.own": "0badcafe" * 4})


async def _agent(number: int, port: int, gate: asyncio.Semaphore, every_s: float) -> None:
    """Connect, report, then beat and report for ever."""
    who = Incarnation(instance=InstanceId(f"i-{number}"), boot=BootId(secrets.token_hex(8)))
    async with gate:
        channel, interval_s = await _connect(port, Hello(node=NodeName(f"n{number}"), incarnation=who, version="bench"))
        await channel.send(report(number, 0))
    await asyncio.gather(_beat(channel, interval_s), _listen(channel), _changes(channel, number, every_s))


async def _connect(port: int, hello: Hello) -> tuple[Channel, float]:
    """Again when the head has no time for us, as a real agent would."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            channel, terms = await greet_head(reader, writer, sealer(), hello)
        except (OSError, PortError):
            await asyncio.sleep(random.uniform(0.5, 2.0))
        else:
            return channel, terms.interval_s


async def _beat(channel: Channel, interval_s: float) -> None:
    await asyncio.sleep(random.uniform(0, interval_s))
    while True:
        await channel.beat(sent=time.time())
        await asyncio.sleep(until_beat(interval_s, time.time()))


async def _listen(channel: Channel) -> None:
    while True:
        await channel.receive()


async def _changes(channel: Channel, number: int, every_s: float) -> None:
    turn = 0
    while True:
        await asyncio.sleep(random.uniform(0, 2 * every_s))
        turn += 1
        await channel.send(report(number, turn))


def _agents(count: int, port: int, every_s: float) -> None:
    async def run() -> None:
        gate = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*(_agent(number, port, gate, every_s) for number in range(count)))

    asyncio.run(run())


def _resident_kib() -> float:
    return float(Path("/proc/self/statm").read_text().split()[1]) * 4


async def _measure(agents: int, seconds: float, every_s: float) -> dict[str, float]:
    rings: list[float] = []
    hub = Hub(sealer=sealer(), clock=SystemClock(), ring=lambda: rings.append(0.0), tell=lambda _event: None)
    hub.expect(agents)
    port = await hub.start("127.0.0.1", 0)
    before_kib, cpu, began = _resident_kib(), time.process_time(), time.monotonic()
    crowd = multiprocessing.get_context("spawn").Process(target=_agents, args=(agents, port, every_s), daemon=True)
    crowd.start()
    try:
        while sum(bool(view.reported_at) for view in hub.views().values()) < agents:
            await asyncio.sleep(0.5)
        joined_s, join_cpu_s = time.monotonic() - began, time.process_time() - cpu
        rings.clear()
        cpu, began, beats = time.process_time(), time.monotonic(), hub.beats
        await asyncio.sleep(seconds)
        took, used = time.monotonic() - began, time.process_time() - cpu
        beats_per_s, rings_per_s = (hub.beats - beats) / took, len(rings) / took
        kib = (_resident_kib() - before_kib) / agents
        sets = len({id(view.passed) for view in hub.views().values()})
    finally:
        crowd.kill()
        await hub.close()
    return {
        "agents": agents,
        "joined_s": round(joined_s, 1),
        "join_cpu_s": round(join_cpu_s, 2),
        "join_cpu_ms_per_agent": round(1e3 * join_cpu_s / agents, 2),
        "beats_per_s": round(beats_per_s, 1),
        "changes_per_s": round(rings_per_s, 1),
        "cpu_percent": round(100 * used / took, 2),
        "kib_per_agent": round(kib, 1),
        "sets_of_passed": sets,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=600.0, help="seconds between changes of one agent, on average")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    found = asyncio.run(_measure(options.agents, options.seconds, options.every))
    for name, value in found.items():
        print(f"{name:24}{value:>12}")
    if options.json:
        options.json.write_text(json.dumps(found))
    return 0 if found["cpu_percent"] <= GOAL_PERCENT and found["kib_per_agent"] <= GOAL_KIB else 1


if __name__ == "__main__":
    sys.exit(main())
