"""The coordinator beside rank 0: admits ranks, has pairs of them measured, and sends the results to both ends."""

import asyncio
import contextlib
import math
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from steward.adapters.wire.deep_messages import measure_record
from steward.deep.fabric import START_S
from steward.deep.meeting import MAX_LINE, Meeting, NoPeer, decode, encode, nonce
from steward.deep.tell import MeasureMaker
from steward.deep.workers import Budget
from steward.model.deep import Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName
from steward.model.proof import is_proof, proof
from steward.policy.deep.pairs import Pair, Round, all_rounds, first_rounds, second_rounds

GREET_S = 3.0
ANSWER_SLACK_S = 12.0
SLOW_SHARE = 0.85
"""A pair below this share of the run's median is measured again. The head decides which node is to blame."""
LONGEST_S, SHORTEST_S = 10.0, 0.3
_ROUNDS_AHEAD = 4


@dataclass(slots=True, eq=False)
class Member:
    """A rank that joined. `address` is empty for rank 0: each other rank uses the address at which it found rank 0."""

    node: NodeName
    address: str
    port: int
    token: str
    tools: frozenset[str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    asked: int = 0

    async def ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send the rank an order and return its answer. Raises NoPeer."""
        self.asked += 1
        try:
            async with asyncio.timeout(timeout_s):
                self.writer.write(encode({**message, "n": self.asked}))
                while (said := decode(await self.reader.readuntil(b"\n"))).get("n") != self.asked:
                    pass  # a late answer to an earlier order
                return said
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise NoPeer(f"{self.node} does not answer ({type(error).__name__})") from None

    def say(self, message: dict[str, Any]) -> None:
        if not self.writer.is_closing():
            self.writer.write(encode(message))


@dataclass(slots=True, kw_only=True)
class PairCoordinator:
    """The coordinator of a run's pairs.

    `nodes` are all nodes of the run. `join` is the time for the ranks to join, `budget` the time for everything.
    """

    meeting: Meeting
    nodes: Sequence[NodeName]
    join: Budget
    budget: Budget
    is_tournament: bool = False
    members: dict[NodeName, Member] = field(default_factory=dict)
    _found: dict[Pair, float] = field(default_factory=dict)
    """Mbit/s of each measured pair; 0 for a pair that failed."""
    _all_here: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, listener: socket.socket) -> None:
        """Run until everything is measured and reported, or the budget is spent."""
        server = await asyncio.start_server(self._handle_rank, sock=listener, limit=MAX_LINE)
        try:
            async with asyncio.timeout(self.budget.left_s):
                await self._measure_rounds()
        except TimeoutError:
            self._say_all({"do": "end", "why": "the time budget is spent"})
        else:
            self._say_all({"do": "end", "why": ""})
        finally:
            server.close()
            for member in self.members.values():
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(1.0):
                        await member.writer.drain()
                member.writer.close()

    async def _measure_rounds(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.join.left_s):
                await self._all_here.wait()
        self._report_absent()
        here = sorted(self.members)
        if len(here) < 2:
            self._say_all({"do": "note", "alone": True})
            return
        rounds = all_rounds(here) if self.is_tournament else first_rounds(here, self.meeting.run)
        await self._measure_all(rounds, ahead=0 if self.is_tournament else _ROUNDS_AHEAD)
        if not self.is_tournament:
            bar = SLOW_SHARE * median(self._found.values()) if self._found else 0.0
            good = [pair for pair, value in self._found.items() if value >= bar and value > 0]
            bad = [pair for pair in self._found if pair not in good]
            await self._measure_all(second_rounds(good, bad, self.meeting.run), ahead=0)

    async def _measure_all(self, rounds: Sequence[Round], *, ahead: int) -> None:
        for at, one in enumerate(rounds):
            seconds = self.budget.left_s / (len(rounds) - at + ahead + 1)
            seconds = max(SHORTEST_S, min(LONGEST_S, seconds - 0.5))
            if self.budget.left_s < seconds:
                return
            self._say_all({"do": "progress", "text": f"round {at + 1} of {len(rounds)}: {len(one)} pairs"})
            await asyncio.gather(*(self._measure(pair, seconds) for pair in one))

    async def _measure(self, pair: Pair, seconds: float) -> None:
        driver, server = (self.members[node] for node in pair)
        if not driver.address:  # rank 0's address is not known here, so rank 0 always drives
            driver, server = server, driver
        order = {
            "do": "drive",
            "partner": server.node,
            "address": server.address,
            "port": server.port,
            "token": server.token,
            "seconds": seconds,
            "tools": (tools := self._tools(driver, server, seconds)),
        }
        try:
            said = await driver.ask(order, seconds + ANSWER_SLACK_S + len(tools) * (seconds + START_S))
            measures = measures_of(said, driver.node, server.node)
        except NoPeer as error:
            measures = [MeasureMaker(driver.node, server.node).unknown("tcp.bandwidth", str(error))]
        self._found[pair] = min((_bandwidth_of(one) for one in measures if one.check == "tcp.bandwidth"), default=0.0)
        for end, other in ((driver, server), (server, driver)):
            records = [{**measure_record(one), "node": end.node, "partner": other.node} for one in measures]
            end.say({"do": "note", "measures": records})

    def _tools(self, one: Member, other: Member, seconds: float) -> list[str]:
        """Return the tools that both ranks have; none if the budget is too short for them in three rounds."""
        both = sorted(one.tools & other.tools)
        return both if self.budget.left_s > 3 * len(both) * (seconds + START_S) else []

    def _report_absent(self) -> None:
        """Have one rank report the nodes that did not join, as unknown, because absence proves no fault."""
        absent = [node for node in self.nodes if node not in self.members]
        if not self.members or not absent:
            return
        witness = self.members.get(self.nodes[0]) or next(iter(self.members.values()))
        text = "the node did not join the measurement of pairs"
        for node in absent:
            record = measure_record(MeasureMaker(node).unknown("pair.presence", text))
            witness.say({"do": "note", "measures": [record]})

    async def _handle_rank(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(GREET_S):
                member = await self._admit(reader, writer)
        except (NoPeer, TimeoutError, OSError, ValueError, KeyError, TypeError, asyncio.IncompleteReadError):
            writer.close()
            return
        self.members[member.node] = member
        if set(self.nodes) <= set(self.members):
            self._all_here.set()

    async def _admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Member:
        mine = nonce()
        writer.write(encode({"nonce": mine}))
        hello = decode(await reader.readuntil(b"\n"))
        node = NodeName(str(hello["node"]))
        if not is_proof(hello["proof"], self.meeting.key, self.meeting.run, "join", mine, node):
            raise NoPeer("the rank does not know the run's key")
        if node not in self.nodes or node in self.members:
            raise NoPeer(f"{node} is no node of this run, or has joined before")
        writer.write(encode({"proof": proof(self.meeting.key, self.meeting.run, "host", str(hello["nonce"]))}))
        peer = str(writer.get_extra_info("peername")[0]).removeprefix("::ffff:")
        return Member(
            node=node,
            address="" if node == self.nodes[0] else peer,
            port=int(hello["port"]),
            token=str(hello["token"]),
            tools=frozenset(map(str, hello.get("tools", ()))),
            reader=reader,
            writer=writer,
        )

    def _say_all(self, message: dict[str, Any]) -> None:
        for member in self.members.values():
            member.say(message)


def measures_of(said: dict[str, Any], node: NodeName, partner: NodeName) -> list[Measure]:
    """Return the driver's results as measures of the pair. Raises NoPeer if the message is no answer."""
    here, seconds = MeasureMaker(node, partner), float(said.get("seconds", 0.0))
    if said.get("error"):
        text = f"no measurement between {node} and {partner}: {said['error']}"
        return [here.bad("tcp.bandwidth", text, seconds=seconds)]
    found = said.get("found")
    if not isinstance(found, list):
        raise NoPeer(f"{node} answered without results")
    return [
        here.said(
            str(one["check"]),
            Outcome(one.get("outcome", "passed")),
            str(one.get("text", "")),
            seconds,
            float(one["value"]) if one.get("value") is not None else math.nan,
            str(one.get("unit", "")),
        )
        for one in found
    ]


def _bandwidth_of(measure: Measure) -> float:
    return measure.value if measure.outcome is Outcome.PASSED and not math.isnan(measure.value) else 0.0


def new_token() -> str:
    """Return a new token, which a rank's partners must present to its server."""
    return secrets.token_hex(16)
