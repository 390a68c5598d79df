"""Where the ranks of a deep check find each other without being told a port: numbers that follow from the run's id."""

import contextlib
import hashlib
import ipaddress
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from steward.deep.lines import Lines, NoPeer, is_proof, nonce, proof
from steward.deep.pair import listen
from steward.deep.workers import Budget

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
