"""Processes of this machine as /proc shows them, named so that a reused pid is never taken for the process before.

The kernel gives no answer about a process that hangs inside execve(), for example because a file that it has to close
there is on a file system that does not answer. Such a reading holds up one thread, and no other look at processes.
"""

import contextlib
import ctypes
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_UID = re.compile(rb"^Uid:\s+([0-9]+)", re.MULTILINE)
_TICKS = os.sysconf("SC_CLK_TCK")
MAX_STAT = 4096
HANGS_S = 5.0
"""A reading that takes this long hangs: less than any of our looks may take."""
PLACES = 4
"""How many threads a look at all users' processes may hold: one hangs for each user with such a process."""
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessKey:
    """The identity of one process: its pid, and its start in clock ticks since the machine's boot."""

    pid: int
    started: int

    @property
    def began_s(self) -> float:
        """Return when it began, in seconds since the machine's boot."""
        return self.started / _TICKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One look at a process.

    A zombie is `dead`: it runs nothing any more and only waits to be collected. `ticks` is its processor time in clock
    ticks, `cpu_s` in seconds.
    """

    process: ProcessKey
    parent: int
    state: str
    ticks: int = 0

    @property
    def cpu_s(self) -> float:
        return self.ticks / _TICKS

    @property
    def dead(self) -> bool:
        return self.state in "ZX"

    @property
    def stopped(self) -> bool:
        return self.state in "Tt"


class PassedOver(OSError):
    """Nothing is read of a process of which a reading hangs in another thread, nor of its user's other processes."""


class ProcessFiles:
    """The files of all processes, for several threads, of which each may hang."""

    def __init__(self, root: str = "/proc", hangs_s: float = HANGS_S) -> None:
        self._root, self._hangs_s = root, hangs_s
        self._reading: dict[int, tuple[int, float]] = {}
        """The processes of which a file is being read: by which thread, and since when (monotonic s)."""

    def read(self, pid: int, name: str, most: int) -> bytes:
        """Return the beginning of a file of the process, which the kernel gives in one read.

        Raises OSError: PassedOver if it would hang, TimeoutError if it has hung.
        """
        began = time.monotonic()
        if self._hangs(pid, began):
            raise PassedOver(f"process {pid} or another one of its user hangs")
        mine = (threading.get_ident(), began)
        self._reading.setdefault(pid, mine)  # of two readings at once the first one counts
        try:
            found = _read(f"{self._root}/{pid}/{name}", most)
        finally:
            if self._reading.get(pid) is mine:
                del self._reading[pid]
        if time.monotonic() - began > self._hangs_s:  # other looks went on meanwhile: the one that waited must not
            raise TimeoutError(f"process {pid} hung")
        return found

    def look(self, pid: int) -> Seen | None:
        """Return the process that has this pid now, or None if there is none. Raises OSError as `read` does."""
        try:
            stat = self.read(pid, "stat", MAX_STAT).decode("ascii", "replace")
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The command is in parentheses and may hold anything, even a `)`; the text after the last one is plain.
        fields = stat.rpartition(")")[2].split()
        return Seen(
            process=ProcessKey(pid=pid, started=int(fields[19])),
            parent=int(fields[1]),
            state=fields[0],
            ticks=int(fields[11]) + int(fields[12]),
        )

    def owner(self, pid: int) -> int:
        """Return the process's real uid, or -1 if it is gone."""
        try:
            # The owner of the folder in /proc is no proof: for a process that cannot be traced it is root.
            found = _UID.search(_read(f"{self._root}/{pid}/status", MAX_STAT))
        except OSError:
            return -1
        return int(found[1]) if found else -1

    def _hangs(self, pid: int, now: float) -> bool:
        """Return whether a reading of the process, or of another one of the same user, hangs."""
        hanging = [other for other, (_, since) in list(self._reading.items()) if now - since > self._hangs_s]
        # `status` is answered all the same. Root's are not passed over together: Slurm's own are among them.
        return bool(hanging) and (pid in hanging or self.owner(pid) in {self.owner(other) for other in hanging} - {0})


FILES = ProcessFiles()
read = FILES.read
look = FILES.look
real_uid = FILES.owner


def _read(path: str, most: int) -> bytes:
    """Return the beginning of a file; without Python's file objects this costs a third."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)


def is_alive(process: ProcessKey) -> bool:
    """Return whether this very process still runs (a stopped one does, a zombie does not)."""
    seen = look(process.pid)
    return seen is not None and seen.process == process and not seen.dead


def all_processes() -> Iterator[Seen]:
    """Yield all processes; those that end during the look, or are passed over, are left out. Raises TimeoutError."""
    for entry in os.listdir(_PROC):
        with contextlib.suppress(PassedOver):
            if entry.isdigit() and (seen := look(int(entry))) is not None:
                yield seen


def descendants(root: ProcessKey) -> list[Seen]:
    """Return the live processes below `root`, nearest first, without `root` itself."""
    children: dict[int, list[Seen]] = {}
    for seen in all_processes():
        children.setdefault(seen.parent, []).append(seen)
    found: list[Seen] = []
    parents = [root.pid] if is_alive(root) else []
    while parents:
        below = [seen for pid in parents for seen in children.get(pid, [])]
        found += [seen for seen in below if not seen.dead]
        parents = [seen.process.pid for seen in below]
    return found


def adopt_orphans() -> None:
    """Keep orphans of this process's descendants below it in the process tree. Raises OSError."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this kernel cannot make a subreaper")


def end_all_below(root: ProcessKey) -> None:
    """Kill every descendant, including those born in the meantime."""
    for _ in range(100):
        below = descendants(root)
        for seen in below:
            send(seen.process, signal.SIGKILL)
        if not below:
            return


def send(process: ProcessKey, number: signal.Signals) -> bool:
    """Signal this very process; return False if it is gone."""
    try:
        # With a pidfd the pid cannot change hands in between.
        descriptor = os.pidfd_open(process.pid)
    except (ProcessLookupError, FileNotFoundError):  # newer kernels report ENOENT for a process that is being reaped
        return False
    try:
        if not is_alive(process):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True
