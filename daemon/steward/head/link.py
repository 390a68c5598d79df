"""One agent's connection at the head.

After the handshake an agent needs no task and no timer of its own: heartbeats are taken as their bytes arrive, and a
task runs only while a sealed frame is opened or sent. Any error ends the connection; the agent connects again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from steward.adapters.codec import number_field
from steward.adapters.wire.frames import (
    ALONE,
    BEAT,
    MAX_FRAME,
    REFUSES,
    WITH_HOST,
    Frame,
    Malformed,
    pack,
    unpack,
    why_unsendable,
)
from steward.adapters.wire.handshake import MAX_HELLO
from steward.adapters.wire.seal import Seals, times
from steward.model.health import Incarnation
from steward.model.ids import NodeName
from steward.model.observed import REFUSED_BY_AGENT
from steward.model.text import printable
from steward.ports import Permanent, PortError

log = logging.getLogger(__name__)

_LENGTH = 4
_MAX_WAITING = 256
_MAX_UNSENT = 1 << 20
_MAX_BUFFER = 1 << 20
_ASKS = b'{"t":"' + BEAT.encode() + b'","sent":'
_LIVES = b'{"t":"' + BEAT.encode() + b'","lives":'
"""Heartbeats are read and written as bytes, without JSON: 250 of them come in each second on a big cluster."""
_ECHO = b'{"t":"' + BEAT.encode() + b'","echo":'
_PING = b'{"t":"' + BEAT.encode() + b'","now":'
_SEAL = b',"seal":"'
_MOST = 1e15
_MAX_WHY = 250


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat as it came: the agent's time, its sealed text, its seal, and whether an answer is wanted."""

    at: float
    written: bytes
    seal: object
    asks: bool


def parse_beat(data: bytes) -> Beat | None:
    """Return the heartbeat in `data`; None if `data` is not exactly one framed heartbeat as `pack` writes it."""
    kind = next((kind for kind in (_LIVES, _ASKS) if data.startswith(kind, _LENGTH)), None)
    if kind is None or int.from_bytes(data[:_LENGTH], "big") != len(data) - _LENGTH or data[-2:] != b'"}':
        return None
    time, _, seal = data[_LENGTH + len(kind) : -2].partition(_SEAL)
    try:
        at = float(time)
    except ValueError:
        return None
    return Beat(at, time, seal.decode("ascii", "replace"), kind is _ASKS) if -_MOST < at < _MOST else None


def ping(now: bytes, seal: str) -> bytes:
    """Return the frame that asks an agent for a heartbeat at once."""
    return _framed(b'%s%s,"seal":"%s"}' % (_PING, now, seal.encode()))


def reply(echo: bytes, now: bytes, seal: str) -> bytes:
    """Return the frame that answers a heartbeat; both times are as JSON writes them."""
    body = b'%s%s,"now":%s,"seal":"%s"}' % (_ECHO, echo, now, seal.encode())
    return _framed(body)


def _framed(body: bytes) -> bytes:
    """Return the body with its length."""
    return len(body).to_bytes(4, "big") + body


class Owner(Protocol):
    """The receiver of a link's events."""

    def beat(self, link: "Link", sent: float) -> float:
        """Take a heartbeat, sent at `sent` by the agent's clock; return our time for an answer."""

    def frame(self, link: "Link", frame: Frame) -> None:
        """Take a frame whose seal was good."""

    def ended(self, link: "Link", why: str) -> None:
        """Note that the connection is over. Called once, and only for an adopted link."""


class _FrameQueue:
    """A queue of frames that are worked on one by one, with a task only while frames wait."""

    def __init__(self) -> None:
        self._waiting: deque[Frame] = deque()
        self._task: asyncio.Task[None] | None = None

    def put(self, frame: Frame, work: Callable[[Frame], Awaitable[None]], failed: Callable[[str], None]) -> None:
        """Queue a frame for `work` (the same at each call); call `failed` if `work` raises or too many frames wait."""
        if len(self._waiting) >= _MAX_WAITING:
            failed(f"more than {_MAX_WAITING} frames are waiting")
            return
        self._waiting.append(frame)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(work, failed))

    def drop(self) -> None:
        """Forget the waiting frames."""
        self._waiting.clear()

    async def _run(self, work: Callable[[Frame], Awaitable[None]], failed: Callable[[str], None]) -> None:
        try:
            while self._waiting:
                await work(self._waiting.popleft())
        except PortError as error:
            failed(str(error))
        except Exception:
            log.exception("a frame could not be processed")
            failed("internal error")
        finally:
            self._task = None


