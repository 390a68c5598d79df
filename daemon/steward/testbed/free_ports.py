"""Ports nobody uses, for daemons that start in a moment."""

import fcntl
import os
import random
import socket
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from steward.testbed.bed import BedError

# Below the kernel's range for outgoing connections: none of those can take a port between our look and its use.
_FIRST, _LAST = 10240, 32000
_given: set[int] = set()
_lock = threading.Lock()


def free_ports(count: int, among: Sequence[int] = range(_FIRST, _LAST)) -> list[int]:
    """Distinct ports free on every address of this machine, in random places.

    Each is given once: to nobody else in this process, and to no other process of this user while this one lives.
    """
    found: list[int] = []
    with _lock:
        for port in random.sample(among, k=len(among)):
            if len(found) == count:
                break
            if port not in _given and _is_free(port) and _is_ours(port):
                found.append(port)
        if len(found) < count:
            raise BedError(f"no {count} free ports between {among[0]} and {among[-1]}; end what uses them (ss -ltn)")
        _given.update(found)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind(("", port))
        except OSError:
            return False
    return True


def _is_ours(port: int) -> bool:
    """Its byte of the file is locked by us: between our look and the daemon's start nobody else is given it."""
    try:
        fcntl.lockf(_book(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _book() -> int:
    """Raises BedError for a file that is not ours."""
    path = Path(tempfile.gettempdir()) / f"steward-ports-{os.getuid()}"
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BedError(f"{path} cannot be opened ({error.strerror}): remove it") from None
