"""Frames between agent and head: a length of four bytes (big endian), then one JSON object with its type under "t".

Every frame after the handshake is sealed (see `seal`), the heartbeat in a cheaper way.
"""

import asyncio
import json
import socket
from typing import Any, NoReturn

from steward.adapters.codec import Frame as Frame
from steward.adapters.codec import Malformed as Malformed
from steward.adapters.offload import Threads
from steward.adapters.wire.seal import Seals, times
from steward.model.text import cause
from steward.ports import Retryable

MAX_FRAME = 65536
MAX_WORD = MAX_FRAME - 2048
"""The most bytes of a frame without its seal."""
BEAT = "beat"
REFUSES = "refuses"
"""The type of an agent's last, unsealed frame to a head whose proof is wrong; it tells people why."""
DIAL_TIMEOUT_S = 5.0
ALONE, WITH_HOST, WITH_ALL = 1.0, 2.0, 3.0
"""What ends with an agent that is told to end: the agent alone; its host, which is being shut down; all of Slurm on the
host, for an unknown reason."""
_LENGTH = 4


class Gone(Retryable):
    """The end of a connection: the peer closed it, was cut off, or has been silent for too long."""


def pack(frame: Frame) -> bytes:
    """Return the frame as bytes. Raises Malformed if it is longer than `MAX_FRAME`: split it before."""
    body = json.dumps(frame, separators=(",", ":"), allow_nan=False).encode()
    if len(body) > MAX_FRAME:
        raise Malformed(f"a frame of {len(body)} bytes is over the limit of {MAX_FRAME}")
    return len(body).to_bytes(_LENGTH, "big") + body


def why_unsendable(frame: Frame) -> str:
    """Return why this frame cannot be sent once it has its seal; empty if it can."""
    # One message that is too long, or is not JSON, must not end the connection that carries all others.
    try:
        sendable_size(frame)
    except Malformed as error:
        return str(error)
    return ""


def sendable_size(frame: Frame) -> int:
    """Return how many bytes the frame has without its seal. Raises Malformed if it cannot be sent once it has that."""
    try:
        size = len(json.dumps(frame, separators=(",", ":"), allow_nan=False))
    except (ValueError, TypeError, RecursionError) as error:
        raise Malformed(f"the message is not JSON ({error})") from error
    if size > MAX_WORD:
        raise Malformed(f"the message has {size} bytes, over the limit of {MAX_WORD}")
    return size


def unpack(body: bytes) -> Frame:
    """Return the frame in `body` (without its length). Raises Malformed if it is not an object with a type."""
    try:
        frame = strict_json(body)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"a frame is not JSON: {type(error).__name__}") from None
    if not isinstance(frame, dict) or not isinstance(frame.get("t"), str):
        raise Malformed("a frame is not an object with a type")
    return frame


def strict_json(text: str | bytes) -> Any:
    """Return the JSON value of hostile text. Raises ValueError, RecursionError."""
    # Python's reader would accept NaN and infinity, which are no JSON.
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


async def dial(
    host: str, port: int, threads: Threads, *, within_s: float = DIAL_TIMEOUT_S
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address of `host` that answers. Raises Gone, with the last reason.

    The look-up of the name and the connecting have time limits, and never hold up an exit.
    """
    try:
        found = await threads.call(
            lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), name="resolve", timeout_s=within_s
        )
    except OSError as error:
        raise Gone(f"the head's name {host!r} cannot be resolved: {cause(error)}") from None
    why = "it has no address"
    for *_, address in found:
        try:
            async with asyncio.timeout(within_s):
                return await asyncio.open_connection(str(address[0]), port, limit=MAX_FRAME + 4)
        except (OSError, TimeoutError) as error:
            why = cause(error)
    raise Gone(f"no head at {host}:{port}: {why}")


async def read_frame(reader: asyncio.StreamReader) -> Frame:
    """Return the next frame. Raises Gone if the connection ended, Malformed for bytes that cannot be a frame."""
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH), "big")
        if not 0 < length <= MAX_FRAME:
            raise Malformed(f"a frame says that it has {length} bytes; the limit is {MAX_FRAME}")
        return unpack(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, OSError) as error:
        raise Gone(f"the connection ended ({type(error).__name__})") from None


class Channel:
    """A connection after the handshake. After any error it must be closed; an agent then connects again."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seals: Seals) -> None:
        self._reader = reader
        self._writer = writer
        self._seals = seals
        self._sending = asyncio.Lock()

    async def beat(self, **fields: float) -> None:
        """Send a heartbeat: {"sent"} or {"lives"} from the agent, {"echo", "now"} from the head, which answers "sent".

        The last heartbeat of an agent that is told to end is {"sent", "leaves"} (`ALONE`, `WITH_HOST`, `WITH_ALL`).
        """
        await self._write({"t": BEAT, **fields, "seal": self._seals.beats.seal(times(*fields.values()))})

    async def send(self, frame: Frame) -> None:
        """Send the frame sealed, in the order of the calls. Raises Gone, or Retryable without munged (nothing sent)."""
        async with self._sending:
            await self._write(await self._seals.seal(frame))

    async def receive(self) -> Frame:
        """Return the next frame after its seal was checked.

        Raises Gone if the connection ended, Permanent if the seal is missing or wrong.
        """
        frame = await read_frame(self._reader)
        return self._beat_of(frame) if frame["t"] == BEAT else await self._seals.open(frame)

    def _beat_of(self, frame: Frame) -> Frame:
        """Return the heartbeat without its seal. Raises Permanent if the seal is wrong."""
        fields = {name: value for name, value in frame.items() if name not in ("t", "seal")}
        if not all(isinstance(value, int | float) for value in fields.values()):
            raise Malformed("a heartbeat without numbers as its times")
        self._seals.beats.check(frame.get("seal"), times(*fields.values()))
        return {"t": BEAT, **fields}

    def close(self) -> None:
        """Close at once, without a flush: a frozen peer would never take the rest."""
        self._writer.transport.abort()

    async def _write(self, frame: Frame) -> None:
        if self._writer.is_closing():
            raise Gone("the connection was closed")
        self._writer.write(pack(frame))
        try:
            await self._writer.drain()
        except OSError as error:
            raise Gone(f"the connection ended ({type(error).__name__})") from None


def tune_socket(writer: asyncio.StreamWriter) -> None:
    """Send small frames without delay, and let the kernel, too, notice a dead host (within about 5 s)."""
    sock = writer.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 5000)
