"""The handshake of agent and head: each proves itself over the other's nonce (docs/architecture.md)."""

import asyncio
import contextlib
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from steward.adapters.codec import int_field, number_field, text_field
from steward.adapters.wire.frames import (
    MAX_FRAME,
    REFUSES,
    Channel,
    Frame,
    Gone,
    Malformed,
    pack,
    read_frame,
    tune_socket,
)
from steward.adapters.wire.head_messages import FOLLOWING, HeadFollows, follower_greeting_of
from steward.adapters.wire.job_messages import defaults_of, defaults_records
from steward.adapters.wire.messages import opted_frame, opted_list, opted_record
from steward.adapters.wire.seal import PeerRole, Sealer, Seals, digest
from steward.model.ask import OptedIn
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, NodeName
from steward.model.resume_mode import SiteDefault
from steward.model.text import printable
from steward.ports import Permanent, PortError, WrongClock

PROTOCOL = 1
HANDSHAKE_TIMEOUT_S = 5.0
WAIT_S = 20.0
"""How long an agent waits for its welcome if the head asks it to: a new connection would cost more."""
MAX_HELLO = 4096
"""The most bytes that an agent sends before its welcome."""
_QUARTER_S = 0.25
_REFUSED = "refused"
_KEY_BYTES = 32
"""The length of the key for the seals of heartbeats."""
_WELCOME_S = 2.0
"""The most time from an agent's turn to its welcome, which must come before the agent gives up."""
_MAX_WARNING = 250
_OPTED_BYTES = MAX_FRAME - 8192
"""The most bytes of a frame for jobs; the rest is for the agent's identity and the seal."""
_OPTED_BYTES_OF_HELLO = MAX_HELLO - 2048
"""The same for the hello."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The introduction of an agent, with the opted-in jobs that it knows; or of a head that passes a request on."""

    node: NodeName
    incarnation: Incarnation
    version: str
    opted: tuple[OptedIn, ...] = ()
    is_head: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The head's terms for the agent: a heartbeat every `interval_s`; a side silent for `late_after_s` is gone.

    The head's silence counts only while an answer is due. `now` is its clock (Unix s). `defaults` are the site's modes
    for jobs without the option; the first that fits a job counts. `warning` is a sentence for every job that asks to be
    resumed: what this site's settings keep Steward from doing for it. `epoch` counts up with each head that takes the
    lead; 0 for a head that is alone.
    """

    interval_s: float
    late_after_s: float
    now: float
    defaults: tuple[SiteDefault, ...] = ()
    warning: str = ""
    epoch: int = 0


def seconds_to_next_beat(wait_s: float, head_now: float) -> float:
    """Return the time until the next heartbeat: about `wait_s`, so that all agents send at the same quarter seconds."""
    # A heartbeat that comes alone wakes the head's process; those that come together share that cost (measured: a bare
    # server needs 167 us for each one by one, 46 us in tenths of a second).
    return wait_s - head_now % _QUARTER_S if wait_s > _QUARTER_S else wait_s


class HandshakeGate:
    """The limit on handshakes in their costly part: `at_once` agents are let in, the others wait.

    Addresses take turns, so that one with many connections does not keep the others waiting. An agent whose turn comes
    too late is sent away: it would give up before its welcome. Agents that have proved themselves have as many places
    of their own. While that many of them wait, no new agent is let in: when thousands connect at once, all work for
    them would be wasted otherwise.
    """

    def __init__(self, at_once: int = 16, usual_s: float = HANDSHAKE_TIMEOUT_S) -> None:
        """Take the time limit `usual_s` of a handshake whose agent was not asked to wait."""
        self._at_once = self._free = at_once
        self.usual_s = usual_s
        self._proved = asyncio.Semaphore(at_once)
        self._due = 0
        """How many agents have proved themselves and wait for a place."""
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @contextlib.asynccontextmanager
    async def turn(self, since: float | None = None, *, address: str = "", waits_s: float = 0.0) -> AsyncIterator[None]:
        """Wait for a place and hold it. Raises Gone if the turn comes too late.

        `since` is when the agent connected (monotonic), None if it has proved itself; `waits_s` is how long it waits
        for its welcome.
        """
        if since is None:
            await self._take_proved()
            try:
                yield
            finally:
                self._proved.release()
            return
        await self._take_place(address)
        try:
            waited = time.monotonic() - since
            if waited > max(self.usual_s, waits_s) - _WELCOME_S:
                raise Gone(f"too many agents connect at once: the turn came after {waited:.1f} s; the agent will retry")
            yield
        finally:
            self._give_place()

    async def _take_proved(self) -> None:
        self._due += 1
        try:
            await self._proved.acquire()
        finally:
            self._due -= 1
            self._let_in()

    async def _take_place(self, address: str) -> None:
        if self._has_place():
            self._free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        self._lines.setdefault(address, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._give_place()
            else:
                self._leave_line(address, place)
            raise

    def _leave_line(self, address: str, place: "asyncio.Future[None]") -> None:
        line = self._lines.get(address, deque())
        with contextlib.suppress(ValueError):  # its turn has come meanwhile
            line.remove(place)
        if not line:
            self._lines.pop(address, None)

    def _give_place(self) -> None:
        self._free += 1
        self._let_in()

    def _let_in(self) -> None:
        """Let in the first waiting agent of the address whose last turn is longest ago, while there are places."""
        while self._lines and self._has_place():
            address, line = self._lines.popitem(last=False)
            place = line.popleft()
            if line:
                self._lines[address] = line
            if not place.done():
                self._free -= 1
                place.set_result(None)

    def _has_place(self) -> bool:
        return self._free > 0 and self._due < self._at_once


async def _nothing(hello: Hello) -> None:
    pass


async def accept_agent(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    sealer: Sealer,
    terms_now: Callable[[], Terms],
    *,
    first: Callable[[Hello], Awaitable[None]] = _nothing,
    misread: Callable[[NodeName], None] = lambda node: None,
    apart: Callable[[NodeName, float], None] = lambda node, behind_s: None,
    gate: HandshakeGate,
    address: str = "",
    wait_s: float = 0.0,
) -> tuple[Seals, Hello, Terms]:
    """Carry out the head's side of the handshake.

    `first` is called with the hello of an agent that proved itself, before its welcome. Only a peer that sent a hello
    takes a place at the `gate`. `misread` gets the node of a proved hello that is malformed, `apart` the node whose
    clock is wrong, and by how many seconds it is behind. With `wait_s`, the agent at `address` is asked to wait so long
    for its welcome, if that is longer than usual. Raises Permanent for a peer that is no agent of ours, else Gone or
    Retryable; the caller closes the writer then.
    """
    tune_socket(writer)
    nonce, since = secrets.token_hex(16), time.monotonic()
    async with _TimeLimit(gate.usual_s) as limit:
        await _send(writer, {"t": "challenge", "nonce": nonce, **({"wait": wait_s} if wait_s else {})})
        frame = await _expect(reader, "hello")
        agent_nonce, waits_s = _nonce(frame), max(wait_s, gate.usual_s)
        limit.last(waits_s)
        async with gate.turn(since, address=address, waits_s=waits_s):
            if reader.at_eof():
                raise Gone("the agent closed the connection before its turn came")
            try:
                reader_uid = await _verified_or_refused(writer, sealer, frame, nonce, agent_nonce)
            except WrongClock as error:
                apart(NodeName(str(frame.get("node"))), error.behind_s)
                raise
        try:
            hello = _hello_of(frame)
        except Malformed:
            misread(NodeName(str(frame.get("node"))))
            raise
        await first(hello)
        async with gate.turn():
            key, terms = secrets.token_bytes(_KEY_BYTES), terms_now()
            await _send(writer, await _welcome(sealer, terms, agent_nonce, key, reader_uid))
    return Seals(sealer, PeerRole.HEAD, head_nonce=nonce, agent_nonce=agent_nonce, key=key), hello, terms


async def _welcome(sealer: Sealer, terms: Terms, nonce: str, key: bytes, reader: int) -> Frame:
    """Return the welcome frame, with the key for `reader` alone."""
    # The key is in the frame's own credential, behind the digest: one more credential would cost both sides a call of
    # munged.
    frame = _terms_frame(terms)
    return {**frame, "cred": await sealer.credential(digest(frame, PeerRole.HEAD, nonce) + key, reader)}


async def greet_head(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    sealer: Sealer,
    hello: Hello,
    *,
    usual_s: float = HANDSHAKE_TIMEOUT_S,
) -> tuple[Channel, Terms]:
    """Carry out the agent's side of the handshake, within `usual_s` unless the head asks the agent to wait longer.

    Jobs for which the hello has no room follow after the welcome. Raises as `accept_agent` does, and HeadFollows.
    """
    tune_socket(writer)
    nonce = secrets.token_hex(16)
    async with _TimeLimit(usual_s) as limit:
        challenge = await read_frame(reader)
        if challenge["t"] == FOLLOWING:
            raise HeadFollows(follower_greeting_of(challenge))
        if challenge["t"] != "challenge":
            raise _out_of_turn(challenge, "challenge")
        head_nonce = _nonce(challenge)
        limit.last(_time_to_wait(challenge, usual_s))
        newest, *older = _portions(hello.opted, _OPTED_BYTES_OF_HELLO)
        frame = _hello_frame(replace(hello, opted=newest), nonce)
        await _send(writer, await _proved(sealer, frame, PeerRole.AGENT, head_nonce))
        frame = await read_frame(reader)
        if frame["t"] not in ("welcome", _REFUSED):
            raise _out_of_turn(frame, "welcome")
        try:
            key = await sealer.verify_more(frame.get("cred"), digest(frame, PeerRole.HEAD, nonce))
        except Permanent as error:
            with contextlib.suppress(PortError):  # so that the head's log tells it, too
                await _send(writer, {"t": REFUSES, "why": printable(str(error), _MAX_WARNING)})
            raise
        if frame["t"] == _REFUSED:
            raise Permanent("the head refused this agent's hello: `journalctl -u stewardd` on the controller says why")
        terms = _terms_of(frame)
        if len(key) != _KEY_BYTES:
            raise Malformed(f"a key of {len(key)} bytes")
        seals = Seals(sealer, PeerRole.AGENT, head_nonce=head_nonce, agent_nonce=nonce, key=key)
        channel = Channel(reader, writer, seals)
        for opted in older:
            await channel.send(opted_frame(opted))
    return channel, terms


def _portions(jobs: Iterable[OptedIn], room: int) -> list[tuple[OptedIn, ...]]:
    """Return the jobs in portions of a frame each, the newest first; the first one, of `room` bytes, may be empty."""
    portions: list[tuple[OptedIn, ...]] = [()]
    for one in sorted(jobs, key=lambda one: one.at, reverse=True):
        size = len(pack(opted_record(one)))
        if size > room:
            portions.append(())
            room = _OPTED_BYTES
        portions[-1] += (one,)
        room -= size
    return portions


class _TimeLimit:
    """The handshake's time limit, which raises Gone."""

    def __init__(self, limit_s: float) -> None:
        self._began = asyncio.get_running_loop().time()
        self._limit_s = limit_s
        self._limit = asyncio.timeout_at(self._began + self._limit_s)

    def last(self, seconds: float) -> None:
        """Set the limit of the whole handshake."""
        if seconds != self._limit_s:
            self._limit_s = seconds
            self._limit.reschedule(self._began + seconds)

    async def __aenter__(self) -> "_TimeLimit":
        await self._limit.__aenter__()
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError:
            raise Gone(f"no handshake within {self._limit_s:g} s") from None


