"""Slurm daemons of a bed that lost their machine, for example because somebody killed its first process."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from steward.adapters import proc
from steward.adapters.proc import Process
from steward.ports import Retryable

_DAEMONS = ("slurmd", "slurmstepd", "slurmctld", "munged", "mariadbd")
_GONE_S = 5.0


def end(root: Path) -> None:
    """Kill every Slurm daemon that has a file or socket below `root` open, with what runs below it.

    Only daemons: a person's shell or editor in that directory is left alone. Raises Retryable when some stay.
    """
    deadline = time.monotonic() + _GONE_S
    while found := [each for daemon in _daemons(root) for each in _tree(daemon)]:
        for process in found:
            proc.send(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise Retryable(f"processes do not die: {sorted(each.pid for each in found)}; look at their state in ps")
        time.sleep(0.01)


def _tree(daemon: Process) -> list[Process]:
    return [daemon, *(seen.process for seen in proc.descendants(daemon))]


def _daemons(root: Path) -> Iterator[Process]:
    for seen in proc.every():
        if not seen.dead and _program(seen.process.pid).startswith(_DAEMONS) and _uses(seen.process.pid, root):
            yield seen.process


def _program(pid: int) -> str:
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name
    except OSError:
        return ""


def _uses(pid: int, root: Path) -> bool:
    try:
        targets = [os.readlink(f"/proc/{pid}/cwd")]
        targets += [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return any(Path(target).is_relative_to(root) for target in targets)
