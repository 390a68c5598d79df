"""The meeting of a deep check's ranks: how they find each other, prove that they belong to the run, and talk.

Messages are JSON objects, one a line. All ranks compute the ports to try from the run's id.
"""

import contextlib
import hashlib
import ipaddress
import json
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steward.deep.workers import Budget
from steward.model.proof import is_proof, proof
from steward.model.text import cause

MAX_LINE = 65536
Message = Mapping[str, Any]


class NoPeer(Exception):
    """A peer is gone, too slow, or does not belong to the run."""


def encode(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Return the message in the line. Raises NoPeer."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise NoPeer("the peer answers in an unknown protocol") from None
    if not isinstance(message, dict):
        raise NoPeer("the peer answers in an unknown protocol")
    return message


def nonce() -> str:
    return secrets.token_hex(16)


class LineSocket:
    """A blocking socket that carries messages, one a line."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._got = b""

    def send(self, message: Message) -> None:
        """Send the message. Raises NoPeer."""
        try:
            self.sock.sendall(encode(message))
        except OSError as error:
            raise NoPeer(f"cannot send: {error.strerror or error}") from None

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """Return the next message. Raises NoPeer."""
        self.sock.settimeout(max(timeout_s, 0.01))
        while b"\n" not in self._got:
            try:
                chunk = self.sock.recv(MAX_LINE)
            except OSError as error:
                raise NoPeer(f"no answer: {error.strerror or error}") from None
            if not chunk or len(self._got) > MAX_LINE:
                raise NoPeer("the peer closed the connection")
            self._got += chunk
        line, _, self._got = self._got.partition(b"\n")
        return decode(line)


def listen(port: int) -> socket.socket:
    """Return a listening socket on all addresses, with IPv6 if there is any. Raises OSError if the port is taken."""
    with contextlib.suppress(OSError):
        if socket.has_dualstack_ipv6():
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=256)
    return socket.create_server(("", port), backlog=256)


CANDIDATES = 16
LOW, HIGH = 20_000, 30_000
"""The range of candidate ports, below the kernel's ephemeral ports."""
_TRY_S = 1.0
_PAUSE_S = 0.2


class _Addresses:
    """The addresses of the given names, each name resolved in a separate thread."""

    # A name service that does not answer must not delay the use of known addresses.
    def __init__(self, names: Sequence[str]) -> None:
        self._known: list[str] = []
        for name in names:
            try:
                self._known.append(str(ipaddress.ip_address(name)))
            except ValueError:
                threading.Thread(target=self._resolve, args=(name,), daemon=True).start()

    def known(self) -> list[str]:
        return list(dict.fromkeys(self._known))

    def _resolve(self, name: str) -> None:
        with contextlib.suppress(OSError):
            self._known += [str(info[4][0]) for info in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """A run as its ranks know it. `key` proves that a peer belongs to the run."""

    run: str
    key: str

    def ports(self) -> Iterator[int]:
        for at in range(CANDIDATES):
            digest = hashlib.sha256(f"{self.run}/{at}".encode()).digest()
            yield LOW + int.from_bytes(digest[:4], "big") % (HIGH - LOW)

    def host(self) -> socket.socket:
        """Return rank 0's listening socket. Raises NoPeer if all candidate ports are taken."""
        for port in self.ports():
            with contextlib.suppress(OSError):
                return listen(port)
        raise NoPeer(f"none of {CANDIDATES} ports from {LOW} to {HIGH} is free")

    def join(self, addresses: Sequence[str], hello: dict[str, Any], budget: Budget) -> tuple[LineSocket, str]:
        """Connect to rank 0 of this run, and return the connection and the address at which rank 0 was found.

        Tries until the budget is spent. Raises NoPeer.
        """
        found = _Addresses(addresses)
        while budget.left_s > 0:
            for address in found.known():
                for port in self.ports():
                    with contextlib.suppress(NoPeer):
                        if budget.left_s > 0:
                            return self._shake_hands(address, port, hello), address
            time.sleep(min(_PAUSE_S, budget.left_s))
        raise NoPeer(f"the first node could not be reached at {', '.join(found.known()) or 'no known address'}")

    def _shake_hands(self, address: str, port: int, hello: dict[str, Any]) -> LineSocket:
        try:
            sock = socket.create_connection((address, port), timeout=_TRY_S)
        except OSError as error:
            raise NoPeer(cause(error)) from None
        lines = LineSocket(sock)
        try:
            theirs, mine = str(lines.receive(_TRY_S).get("nonce")), nonce()
            lines.send({**hello, "nonce": mine, "proof": proof(self.key, self.run, "join", theirs, hello["node"])})
            if not is_proof(lines.receive(_TRY_S).get("proof"), self.key, self.run, "host", mine):
                raise NoPeer("another program or another run answers at this port")
        except NoPeer:
            sock.close()
            raise
        return lines
