"""Whether the slurmctld that is in control runs on this host, asked now and then beside the head's work."""

import logging
import socket
import threading
from collections.abc import Callable

from steward.ports import PortError

log = logging.getLogger(__name__)

ASK_S = 30.0


class Beside:
    """The answer. Calling it never blocks: `run` asks, in a thread of its own."""

    def __init__(self, controller: Callable[[], str], names: frozenset[str] | None = None) -> None:
        """Take the function that asks Slurm, and this host's names."""
        self._controller = controller
        self._names = names or frozenset({socket.gethostname(), socket.getfqdn()})
        self._is_beside = False
        self._stopping = threading.Event()

    def __call__(self) -> bool:
        """Return the last answer; False before the first one."""
        return self._is_beside

    def run(self) -> None:
        """Ask every `ASK_S`, until `stop`."""
        while not self._stopping.is_set():
            self.ask()
            self._stopping.wait(ASK_S)

    def ask(self) -> None:
        """Ask once. Without an answer, the last one stays."""
        try:
            host = self._controller()
        except PortError as error:
            log.info("which slurmctld is in control is not known: %s", error)
            return
        self._is_beside = bool(host) and {host, host.partition(".")[0]} & _both(self._names) != set()

    def stop(self) -> None:
        """End `run`."""
        self._stopping.set()


def _both(names: frozenset[str]) -> set[str]:
    """Return the names, and their first labels."""
    return {*names, *(name.partition(".")[0] for name in names)}
