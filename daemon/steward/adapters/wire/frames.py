"""Frames between agent and head: a length of four bytes (big endian), then one JSON object with its type under "t".

Every frame after the handshake is sealed (see `seal`), the heartbeat in a cheaper way.
"""

import asyncio
import json
import socket
from typing import Any, NoReturn

from steward.adapters.offload import Threads
from steward.adapters.wire.seal import Seals, times
from steward.ports import Permanent, Retryable

Frame = dict[str, Any]

MAX_FRAME = 65536
MAX_WORD = MAX_FRAME - 2048
"""Bytes of a frame without its seal."""
BEAT = "beat"
DIAL_TIMEOUT_S = 5.0
ALONE, WITH_HOST, WITH_ALL = 1.0, 2.0, 3.0
"""The last word of an agent that is told to end: it ends alone; its host is being shut down; everything that Slurm runs
here was told to end, too, and nothing else is known of the host."""
_LENGTH = 4


class Gone(Retryable):
    """The peer hung up, was cut off, or has been silent for too long."""


class Malformed(Permanent):
    """The peer sent what no Steward sends: hang up."""


def pack(frame: Frame) -> bytes:
    """The frame as bytes. Raises Malformed when it is longer than `MAX_FRAME`: split it before."""
    body = json.dumps(frame, separators=(",", ":"), allow_nan=False).encode()
    if len(body) > MAX_FRAME:
        raise Malformed(f"a frame of {len(body)} bytes is over the limit of {MAX_FRAME}")
    return len(body).to_bytes(_LENGTH, "big") + body


def why_unsendable(frame: Frame) -> str:
    """Why this frame cannot be sent once it has its seal; empty: it can. One word that is too long, or no JSON, must
    not cost a connection that carries everybody's words."""
    try:
        size = len(json.dumps(frame, separators=(",", ":"), allow_nan=False))
    except (ValueError, TypeError, RecursionError) as error:
        return f"it is no JSON ({error})"
    return f"it has {size} bytes, over the limit of {MAX_WORD}" if size > MAX_WORD else ""


def unpack(body: bytes) -> Frame:
    """The frame in `body` (without its length). Raises Malformed for anything that is not an object with a type."""
    try:
        frame = strict_json(body)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"a frame is not JSON: {type(error).__name__}") from None
    if not isinstance(frame, dict) or not isinstance(frame.get("t"), str):
        raise Malformed("a frame is not an object with a type")
    return frame


def strict_json(text: str | bytes) -> Any:
    """The value of `text`, whose author is hostile: NaN and infinity, which Python's reader takes for numbers, are no
    JSON. Raises ValueError, RecursionError."""
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


async def dial(host: str, port: int, threads: Threads) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address of `host` that answers. The look-up of its name and the connecting are bounded and
    never hold up an exit. Raises Gone, with the last reason."""
    try:
        found = await threads.call(
            lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), name="resolve", timeout_s=DIAL_TIMEOUT_S
        )
    except OSError as error:
        raise Gone(f"the head's name {host!r} cannot be resolved: {error}") from None
    why = "it has no address"
    for *_, address in found:
        try:
            async with asyncio.timeout(DIAL_TIMEOUT_S):
                return await asyncio.open_connection(str(address[0]), port, limit=MAX_FRAME + 4)
        except (OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
    raise Gone(f"no head at {host}:{port}: {why}")


async def read_frame(reader: asyncio.StreamReader) -> Frame:
    """The next frame. Raises Gone when the connection ended, Malformed for what cannot be a frame."""
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH), "big")
        if not 0 < length <= MAX_FRAME:
            raise Malformed(f"a frame says that it has {length} bytes; the limit is {MAX_FRAME}")
        return unpack(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, OSError) as error:
        raise Gone(f"the connection ended ({type(error).__name__})") from None


class Channel:
    """A connection after the handshake. Any error ends the connection: close it and, as an agent, connect again."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seals: Seals, *, late_after_s: float
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._seals = seals
        self._late_after_s = late_after_s
        self._sending = asyncio.Lock()

    async def beat(self, **fields: float) -> None:
        """A heartbeat: {"sent"} from the agent, {"sent", "leaves"} as its last word when it is told to end (`ALONE`,
        `WITH_HOST`, `WITH_ALL`), {"echo", "now"} from the head."""
        await self._write({"t": BEAT, **fields, "seal": self._seals.beats.seal(times(*fields.values()))})

    async def send(self, frame: Frame) -> None:
        """Seal and send, in the order of the calls. Raises Gone, or Retryable without munged (nothing was sent)."""
        async with self._sending:
            await self._write(await self._seals.seal(frame))

    async def receive(self) -> Frame:
        """The next frame, its seal checked. Raises Gone when the peer has been silent for `late_after_s` seconds,
        Permanent when a seal is missing or wrong."""
        try:
            async with asyncio.timeout(self._late_after_s):
                frame = await read_frame(self._reader)
        except TimeoutError:
            raise Gone(f"silent for {self._late_after_s:g} s") from None
        return self._beat_of(frame) if frame["t"] == BEAT else await self._seals.open(frame)

    def _beat_of(self, frame: Frame) -> Frame:
        """Without its seal."""
        fields = {name: value for name, value in frame.items() if name not in ("t", "seal")}
        if not all(isinstance(value, int | float) for value in fields.values()):
            raise Malformed("a beat that does not carry times")
        self._seals.beats.check(frame.get("seal"), times(*fields.values()))
        return {"t": BEAT, **fields}

    def close(self) -> None:
        """At once, without a flush: a frozen peer would never take what is left."""
        self._writer.transport.abort()

    async def _write(self, frame: Frame) -> None:
        if self._writer.is_closing():
            raise Gone("the connection was closed")
        self._writer.write(pack(frame))
        try:
            await self._writer.drain()
        except OSError as error:
            raise Gone(f"the connection ended ({type(error).__name__})") from None


def tune(writer: asyncio.StreamWriter) -> None:
    """No delay for small frames; let the kernel notice a dead host as well (within about 5 s)."""
    sock = writer.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 5000)