async def _send(writer: asyncio.StreamWriter, frame: Frame) -> None:
    writer.write(pack(frame))
    try:
        await writer.drain()
    except OSError as error:
        raise Gone(f"the connection ended in the handshake ({type(error).__name__})") from None


async def _expect(reader: asyncio.StreamReader, kind: str) -> Frame:
    frame = await read_frame(reader)
    if frame["t"] != kind:
        raise _out_of_turn(frame, kind)
    return frame


def _out_of_turn(frame: Frame, kind: str) -> Malformed:
    return Malformed(f"the handshake got {frame['t'][:20]!r} where {kind!r} was due")


async def _verified_or_refused(
    writer: asyncio.StreamWriter, sealer: Sealer, hello: Frame, nonce: str, agent_nonce: str
) -> int:
    """Return the user who proved `hello`. Raises Permanent, after a refusal was sent, if the proof is wrong."""
    # The refusal carries the head's own proof: a peer with another MUNGE key cannot read it, and its log names the key.
    try:
        return await sealer.verify(hello.get("cred"), digest(hello, PeerRole.AGENT, nonce))
    except Permanent:
        with contextlib.suppress(PortError):
            await _send(writer, await _proved(sealer, {"t": _REFUSED}, PeerRole.HEAD, agent_nonce))
        raise


