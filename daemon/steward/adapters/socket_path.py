"""The path of a unix socket: freed of one left by a dead process, and served."""

import os
import socket
import stat
from asyncio.trsock import TransportSocket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_ANSWER_S = 0.5


def make_free(path: Path, *, rival: str) -> None:
    """Remove a dead process's socket at `path`.

    Raises FileExistsError if a process answers (`rival` names the likely program and the remedy), or if `path` is not a
    socket.
    """
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise FileExistsError(f"{path} exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_ANSWER_S)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
    raise FileExistsError(f"another {rival}")


@contextmanager
def served_first(path: Path) -> Iterator[Path]:
    """Yield a name beside `path` to listen at, and move the socket to `path` afterwards.

    A client that waits for `path` to appear is therefore never refused.
    """
    hidden = path.with_name(f"{path.name}.{os.getpid()}")
    hidden.unlink(missing_ok=True)
    try:
        yield hidden
        hidden.rename(path)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise


AT_ONCE = 32
"""The number of connections accepted before the loop's other work has its turn.

Given to asyncio as `backlog`: it accepts up to so many in a row, and thousands of one user's may wait. `lengthen` then
lets more connections wait.
"""


def lengthen(sockets: Iterable[socket.socket | TransportSocket], queue: int) -> None:
    """Let `queue` connections wait at each listening socket, where asyncio lets `backlog` wait."""
    for each in sockets:
        with socket.socket(fileno=os.dup(each.fileno())) as same:
            same.listen(queue)
