"""Bandwidth and latency between two nodes over TCP: what the driver does. Its partner runs `pair_server.py`."""

import socket
import statistics
import threading
import time
from dataclasses import dataclass, field

from steward.deep.lines import Lines, NoPeer
from steward.deep.pace import CHUNK, Pace

PINGS = 200
CONNECT_S = 3.0
_SLACK_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Where a partner's server listens, and the word that it wants to hear."""

    address: str
    port: int
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of one pair: Mbit/s there and back, and the median round trip in microseconds."""

    there: float
    back: float
    latency_us: float


def measure_pair(peer: Peer, *, seconds: float, most_bytes: int, streams: int, pace: Pace) -> Numbers:
    """Takes `seconds` in all, about. Raises NoPeer when the partner cannot be reached or does not keep up."""
    latency = _latency_us(peer, seconds * 0.1)
    there = _flow(peer, "sink", seconds * 0.45, most_bytes // 2, streams, pace)
    back = _flow(peer, "source", seconds * 0.45, most_bytes // 2, streams, pace)
    return Numbers(there=there, back=back, latency_us=latency)


def connect(peer: Peer, what: str, **more: object) -> Lines:
    """A connection on which the partner does `what`. Raises NoPeer."""
    try:
        sock = socket.create_connection((peer.address, peer.port), timeout=CONNECT_S)
    except OSError as error:
        raise NoPeer(f"cannot connect: {error.strerror or error}") from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    lines = Lines(sock)
    lines.send({"token": peer.token, "do": what, **more})
    lines.receive(CONNECT_S)  # it is ready: what follows is not taken for the request's rest
    return lines


def _latency_us(peer: Peer, seconds: float) -> float:
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
                    raise NoPeer("it hung up")
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
    peer: Peer
    what: str
    seconds: float
    most_bytes: int
    pace: Pace
    streams: list[_Stream] = field(default_factory=list)

    def run(self, mine: _Stream) -> None:
        try:
            lines = connect(self.peer, self.what, seconds=self.seconds, bytes=self.most_bytes)
            with lines.sock:
                mine.moved, mine.seconds = self._send(lines) if self.what == "sink" else self._receive(lines)
        except (NoPeer, OSError) as error:
            mine.lost = str(error)

    def _send(self, lines: Lines) -> tuple[int, float]:
        """Send, and return the bytes that the partner says it got: bytes in buffers do not count."""
        self.pace.send(lines.sock, self.seconds, self.most_bytes)
        lines.sock.shutdown(socket.SHUT_WR)
        answer = lines.receive(self.seconds + _SLACK_S)
        return int(answer.get("bytes", 0)), float(answer.get("seconds", 0.0))

    def _receive(self, lines: Lines) -> tuple[int, float]:
        return self.pace.receive(lines.sock, self.seconds + _SLACK_S)


def _flow(peer: Peer, what: str, seconds: float, most_bytes: int, streams: int, pace: Pace) -> float:
    """Mbit/s over `streams` connections at once."""
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
