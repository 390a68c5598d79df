"""Ports nobody uses, for daemons that start in a moment."""

import random
import socket

from steward.testbed.bed import BedError

# Below the kernel's range for outgoing connections: none of those can take a port between our look and its use.
_FIRST, _LAST = 10240, 32000


def free_ports(count: int) -> list[int]:
    """Distinct ports free on every address of this machine, in random places: beds side by side rarely meet."""
    found: list[int] = []
    for port in random.sample(range(_FIRST, _LAST), k=min(_LAST - _FIRST, count * 20 + 200)):
        if _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise BedError(f"no {count} free ports between {_FIRST} and {_LAST}; end what uses them (ss -ltn)")


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind(("", port))
        except OSError:
            return False
    return True
