"""The passive end of pair measurements: a server that each rank runs, for partners that know its token."""

import contextlib
import hmac
import socket
import threading

from steward.adapters.process import Failed
from steward.deep.fabric import Tools, free_port
from steward.deep.lines import Lines, NoPeer
from steward.deep.pace import Pace

HEADER_S = 3.0
MAX_SECONDS = 120.0
MAX_CONNECTIONS = 64


class PairServer:
    """Listens until `close`. A connection says what it wants in its first line; nobody can make it run for longer than
    `MAX_SECONDS`."""

    def __init__(self, token: str, pace: Pace, tools: Tools) -> None:
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
                self._do(Lines(sock))
        except (NoPeer, Failed, OSError, ValueError, TypeError):
            return  # the driver tells how it ended
        finally:
            self._slots.release()

    def _do(self, lines: Lines) -> None:
        asked = lines.receive(HEADER_S)
        if not hmac.compare_digest(str(asked.get("token")).encode(), self._token.encode()):
            return
        seconds = min(float(asked.get("seconds", 10.0)), MAX_SECONDS)
        lines.send({"ready": True})
        match asked.get("do"):
            case "echo":
                _echo(lines.sock)
            case "sink":
                got, took = self._pace.receive(lines.sock, seconds + HEADER_S)
                lines.send({"bytes": got, "seconds": took})
            case "source":
                self._pace.send(lines.sock, seconds, int(asked.get("bytes", 0)))
            case "tool":
                port = free_port()
                lines.send({"port": port})
                self._tools.serve(str(asked.get("tool")), port, seconds)


def _echo(sock: socket.socket) -> None:
    sock.settimeout(HEADER_S)
    while byte := sock.recv(1):
        sock.sendall(byte)


def listen(port: int) -> socket.socket:
    """A listening socket on all addresses, IPv6 too where there is any. Raises OSError when the port is taken."""
    with contextlib.suppress(OSError):
        if socket.has_dualstack_ipv6():
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=256)
    return socket.create_server(("", port), backlog=256)