Greet = Callable[["Link", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _greeted(greet: Greet, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Do the handshake of a new connection. asyncio calls this without the link."""
    link = writer.transport.get_protocol()
    if isinstance(link, Link):
        await link.greeted(greet(link, reader, writer), writer)


class Link(asyncio.StreamReaderProtocol):
    """One agent's connection.

    `greet` gets a stream reader and writer for the handshake; the reader is given only the bytes of the first frame. No
    reference cycle is left once the connection is over: Python collects cyclic garbage rarely in the head
    (`suit_many_nodes`), and users may open thousands of connections.
    """

    def __init__(self, greet: Greet) -> None:
        stream = asyncio.StreamReader(limit=MAX_FRAME + _LENGTH)
        self._stream: asyncio.StreamReader | None = stream
        super().__init__(stream, partial(_greeted, greet))
        self._buffer = bytearray()
        self.has_spoken = False
        """Whether the peer's whole first frame came."""
        self._peer: asyncio.Transport | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._owner: Owner | None = None
        self._seals: Seals | None = None
        self._is_stream = False
        self._incoming, self._outgoing = _FrameQueue(), _FrameQueue()
        self.node = NodeName("")
        self.incarnation: Incarnation | None = None
        self.heard = 0.0
        """When the last sign of life came, by the watch's clock (`Awake`)."""
        self.skew_s: float | None = None
        """The agent's clock minus ours at its last heartbeat."""
        self.is_open = True
        self.leaves = self.host_ends = False
        """As in `AgentView`."""
        self.fell_silent = False
        """Whether the connection was given up because the agent was silent."""
        self.is_sent_away = False
        """Whether the connection was closed for what the agent sent: the agent is alive, and will connect again."""
        # Kept by `Watch`
        self.interval_s = self.late_after_s = self.gone_after_s = self.told = 0.0
        self.is_late = self.is_watched = False
        self.pinged: float | None = None
        self.pong_s: float | None = None
        self.silent_since: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        if isinstance(transport, asyncio.Transport):
            self._peer = transport
        super().connection_made(transport)

    async def greeted(self, greeting: Awaitable[None], writer: asyncio.StreamWriter) -> None:
        """Keep the writer, do the handshake, and drop the objects that only the handshake needs."""
        self._writer = writer  # Python 3.13 and newer close a connection whose writer has no reference
        try:
            await greeting
        finally:
            if self._stream is not None and (broken := self._stream.exception()) is not None:
                broken.__traceback__ = None  # the traceback's frames hold the stream, which holds the exception
            self._stream = None
            if not self.is_open:
                self._writer = None

    def set_owner(self, owner: Owner, seals: Seals) -> None:
        """Pass frames to `owner` from now on, because the handshake is done."""
        self._owner, self._seals = owner, seals
        if not self.is_open:
            owner.ended(self, "its connection ended in the handshake")
        self._split()

    def to_stream(self) -> None:
        """Give all further bytes to the handshake's reader: the peer is another head, which no `Owner` serves."""
        self._is_stream = True
        rest, self._buffer = bytes(self._buffer), bytearray()
        if rest:
            super().data_received(rest)

    def data_received(self, data: bytes) -> None:
        """Take bytes; a heartbeat that comes in one piece, as nearly all do, is taken without JSON."""
        if not self.is_open:
            return
        if self._is_stream:
            super().data_received(data)
            return
        if self._owner is not None and not self._buffer and (beat := parse_beat(data)) is not None:
            self._take_beat(beat)
            return
        self._buffer += data
        if len(self._buffer) > (_MAX_BUFFER if self._owner is not None else MAX_HELLO):
            self.send_away("it sends faster than any agent does")
            return
        if self._owner is not None:
            self._split()
        elif not self.has_spoken:
            self._show_first()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end of the connection."""
        super().connection_lost(exc)
        # The kernel gives up a host that acknowledges nothing: TimeoutError.
        self.fell_silent = isinstance(exc, TimeoutError) or self.fell_silent
        self.close("its connection ended" if exc is None else f"its connection broke ({type(exc).__name__})")
        self._peer = self._writer = None

    def eof_received(self) -> bool:
        """Close at the end of the peer's data."""
        super().eof_received()
        return False

    def send(self, frame: Frame) -> None:
        """Seal and send a frame; frames go out in the order of the calls. In the loop's thread only."""
        if why := why_unsendable(frame):
            log.error("a frame for an agent is not sent: %s: %s", frame["t"], why, extra={"node": self.node})
        elif self.is_open:
            self._outgoing.put(frame, self._send, self.send_away)

    def ping(self, now: float) -> None:
        """Ask the agent for a heartbeat at once."""
        if self._seals is not None:
            self._write(ping(times(now), self._seals.beats.seal(times(now))))

    def send_away(self, why: str) -> None:
        """Close the connection of a peer that is alive, because of what it sent or how much."""
        self.is_sent_away = True
        self.close(why)

    def give_up(self, why: str) -> None:
        """Close a silent peer."""
        self.fell_silent = True
        self.close(why)

    def close(self, why: str) -> None:
        """End the connection at once, without a flush: a frozen peer would never take the rest."""
        if not self.is_open:
            return
        self.is_open = False
        self._incoming.drop()
        self._outgoing.drop()
        if self._peer is not None:
            self._peer.abort()
        if self._owner is not None:
            self._owner.ended(self, why)

    def _show_first(self) -> None:
        """Pass the first frame to the handshake; keep the bytes behind it until the handshake is done."""
        size = self._size()
        if size is None:
            return
        if size > MAX_FRAME:
            self.send_away("a frame that is too long")
        elif len(self._buffer) >= _LENGTH + size:
            first, self._buffer = self._buffer[: _LENGTH + size], self._buffer[_LENGTH + size :]
            self.has_spoken = True
            super().data_received(bytes(first))

    def _split(self) -> None:
        """Take every whole frame of the buffer."""
        while self.is_open and (size := self._size()) is not None:
            if size > MAX_FRAME:
                self.send_away(f"a frame of {size} bytes")
            if len(self._buffer) < _LENGTH + size:
                return
            body = bytes(self._buffer[_LENGTH : _LENGTH + size])
            del self._buffer[: _LENGTH + size]
            self._take(body)

    def _size(self) -> int | None:
        """Return the length of the next frame; None if it has not come yet."""
        return int.from_bytes(self._buffer[:_LENGTH], "big") if len(self._buffer) >= _LENGTH else None

    def _take(self, body: bytes) -> None:
        """Take one frame."""
        try:
            frame = unpack(body)
            if frame["t"] == BEAT:
                asks = "lives" not in frame
                at, seal = number_field(frame, "sent" if asks else "lives"), frame.get("seal")
                if "leaves" in frame:
                    word = number_field(frame, "leaves")
                    self._take_leave(times(at, word), seal, word)
                else:
                    self._take_beat(Beat(at, times(at), seal, asks))
            elif frame["t"] == REFUSES:
                self.send_away(f"{REFUSED_BY_AGENT}: {printable(str(frame.get('why', '')), _MAX_WHY)}")
            else:
                self._incoming.put(frame, self._open, self.send_away)
        except Malformed as error:
            self.send_away(str(error))

    def _take_beat(self, beat: Beat) -> None:
        """Note a heartbeat with a good seal, and answer it if it asks for an answer."""
        if self._owner is None or self._seals is None or not self._is_sealed(self._seals, beat.seal, beat.written):
            return
        now = times(self._owner.beat(self, beat.at))
        if beat.asks:
            self._write(reply(beat.written, now, self._seals.beats.seal(b"%s,%s" % (beat.written, now))))

    def _take_leave(self, written: bytes, seal: object, word: float) -> None:
        """Close the connection of an agent that was told to end."""
        # The message is sealed like a heartbeat, because other seals take too long to open.
        if self._seals is not None and self._is_sealed(self._seals, seal, written):
            self.leaves, self.host_ends = word != WITH_HOST, word != ALONE
            self.close("its host is being shut down" if word == WITH_HOST else "it was told to end")

    def _is_sealed(self, seals: Seals, seal: object, written: bytes) -> bool:
        """Return whether a heartbeat's seal is good; close the connection if it is not."""
        try:
            seals.beats.check(seal, written)
        except Permanent as error:
            self.send_away(str(error))
            return False
        return True

    def _write(self, data: bytes) -> None:
        """Write bytes; give up a peer that does not read."""
        peer = self._peer
        if peer is None or not self.is_open:
            return
        if peer.get_write_buffer_size() > _MAX_UNSENT:
            self.give_up("it does not read what we send")
            return
        peer.write(data)

    async def _open(self, frame: Frame) -> None:
        """Open a sealed frame and pass it to the owner."""
        if self._seals is None or self._owner is None:
            return
        opened = await self._seals.open(frame)
        if self.is_open:
            self._owner.frame(self, opened)

    async def _send(self, frame: Frame) -> None:
        """Seal and write a frame."""
        if self._seals is not None:
            self._write(pack(await self._seals.seal(frame)))
