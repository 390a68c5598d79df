"""One rank's part in measuring pairs: join rank 0, carry out its orders, and report the results to the agent."""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from steward.adapters.wire.deep_messages import measure_of
from steward.adapters.wire.frames import Malformed
from steward.deep.coordinator import PairCoordinator, new_token
from steward.deep.fabric import Tools
from steward.deep.meeting import LineSocket, Meeting, NoPeer
from steward.deep.pair import CONNECT_S, Numbers, PairServer, Partner, TransferPace, connect, measure_pair
from steward.deep.tell import MeasureMaker, Teller
from steward.deep.workers import Budget
from steward.model.ids import NodeName

MAX_JOIN_S = 60.0
_JOIN_SHARE = 0.3
_MARGIN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The place of this rank in the run: `nodes` are all nodes by rank, `addresses` those to try for rank 0."""

    rank: int
    nodes: tuple[NodeName, ...]
    addresses: tuple[str, ...]
    meeting: Meeting

    @property
    def node(self) -> NodeName:
        return self.nodes[self.rank]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLimits:
    """The limits of measuring pairs. `pace` makes a slow node in tests."""

    most_bytes: int = 64 << 30
    streams: int = 4
    pace: TransferPace = field(default_factory=TransferPace)
    is_tournament: bool = False
    tools: Tools = field(default_factory=Tools)


def check_pairs(seat: Seat, teller: Teller, budget: Budget, limits: PairLimits) -> None:
    """Take part in the measurement of pairs; end within the budget even if other ranks are missing or leave."""
    here = MeasureMaker(seat.node)
    if len(seat.nodes) < 2:
        teller.tell([here.skipped("tcp.bandwidth", "the run has one node: there is no partner")])
        return
    join = budget.part(_JOIN_SHARE, most_s=MAX_JOIN_S)
    server = PairServer(token := new_token(), limits.pace.shared(limits.streams), limits.tools)
    try:
        with _coordinating(seat, join, budget, limits.is_tournament):
            hello = {"node": seat.node, "port": server.port, "token": token, "tools": sorted(limits.tools.here())}
            lines, address = seat.meeting.join(_addresses(seat), hello, join)
            with lines.sock:
                _Participant(here, teller, lines, address, limits).play(budget)
    except NoPeer as error:
        teller.tell([here.unknown("tcp.bandwidth", str(error))])
    finally:
        server.close()


@dataclass(frozen=True, slots=True)
class _Participant:
    """One rank in the run, which carries out the orders of rank 0's coordinator."""

    here: MeasureMaker
    teller: Teller
    lines: LineSocket
    address: str
    limits: PairLimits

    def play(self, budget: Budget) -> None:
        """Carry out rank 0's orders until it ends the run. Raises NoPeer if rank 0 falls silent."""
        while True:
            order = self.lines.receive(budget.left_s + _MARGIN_S)
            match order.get("do"):
                case "drive":
                    self.lines.send({**self._drive(order), "n": order.get("n")})
                case "note":
                    self._report(order)
                case "progress":
                    self.teller.progress(str(order.get("text", "")))
                case "end":
                    return
                case _:
                    raise NoPeer("the first node answers in an unknown protocol")

    def _drive(self, order: dict[str, Any]) -> dict[str, Any]:
        began = time.monotonic()
        try:
            peer = Partner(
                address=str(order["address"]) or self.address, port=int(order["port"]), token=str(order["token"])
            )
            found = measure_pair(
                peer,
                seconds=float(order["seconds"]),
                most_bytes=self.limits.most_bytes,
                streams=self.limits.streams,
                pace=self.limits.pace,
            )
        except NoPeer as error:
            return {"error": str(error), "seconds": time.monotonic() - began}
        return {"seconds": time.monotonic() - began, "found": [*_results_of(found), *self._by_tools(peer, order)]}

    def _by_tools(self, peer: Partner, order: dict[str, Any]) -> Iterator[dict[str, object]]:
        for tool in map(str, order.get("tools", ())):
            seconds = float(order["seconds"])
            try:
                lines = connect(peer, "tool", tool=tool, seconds=seconds)
                with lines.sock:
                    port = int(lines.receive(CONNECT_S)["port"])
                    yield self.limits.tools.drive(tool, peer.address, port, seconds)
            except (NoPeer, KeyError) as error:
                yield {"check": tool, "outcome": "unknown", "text": str(error)}

    def _report(self, order: dict[str, Any]) -> None:
        if order.get("alone"):
            self.teller.tell([self.here.unknown("tcp.bandwidth", "no other node joined the measurement of pairs")])
            return
        try:
            self.teller.tell([measure_of(one, self.here.node) for one in order.get("measures", ())])
        except Malformed as error:
            raise NoPeer(f"the first node sent a malformed measure: {error}") from None


def _results_of(numbers: Numbers) -> list[dict[str, object]]:
    text = f"{numbers.there:.0f} there, {numbers.back:.0f} back"
    return [
        {"check": "tcp.bandwidth", "value": min(numbers.there, numbers.back), "unit": "Mbit/s", "text": text},
        {"check": "tcp.latency", "value": numbers.latency_us, "unit": "us"},
    ]


def _addresses(seat: Seat) -> Sequence[str]:
    return ("127.0.0.1",) if seat.rank == 0 else seat.addresses


@contextlib.contextmanager
def _coordinating(seat: Seat, join: Budget, budget: Budget, is_tournament: bool) -> Iterator[None]:
    """Run the coordinator in a thread for the duration of the context, on rank 0. Raises NoPeer if it cannot listen."""
    if seat.rank != 0:
        yield
        return
    listener = seat.meeting.host()
    coordinator = PairCoordinator(
        meeting=seat.meeting,
        nodes=seat.nodes,
        join=join,
        budget=Budget(budget.until - 2 * _MARGIN_S),
        is_tournament=is_tournament,
    )
    thread = threading.Thread(target=lambda: asyncio.run(coordinator.run(listener)), name="coordinator", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(min(budget.left_s + _MARGIN_S, 3.0))


def usual_streams() -> int:
    """Return the number of parallel connections: a single core rarely fills a fast link."""
    return max(1, min(4, len(os.sched_getaffinity(0)) // 2))
