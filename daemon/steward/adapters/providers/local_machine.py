"""A pretended machine: a tree of processes under a first process of its own, switched on and off as a whole."""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steward.adapters import proc
from steward.adapters.proc import Process
from steward.adapters.process import Failed, run
from steward.model.instance import Slot
from steward.ports import Retryable

_INIT = Path(__file__).with_name("local_init.py")
_START_S = 20.0
_OFF_S = 5.0
_FREEZE_S, _FREEZE_LOOKS = 1.0, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One long-running program of a machine; `argv` begins with a path, `env` is its whole environment."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine that was switched on, for `cause`. `state` is the file in which its first process keeps who runs."""

    init: Process
    state: Path
    cause: str

    @property
    def is_on(self) -> bool:
        return proc.is_alive(self.init)

    def program(self, name: str) -> Process | None:
        """The running program of this name; None when it has ended or the machine is off."""
        entry = json.loads(self.state.read_text())["programs"].get(name)
        process = None if entry is None else Process(pid=entry["pid"], started=entry["started"])
        return process if process is not None and proc.is_alive(process) else None


def find(state: Path) -> Machine | None:
    """The machine of this state file, on or off; None when it was never switched on."""
    try:
        entry = json.loads(state.read_text())
    except FileNotFoundError:
        return None
    return Machine(init=Process(**entry["init"]), state=state, cause=entry["cause"])


def power_on(
    name: str, programs: tuple[Program, ...], *, cwd: Path, state: Path, cause: str = "", keep_orphans: bool = True
) -> Machine:
    """Start the programs, detached from us. Raises Retryable, with the reason, when one cannot be started or the
    machine is on already. Without `keep_orphans` what its programs detach does not belong to the machine."""
    spec = {
        "cwd": str(cwd),
        "state": str(state),
        "cause": cause,
        "keep_orphans": keep_orphans,
        "programs": [
            {"name": each.name, "argv": each.argv, "env": dict(each.env), "log": str(each.log)} for each in programs
        ],
    }
    argv = [sys.executable, "-I", "-S", str(_INIT)]
    try:
        answer = json.loads(run(argv, input=json.dumps(spec).encode(), timeout_s=_START_S).text)
    except (Failed, ValueError) as error:
        raise Retryable(f"{name}: cannot be switched on: {error}") from error
    if "error" in answer:
        raise Retryable(f"{name}: cannot be switched on: {answer['error']}")
    return Machine(init=Process(**answer), state=state, cause=cause)


def power_off(machine: Machine) -> None:
    """Cut the power: every process stands still before the first one dies, so that none can tell another of it.

    The farthest from the machine's first process dies first: the kernel wakes (SIGHUP, SIGCONT) stopped process groups
    that a dying parent leaves behind, and an srun would still end its step.
    Returns when all are gone. Raises Retryable when some are left after some seconds.
    """
    deadline = time.monotonic() + _OFF_S
    while doomed := freeze(machine):
        for process in reversed(doomed):
            proc.send(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise Retryable(f"processes do not die: {sorted(each.pid for each in doomed)}; look at their state in ps")
        time.sleep(0.005)
    proc.send(machine.init, signal.SIGKILL)
    while machine.is_on and time.monotonic() < deadline:
        time.sleep(0.002)


def freeze(machine: Machine) -> list[Process]:
    """Stop every process of the machine but its first, also those born meanwhile; returns them when they stand still.
    Raises Retryable."""
    return _freeze_below(machine.init)


def _freeze_below(root: Process) -> list[Process]:
    """Stop all that `root` has started, also what is born meanwhile.

    One that the kernel does not let stop is waited for briefly. Raises Retryable where more are born than stopped, look
    for look: a single one may take long on a busy host.
    """
    frozen: list[Process] = []
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
    """Let the processes of a frozen machine go on."""
    for seen in proc.descendants(machine.init):
        proc.send(seen.process, signal.SIGCONT)


def kill_program(machine: Machine, name: str) -> bool:
    """SIGKILL one program and what it started; False when it does not run. `restart_programs` brings it back.

    All of it stands still before the first one dies: what detaches itself meanwhile lives on. Raises Retryable."""
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
    """The environment of a daemon: a plain search path and language, not whatever the caller's shell has set."""
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": f"{path}:/usr/sbin:/sbin", "LANG": "C.UTF-8", "HOME": "/", **extra}


# The machines that the provider of a test bed refuses to make: files say so, for tests of what is not to be had.

REFUSE_LAUNCH = "refuse-launch"
LIMIT_LAUNCH = "limit-launch"


def refuse_as_told(faults: Path, there: int, slot: Slot) -> None:
    """Raises Retryable, as for want of capacity, when none is to be made, or not one more than are `there`."""
    if (faults / REFUSE_LAUNCH).exists():
        raise Retryable(f"capacity: no machine for {slot.node}: launches are refused (fault refuse-launch)")
    limit = _limit(faults / LIMIT_LAUNCH)
    if limit is not None and there >= limit:
        kind = f" of {slot.types[0]}" if slot.types else ""
        raise Retryable(f"capacity: no machine{kind} for {slot.node}: there are only {limit} (fault limit-launch)")


def _limit(path: Path) -> int | None:
    """The largest number of machines that may be made; None where there is no limit."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdecimal() else 0
