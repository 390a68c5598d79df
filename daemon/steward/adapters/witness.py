"""The second witness: is a live slurmd behind a node's port?

A stopped process still has its connections accepted, by its kernel. So the witness says that it has nothing to say
(half-close): a live slurmd then closes too, or complains; a frozen one does neither. Tried on slurmd 22.05.8, 24.11.5
and 26.05.5: alive, stopped and killed.
"""

import socket
import time
from collections.abc import Callable

from steward.model.witness import Witness, WitnessSeen

_REFUSALS = (ConnectionRefusedError, ConnectionResetError, BrokenPipeError)


class PortWitness:
    """WitnessPort by TCP. One look takes at most `connect_s` + `answer_s` seconds (and what the
    resolver takes for a name) and never raises."""

    def __init__(self, *, connect_s: float = 1.0, answer_s: float = 1.0, now: Callable[[], float] = time.time) -> None:
        self._connect_s = connect_s
        self._answer_s = answer_s
        self._now = now

    def look(self, address: str, port: int) -> WitnessSeen:
        """ALIVE: it answered or closed. REFUSED: the host is there and nobody listens. SILENT: anything else."""
        return WitnessSeen(result=self._look(address, port), at=self._now())

    def _look(self, address: str, port: int) -> Witness:
        if not 0 < port < 65536:  # the resolver would take it modulo 65536 and look at somebody else
            return Witness.SILENT
        try:
            with socket.create_connection((address, port), timeout=self._connect_s) as connection:
                connection.settimeout(self._answer_s)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)  # at the end of the stream as good as with an answer: a process acted
                return Witness.ALIVE
        except _REFUSALS:
            return Witness.REFUSED
        except (OSError, OverflowError, UnicodeError):
            return Witness.SILENT
