"""Processes of this machine as /proc shows them, named so that a reused pid is never taken for the process before."""

import ctypes
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_UID = re.compile(rb"^Uid:\s+([0-9]+)", re.MULTILINE)
_TICKS = os.sysconf("SC_CLK_TCK")
_MAX_STAT = 4096
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


def look(pid: int) -> Seen | None:
    """Return the process that has this pid now, or None if there is none."""
    try:
        stat = _read(f"/proc/{pid}/stat")
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


def _read(path: str) -> str:
    """Return the file, which the kernel gives in one read; without Python's file objects this costs a third."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _MAX_STAT).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def real_uid(pid: int) -> int:
    """Return the process's real uid, or -1 if it is gone."""
    try:
        # The owner of the folder in /proc is no proof: for a process that cannot be traced it is root.
        found = _UID.search((_PROC / str(pid) / "status").read_bytes())
    except OSError:
        return -1
    return int(found[1]) if found else -1


def is_alive(process: ProcessKey) -> bool:
    """Return whether this very process still runs (a stopped one does, a zombie does not)."""
    seen = look(process.pid)
    return seen is not None and seen.process == process and not seen.dead


def all_processes() -> Iterator[Seen]:
    """Yield all processes; those that end during the look are left out."""
    for entry in os.listdir(_PROC):
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
