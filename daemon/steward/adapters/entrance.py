"""A unix socket for the users of this machine, and the pace of each of them, so that no user's haste costs another."""

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path

from steward.adapters.socket_path import AT_ONCE, make_free, served_first
from steward.model.text import cause, cause_and_file
from steward.ports import Permanent

log = logging.getLogger(__name__)

_MAX_USERS = 1024


class Allowance:
    """The rate limit of each user: `per_s` lines a second, and `burst` at once."""

    def __init__(self, *, per_s: float, burst: int, now: Callable[[], float]) -> None:
        self._each_s, self._burst_s, self._now = 1 / per_s, (burst - 1) / per_s, now
        self._spent: dict[int, float] = {}
        """The time until which each user's lines so far use up the rate."""

    def wait_s(self, user: int) -> float:
        """Count a line of the user, and return how long it has to wait."""
        now = self._now()
        if len(self._spent) >= _MAX_USERS:
            self._spent = {each: until for each, until in self._spent.items() if until > now}
        paid = max(self._spent.get(user, now), now)
        self._spent[user] = paid + self._each_s
        return max(paid - self._burst_s - now, 0.0)


_BACKLOG = 512
_ACCEPT_PAUSE_S = 1.0
"""The pause after an error of this machine's, such as no free descriptor."""


class Entrance:
    """A listening socket at `path`: accepts `AT_ONCE` connections before the loop's other work gets its turn.

    Raises Permanent if the socket cannot be made; `rival` names who else may serve it, and the remedy.
    """

    def __init__(self, path: Path, mode: int, admit: Callable[[socket.socket], None], *, rival: str) -> None:
        try:
            self._sock = _listen(path, mode, rival)
        except OSError as error:
            raise Permanent(f"cannot listen at {path}: {cause(error)}") from error
        self._path, self._admit, self._loop = path, admit, asyncio.get_running_loop()
        self._rest: asyncio.TimerHandle | None = None
        self._open()

    def _open(self) -> None:
        self._loop.add_reader(self._sock, self._accept)

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                peer, _ = self._sock.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("no connection is taken for %g s why=%r", _ACCEPT_PAUSE_S, cause_and_file(error))
                self._loop.remove_reader(self._sock)
                self._rest = self._loop.call_later(_ACCEPT_PAUSE_S, self._open)
                return
            peer.setblocking(False)
            self._admit(peer)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)  # first: after the close the path may belong to our successor
        if self._rest is not None:
            self._rest.cancel()
        self._loop.remove_reader(self._sock)
        self._sock.close()


def _listen(path: Path, mode: int, rival: str) -> socket.socket:
    """Return a listening socket that replaces an unused one, never one in use; the kernel names each peer's user."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    make_free(path, rival=rival)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with served_first(path) as hidden:
            sock.bind(str(hidden))
            hidden.chmod(mode)
            sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
