"""Bandwidth and latency between two nodes over TCP: the server that each rank runs, and the driver's measurement."""

import contextlib
import hmac
import socket
import statistics
import threading
import time
from dataclasses import dataclass, field

from steward.adapters.process import Failed
from steward.deep.fabric import Tools, free_port
from steward.deep.meeting import LineSocket, NoPeer, listen
from steward.model.text import cause

CHUNK = 256 << 10
_SLOW_CHUNK = 4 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferPace:
    """A speed limit for sending and receiving. `mbps` None means no limit."""

    mbps: float | None = None

    def shared(self, streams: int) -> "TransferPace":
        """Return the pace of each of `streams` parallel streams."""
        return TransferPace(mbps=None if self.mbps is None else self.mbps / streams)

    def send(self, sock: socket.socket, seconds: float, most_bytes: int) -> int:
        """Send for `seconds`, less if the peer takes no bytes; return the number of bytes given to the kernel."""
        data = memoryview(bytes(self._chunk()))
        began, sent = time.monotonic(), 0
        sock.settimeout(seconds + 1.0)
        with contextlib.suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
            while sent < most_bytes and time.monotonic() - began < seconds:
                sent += sock.send(data)
                self._wait(sent, began)
        return sent

    def receive(self, sock: socket.socket, seconds: float) -> tuple[int, float]:
        """Receive for at most `seconds`; return the number of bytes and the seconds from the first byte to the last."""
        buffer = bytearray(self._chunk())
        began, got, first = time.monotonic(), 0, 0.0
        last = began
        with contextlib.suppress(TimeoutError):
            while (left := began + seconds - time.monotonic()) > 0:
                sock.settimeout(left)
                size = sock.recv_into(buffer)
                if not size:
                    break
                last = time.monotonic()
                first = first or last
                got += size
                self._wait(got, first)
        return got, max(last - first, 1e-3)

    def _chunk(self) -> int:
        return CHUNK if self.mbps is None else _SLOW_CHUNK

    def _wait(self, moved: int, began: float) -> None:
        if self.mbps is not None:
            ahead = moved * 8e-6 / self.mbps - (time.monotonic() - began)
            if ahead > 0:
                time.sleep(min(ahead, 1.0))


HEADER_S = 3.0
MAX_SECONDS = 120.0
MAX_CONNECTIONS = 64


class PairServer:
    """The server of one rank for its partners; listens until `close`.

    The first line of a connection is the request, which is served for at most `MAX_SECONDS`.
    """

    def __init__(self, token: str, pace: TransferPace, tools: Tools) -> None:
        self._token = token
        self._tools = tools
        self._pace = pace
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._socket = listen(0)
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._accept, name="pair-server", daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._socket.accept()
            except OSError:
                return
            if not self._slots.acquire(blocking=False):
                sock.close()
                continue
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            with sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._answer(LineSocket(sock))
        except (NoPeer, Failed, OSError, ValueError, TypeError):
            return  # the driver reports how the measurement ended
        finally:
            self._slots.release()

    def _answer(self, lines: LineSocket) -> None:
        request = lines.receive(HEADER_S)
        if not hmac.compare_digest(str(request.get("token")).encode(), self._token.encode()):
            return
        seconds = min(float(request.get("seconds", 10.0)), MAX_SECONDS)
        lines.send({"ready": True})
        match request.get("do"):
            case "echo":
                _echo(lines.sock)
            case "sink":
                got, took = self._pace.receive(lines.sock, seconds + HEADER_S)
                lines.send({"bytes": got, "seconds": took})
            case "source":
                self._pace.send(lines.sock, seconds, int(request.get("bytes", 0)))
            case "tool":
                port = free_port()
                lines.send({"port": port})
                self._tools.serve(str(request.get("tool")), port, seconds)


def _echo(sock: socket.socket) -> None:
    sock.settimeout(HEADER_S)
    while byte := sock.recv(1):
        sock.sendall(byte)


