"""Moving bytes over a socket for a bounded time, as fast as can be or (in tests) no faster than told."""

import contextlib
import socket
import time
from dataclasses import dataclass

CHUNK = 256 << 10
_SLOW_CHUNK = 4 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """`mbps` None: as fast as can be."""

    mbps: float | None = None

    def shared(self, streams: int) -> "Pace":
        """The pace of one of `streams`."""
        return Pace(mbps=None if self.mbps is None else self.mbps / streams)

    def send(self, sock: socket.socket, seconds: float, most_bytes: int) -> int:
        """Bytes given to the kernel. A peer that takes none for a while ends it."""
        data = memoryview(bytes(self._chunk()))
        began, sent = time.monotonic(), 0
        sock.settimeout(seconds + 1.0)
        with contextlib.suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
            while sent < most_bytes and time.monotonic() - began < seconds:
                sent += sock.send(data)
                self._wait(sent, began)
        return sent

    def receive(self, sock: socket.socket, seconds: float) -> tuple[int, float]:
        """(bytes until the peer ended, seconds from the first one on); `seconds` at most."""
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
