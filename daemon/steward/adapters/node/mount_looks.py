"""Checks whether mounted file systems answer, each by a child process, since the call may hang in the kernel for ever.

A child that hangs in state D can neither be killed nor waited for. So this module starts its children itself instead of
through `process`, which promises to leave none: here a hung child is left behind, known by its mount point, and
collected once the kernel lets it go. While it hangs, no second child is started for that mount, and the answer stays
`hung`.
"""

import os
import select
import signal
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from steward.model.text import printable

HUNG = "hung"
NOT_MOUNTED = "not mounted"
MAX_LEFT = 64
"""The most children that may hang at once, over all mounts."""
_GRACE_S = 0.1
"""The time for a killed child to be gone: one that waits for NFS goes, one in state D stays."""
_MAX_ERROR = 512
_ASK = ("stat", "--file-system", "--format=%T", "--")
"""The child's command: statfs asks the server itself, while stat may be answered from a cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Child:
    pid: int
    ended: int
    """A pidfd, which is readable once the child has ended."""
    error: int
    """The pipe of the child's stderr."""


class MountLooks:
    """The looks at mounts, with the children that hang. Threads may share one: a look waits for the one before it."""

    def __init__(self) -> None:
        self._left: dict[str, _Child] = {}
        self._turn = threading.Lock()

    @property
    def left(self) -> tuple[int, ...]:
        """The pids of the children that are left behind now."""
        return tuple(child.pid for child in self._left.values())

    def look(self, paths: Iterable[str], timeout_s: float) -> dict[str, str]:
        """Return the answer for each path: empty if it answered, `hung`, or stat's error.

        Ends shortly after `timeout_s`, whatever the file systems do. Raises OSError if no child can be started.
        """
        with self._turn:
            self._collect()
            wanted = tuple(dict.fromkeys(paths))
            free = [path for path in wanted if path not in self._left][: MAX_LEFT - len(self._left)]
            told = self._ask(free, timeout_s)
            return {path: told.get(path, HUNG) for path in wanted}

    def _ask(self, paths: list[str], timeout_s: float) -> dict[str, str]:
        children: dict[str, _Child] = {}
        try:
            for path in paths:
                children[path] = _start(path)
        finally:
            # After a failed start, too: the children that were started before must not be lost.
            told = _await(children, timeout_s)
            self._left |= {path: child for path, child in children.items() if path not in told}
        self._kill()
        return told

    def _kill(self) -> None:
        """Kill the children that hang now, and collect those that the kernel lets go."""
        for child in self._left.values():
            signal.pidfd_send_signal(child.ended, signal.SIGKILL)
        if self._left:
            _wait_for([child.ended for child in self._left.values()], _GRACE_S)
            self._collect()

    def _collect(self) -> None:
        ended = [path for path, child in self._left.items() if _reap(child) is not None]
        for path in ended:
            del self._left[path]


def _start(path: str) -> _Child:
    read, write = os.pipe2(os.O_CLOEXEC)
    quiet = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    try:
        pid = os.posix_spawnp(
            _ASK[0],
            (*_ASK, path),
            {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            file_actions=((os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), quiet, (os.POSIX_SPAWN_DUP2, write, 2)),
            setsid=True,
            setsigdef=(signal.SIGPIPE,),
        )
    except OSError:
        os.close(read)
        raise
    finally:
        os.close(write)
    return _Child(pid=pid, ended=os.pidfd_open(pid), error=read)


def _await(children: dict[str, _Child], timeout_s: float) -> dict[str, str]:
    """Return the answer of each child that ended in time."""
    deadline = time.monotonic() + timeout_s
    told: dict[str, str] = {}
    waiting = dict(children)
    while waiting:
        ended = _wait_for([child.ended for child in waiting.values()], deadline - time.monotonic())
        for path in [path for path, child in waiting.items() if child.ended in ended]:
            told[path] = _reap(waiting.pop(path)) or ""
        if not ended:
            break
    return told


def _wait_for(descriptors: list[int], seconds: float) -> frozenset[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return frozenset(descriptor for descriptor, _ in poll.poll(max(seconds, 0.0) * 1000))


def _reap(child: _Child) -> str | None:
    """Return the error that the child reported, empty if there was none; None while the child has not ended."""
    status = os.waitid(os.P_PIDFD, child.ended, os.WEXITED | os.WNOHANG)
    if status is None:
        return None
    said = os.read(child.error, _MAX_ERROR) if status.si_status else b""
    os.close(child.ended)
    os.close(child.error)
    text = printable(said.decode("utf-8", "replace").strip(), _MAX_ERROR)
    return "" if status.si_status == 0 else text or f"stat ended with {status.si_status}"
