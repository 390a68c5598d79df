"""A simulated machine: a tree of processes below a first process of its own, switched on and off as a whole."""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steward.adapters import proc
from steward.adapters.proc import ProcessKey
from steward.adapters.process import Failed, run
from steward.model.instance import Slot
from steward.ports import Retryable

_INIT = Path(__file__).with_name("local_init.py")
_START_S = 20.0
_OFF_S = 5.0
_FREEZE_S, _FREEZE_LOOKS = 1.0, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One long-running program of a machine; `argv` begins with a path, `env` is its whole environment.

    One that `comes_back` starts again a second after it failed, as by `Restart=` of its unit; killed, it stays dead.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    log: Path
    comes_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine that was switched on, for `cause`. `state` is the file with its running processes."""

    init: ProcessKey
    state: Path
    cause: str

    @property
    def is_on(self) -> bool:
        return proc.is_alive(self.init)

    def program(self, name: str) -> ProcessKey | None:
        """Return the process of the program of this name; None if it has ended or the machine is off."""
        entry = json.loads(self.state.read_text())["programs"].get(name)
        process = None if entry is None else ProcessKey(pid=entry["pid"], started=entry["started"])
        return process if process is not None and proc.is_alive(process) else None


def find(state: Path) -> Machine | None:
    """Return the machine of this state file, on or off; None if it was never switched on."""
    try:
        entry = json.loads(state.read_text())
    except FileNotFoundError:
        return None
    return Machine(init=ProcessKey(**entry["init"]), state=state, cause=entry["cause"])


def power_on(
    name: str, programs: tuple[Program, ...], *, cwd: Path, state: Path, cause: str = "", keep_orphans: bool = True
) -> Machine:
    """Start the programs, detached from us, and return the machine.

    Without `keep_orphans`, processes that its programs detach do not belong to the machine. Raises Retryable if a
    program cannot be started or the machine is on already.
    """
    spec = {
        "cwd": str(cwd),
        "state": str(state),
        "cause": cause,
        "keep_orphans": keep_orphans,
        "programs": [
            {
                "name": each.name,
                "argv": each.argv,
                "env": dict(each.env),
                "log": str(each.log),
                "comes_back": each.comes_back,
            }
            for each in programs
        ],
    }
    argv = [sys.executable, "-I", "-S", str(_INIT)]
    try:
        answer = json.loads(run(argv, input=json.dumps(spec).encode(), timeout_s=_START_S).text)
    except (Failed, ValueError) as error:
        raise Retryable(f"{name}: cannot be switched on: {error}") from error
    if "error" in answer:
        raise Retryable(f"{name}: cannot be switched on: {answer['error']}")
    return Machine(init=ProcessKey(**answer), state=state, cause=cause)


def power_off(machine: Machine) -> None:
    """Cut the power: stop every process before the first one is killed, so that none can report the end of another.

    Returns when all are gone. Raises Retryable if some are left after some seconds.
    """
    deadline = time.monotonic() + _OFF_S
    while doomed := freeze(machine):
        # The farthest from the first process goes first: the kernel wakes (SIGHUP, SIGCONT) stopped process groups that
        # a dying parent leaves behind, and an srun would still end its step.
        for process in reversed(doomed):
            proc.send(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise Retryable(f"cannot kill processes {sorted(each.pid for each in doomed)}; look at their state in ps")
        time.sleep(0.005)
    proc.send(machine.init, signal.SIGKILL)
    while machine.is_on and time.monotonic() < deadline:
        time.sleep(0.002)


def freeze(machine: Machine) -> list[ProcessKey]:
    """Stop every process of the machine but its first, also new ones, and return them. Raises Retryable."""
    return _freeze_below(machine.init)


def _freeze_below(root: ProcessKey) -> list[ProcessKey]:
    """Stop all processes below `root`, also those started meanwhile, and return them.

    Waits briefly for a process that does not stop: even a single one may take long on a busy host. Raises Retryable if
    new processes keep appearing.
    """
    frozen: list[ProcessKey] = []
    deadline = time.monotonic() + _FREEZE_S
    looks = 0
    while True:
        looks += 1
        below = proc.descendants(root)
        fresh = [seen.process for seen in below if seen.process not in frozen]
        frozen += [process for process in fresh if proc.send(process, signal.SIGSTOP)]
        if not fresh and (all(seen.stopped for seen in below) or time.monotonic() > deadline):
            return frozen
        if fresh and looks >= _FREEZE_LOOKS and time.monotonic() > deadline:
            raise Retryable(f"process {root.pid} makes others faster than they can be stopped")
        if not fresh:
            time.sleep(0.001)


def thaw(machine: Machine) -> None:
    """Continue the processes of a frozen machine."""
    for seen in proc.descendants(machine.init):
        proc.send(seen.process, signal.SIGCONT)


def kill_program(machine: Machine, name: str) -> bool:
    """Kill one program and its children with SIGKILL; return False if it does not run.

    All stand still before the first one is killed; a process that detaches itself meanwhile lives on.
    `restart_programs` brings the program back. Raises Retryable.
    """
    process = machine.program(name)
    if process is None:
        return False
    proc.send(process, signal.SIGSTOP)
    frozen = _freeze_below(process)
    doomed = [seen.process for seen in proc.descendants(process)]
    for each in [process, *doomed]:
        proc.send(each, signal.SIGKILL)
    for each in set(frozen) - set(doomed):
        proc.send(each, signal.SIGCONT)
    return True


def restart_programs(machine: Machine) -> None:
    """Start again those programs of the machine that have ended."""
    proc.send(machine.init, signal.SIGHUP)


def own_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a daemon: a plain search path and language, whatever the caller's shell has set."""
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": f"{path}:/usr/sbin:/sbin", "LANG": "C.UTF-8", "HOME": "/", **extra}


# Launches that the provider of a test bed refuses, by files in a folder: for tests without capacity.

REFUSE_LAUNCH = "refuse-launch"
LIMIT_LAUNCH = "limit-launch"


def refuse_as_told(faults: Path, there: int, slot: Slot) -> None:
    """Raise Retryable, as for lack of capacity, if launches are refused or `there` machines reach the limit."""
    if (faults / REFUSE_LAUNCH).exists():
        raise Retryable(f"capacity: no machine for {slot.node}: launches are refused (fault refuse-launch)")
    limit = _limit(faults / LIMIT_LAUNCH)
    if limit is not None and there >= limit:
        kind = f" of {slot.types[0]}" if slot.types else ""
        raise Retryable(f"capacity: no machine{kind} for {slot.node}: there are only {limit} (fault limit-launch)")


def _limit(path: Path) -> int | None:
    """Return the largest number of machines; None if there is no limit."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdecimal() else 0
