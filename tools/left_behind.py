"""Finds what a run left behind: processes that carry its mark in their environment, and its test beds' containers.

usage: python3 tools/left_behind.py MARK      the run was started with STEWARD_RUN=MARK in its environment

Prints each and ends it, by process id. Exit status 1 when there was any.
"""

import os
import signal
import sys
import time
from pathlib import Path

_PATIENCE_S = 10.0


def marked(mark: str, variable: str = "STEWARD_RUN") -> dict[int, str]:
    """pid -> command of every process with the mark in that variable, and of what such a one has started in an
    environment of its own (a test bed's daemons), but this one and its ancestors."""
    needle = f"\0{variable}={mark}\0".encode()
    mine = _ancestors(os.getpid())
    there = {int(folder.name): folder for folder in Path("/proc").glob("[0-9]*")}
    bearers = {pid for pid, folder in there.items() if needle in b"\0" + _read(folder / "environ") + b"\0"} - mine
    found = {pid: there[pid] for pid in there if pid not in mine and bearers & _ancestors(pid)}
    commands = {pid: _read(folder / "cmdline") for pid, folder in found.items()}
    return {pid: said.replace(b"\0", b" ").decode(errors="replace").strip() for pid, said in commands.items() if said}


def end(pids: set[int]) -> None:
    """SIGTERM, then SIGKILL for those that stay."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            _signal(pid, number)
        until = time.monotonic() + _PATIENCE_S
        while pids and time.monotonic() < until:
            pids = {pid for pid in pids if _read(Path(f"/proc/{pid}/cmdline"))}
            time.sleep(0.1)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _ancestors(pid: int) -> set[int]:
    found = set()
    while pid > 0:
        found.add(pid)
        stat = _read(Path(f"/proc/{pid}/stat")).decode(errors="replace")
        pid = int(stat.rpartition(")")[2].split()[1]) if stat else 0
    return found


def _read(file: Path) -> bytes:
    """Empty when the process has gone, has no such text, or is not ours to read."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def main(mark: str) -> int:
    left = marked(mark)
    for pid, command in left.items():
        print(f"left behind: {pid} {command[:160]}")
    if left:
        end(set(left))
        return 1
    print("no process left behind")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
