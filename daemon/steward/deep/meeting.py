"""How the ranks of one deep check speak with each other (JSON objects, one a line, and the proof that a peer belongs to
it), and where they meet without being told a port: at numbers that follow from the run's id."""

import contextlib
import hashlib
import hmac
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

MAX_LINE = 65536
Message = Mapping[str, Any]


class NoPeer(Exception):
    """The other end is gone, too slow, or none of ours."""


def packed(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"


def unpacked(line: bytes) -> dict[str, Any]:
    """Raises NoPeer."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise NoPeer("it answers in an unknown protocol") from None
    if not isinstance(message, dict):
        raise NoPeer("it answers in an unknown protocol")
    return message


def nonce() -> str:
    return secrets.token_hex(16)


def proof(key: str, *words: str) -> str:
    """Only who knows `key` can make it."""
    return hmac.new(key.encode(), "\0".join(words).encode(), hashlib.sha256).hexdigest()


def is_proof(said: object, key: str, *words: str) -> bool:
    return isinstance(said, str) and hmac.compare_digest(said.encode(), proof(key, *words).encode())


class Lines:
    """Lines over a blocking socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._got = b""

    def send(self, message: Message) -> None:
        """Raises NoPeer."""
        try:
            self.sock.sendall(packed(message))
        except OSError as error:
            raise NoPeer(f"cannot send: {error.strerror or error}") from None

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """Raises NoPeer."""
        self.sock.settimeout(max(timeout_s, 0.01))
        while b"\n" not in self._got:
            try:
                chunk = self.sock.recv(MAX_LINE)
            except OSError as error:
                raise NoPeer(f"no answer: {error.strerror or error}") from None
            if not chunk or len(self._got) > MAX_LINE:
                raise NoPeer("it hung up")
            self._got += chunk
        line, _, self._got = self._got.partition(b"\n")
        return unpacked(line)


def listen(port: int) -> socket.socket:
    """A listening socket on all addresses, IPv6 too where there is any. Raises OSError when the port is taken."""
    with contextlib.suppress(OSError):
        if socket.has_dualstack_ipv6():
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=256)
    return socket.create_server(("", port), backlog=256)


CANDIDATES = 16
LOW, HIGH = 20_000, 30_000
"""Below the ports that systems choose by themselves."""
_TRY_S = 1.0
_PAUSE_S = 0.2


class _Addresses:
    """Names become addresses in a thread: a name service that does not answer must not keep us from the others."""

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
    """A run as its ranks know it. `key` proves that a peer belongs to it."""

    run: str
    key: str

    def ports(self) -> Iterator[int]:
        for at in range(CANDIDATES):
            digest = hashlib.sha256(f"{self.run}/{at}".encode()).digest()
            yield LOW + int.from_bytes(digest[:4], "big") % (HIGH - LOW)

    def host(self) -> socket.socket:
        """Rank 0's listening socket. Raises NoPeer when all candidates are taken."""
        for port in self.ports():
            with contextlib.suppress(OSError):
                return listen(port)
        raise NoPeer(f"none of {CANDIDATES} ports from {LOW} to {HIGH} is free")

    def join(self, addresses: Sequence[str], hello: dict[str, Any], budget: Budget) -> tuple[Lines, str]:
        """A connection to rank 0 that proved to be of this run, and the address at which it was found; tried until the
        budget is over. Raises NoPeer."""
        found = _Addresses(addresses)
        while budget.left_s > 0:
            for address in found.known():
                for port in self.ports():
                    with contextlib.suppress(NoPeer):
                        if budget.left_s > 0:
                            return self._greet(address, port, hello), address
            time.sleep(min(_PAUSE_S, budget.left_s))
        raise NoPeer(f"the first node could not be reached at {', '.join(found.known()) or 'no known address'}")

    def _greet(self, address: str, port: int, hello: dict[str, Any]) -> Lines:
        try:
            sock = socket.create_connection((address, port), timeout=_TRY_S)
        except OSError as error:
            raise NoPeer(error.strerror or str(error)) from None
        lines = Lines(sock)
        try:
            theirs, mine = str(lines.receive(_TRY_S).get("nonce")), nonce()
            lines.send({**hello, "nonce": mine, "proof": proof(self.key, self.run, "join", theirs, hello["node"])})
            if not is_proof(lines.receive(_TRY_S).get("proof"), self.key, self.run, "host", mine):
                raise NoPeer("another program, or another run, answers")
        except NoPeer:
            sock.close()
            raise
        return lines