async def _proved(sealer: Sealer, frame: Frame, role: PeerRole, peer_nonce: str) -> Frame:
    return {**frame, "cred": await sealer.credential(digest(frame, role, peer_nonce))}


def _nonce(frame: Frame) -> str:
    nonce = text_field(frame, "nonce", 32)
    if len(nonce) != 32:
        raise Malformed("a nonce has 32 characters")
    return nonce


def _time_to_wait(challenge: Frame, usual_s: float) -> float:
    """Return how long the agent waits for its welcome in all: as long as the head asks, within bounds."""
    return max(min(number_field(challenge, "wait"), WAIT_S), usual_s) if "wait" in challenge else usual_s


def _hello_frame(hello: Hello, nonce: str) -> Frame:
    return {
        "t": "hello",
        "v": PROTOCOL,
        "node": hello.node,
        "instance": hello.incarnation.instance,
        "boot": hello.incarnation.boot,
        "version": hello.version,
        "nonce": nonce,
        "opted": [opted_record(one) for one in hello.opted],
        **({"head": True} if hello.is_head else {}),
    }


def _hello_of(frame: Frame) -> Hello:
    version = int_field(frame, "v")
    if version != PROTOCOL:
        raise Malformed(f"an agent speaks protocol {version}, this head speaks {PROTOCOL}: install the same release")
    incarnation = Incarnation(
        instance=InstanceId(text_field(frame, "instance")), boot=BootId(text_field(frame, "boot"))
    )
    return Hello(
        node=NodeName(text_field(frame, "node", 64)),
        incarnation=incarnation,
        version=text_field(frame, "version", 32),
        opted=opted_list(frame),
        is_head=frame.get("head") is True,
    )


def _terms_frame(terms: Terms) -> Frame:
    return {
        "t": "welcome",
        "interval": terms.interval_s,
        "late_after": terms.late_after_s,
        "now": terms.now,
        "defaults": defaults_records(terms.defaults),
        "warning": terms.warning,
        **({"epoch": terms.epoch} if terms.epoch else {}),
    }


def _terms_of(frame: Frame) -> Terms:
    terms = Terms(
        interval_s=number_field(frame, "interval"),
        late_after_s=number_field(frame, "late_after"),
        now=number_field(frame, "now"),
        defaults=defaults_of(frame),
        warning=printable(str(frame.get("warning", "")), _MAX_WARNING),
        epoch=int_field(frame, "epoch") if "epoch" in frame else 0,
    )
    if not 0 < terms.interval_s < terms.late_after_s:
        raise Malformed(f"interval {terms.interval_s:g} s and late_after {terms.late_after_s:g} s do not fit")
    return terms