PINGS = 200
CONNECT_S = 3.0
_SLACK_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Partner:
    """The address of a partner's server, and the token that it demands."""

    address: str
    port: int
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The results of one pair: Mbit/s there and back, and the median round trip in microseconds."""

    there: float
    back: float
    latency_us: float


def measure_pair(peer: Partner, *, seconds: float, most_bytes: int, streams: int, pace: TransferPace) -> Numbers:
    """Measure a pair in about `seconds`. Raises NoPeer if the partner cannot be reached or does not keep up."""
    latency = _latency_us(peer, seconds * 0.1)
    there = _flow(peer, "sink", seconds * 0.45, most_bytes // 2, streams, pace)
    back = _flow(peer, "source", seconds * 0.45, most_bytes // 2, streams, pace)
    return Numbers(there=there, back=back, latency_us=latency)


def connect(peer: Partner, what: str, **more: object) -> LineSocket:
    """Return a connection on which the partner does `what`. Raises NoPeer."""
    try:
        sock = socket.create_connection((peer.address, peer.port), timeout=CONNECT_S)
    except OSError as error:
        raise NoPeer(f"cannot connect: {error.strerror or error}") from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    lines = LineSocket(sock)
    lines.send({"token": peer.token, "do": what, **more})
    lines.receive(CONNECT_S)  # ready: the partner does not take bytes from here on for a part of the request
    return lines


def _latency_us(peer: Partner, seconds: float) -> float:
    lines = connect(peer, "echo")
    until = time.monotonic() + max(seconds, 0.02)
    took: list[float] = []
    with lines.sock as sock:
        sock.settimeout(_SLACK_S)
        try:
            while len(took) < PINGS and (time.monotonic() < until or not took):
                began = time.perf_counter()
                sock.sendall(b"p")
                if not sock.recv(1):
                    raise NoPeer("the peer closed the connection")
                took.append(time.perf_counter() - began)
        except OSError as error:
            raise NoPeer(f"no answer: {error.strerror or error}") from None
    return statistics.median(took) * 1e6


@dataclass(slots=True)
class _Stream:
    """The bytes that one of several parallel connections moved."""

    moved: int = 0
    seconds: float = 0.0
    lost: str = ""


@dataclass(frozen=True, slots=True)
class _Flow:
    """A transfer in one direction over parallel connections."""

    peer: Partner
    what: str
    seconds: float
    most_bytes: int
    pace: TransferPace
    streams: list[_Stream] = field(default_factory=list)

    def run(self, mine: _Stream) -> None:
        try:
            lines = connect(self.peer, self.what, seconds=self.seconds, bytes=self.most_bytes)
            with lines.sock:
                mine.moved, mine.seconds = self._send(lines) if self.what == "sink" else self._receive(lines)
        except (NoPeer, OSError) as error:
            mine.lost = cause(error)

    def _send(self, lines: LineSocket) -> tuple[int, float]:
        """Send, and return the bytes and seconds that the partner reports: bytes in buffers do not count."""
        self.pace.send(lines.sock, self.seconds, self.most_bytes)
        lines.sock.shutdown(socket.SHUT_WR)
        answer = lines.receive(self.seconds + _SLACK_S)
        return int(answer.get("bytes", 0)), float(answer.get("seconds", 0.0))

    def _receive(self, lines: LineSocket) -> tuple[int, float]:
        return self.pace.receive(lines.sock, self.seconds + _SLACK_S)


def _flow(peer: Partner, what: str, seconds: float, most_bytes: int, streams: int, pace: TransferPace) -> float:
    """Return the Mbit/s over `streams` parallel connections. Raises NoPeer."""
    share = max(CHUNK, most_bytes // streams)
    flow = _Flow(peer, what, seconds, share, pace.shared(streams), [_Stream() for _ in range(streams)])
    threads = [threading.Thread(target=flow.run, args=(mine,), daemon=True) for mine in flow.streams]
    for thread in threads:
        thread.start()
    until = time.monotonic() + seconds + 2 * _SLACK_S + CONNECT_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        raise NoPeer("data stopped flowing")
    lost = [one.lost for one in flow.streams if one.lost]
    if lost:
        raise NoPeer(lost[0])
    return sum(one.moved for one in flow.streams) * 8e-6 / max(one.seconds for one in flow.streams)
