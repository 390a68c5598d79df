"""The processes of a deep check: the same work on every core at once, each core in a process of its own that can be
killed, and PyTorch in one of its own; and the seconds that a part may take."""

import contextlib
import importlib.util
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from steward.adapters.process import Completed, run


@dataclass(frozen=True, slots=True)
class Budget:
    """`until` is on the monotonic clock of this machine."""

    until: float

    @classmethod
    def of(cls, seconds: float) -> "Budget":
        return cls(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """0 at least."""
        return max(0.0, self.until - time.monotonic())

    def part(self, share: float, *, most_s: float = float("inf")) -> "Budget":
        """`share` of what is left, `most_s` seconds at most."""
        return Budget.of(min(self.left_s * share, most_s))


@dataclass(frozen=True, slots=True)
class TorchDoor:
    """`python` "" is our own interpreter, if it has PyTorch; another one needs Steward's package in its path."""

    python: str = ""

    def is_there(self) -> bool:
        return bool(self.python) or importlib.util.find_spec("torch") is not None

    def run(self, *words: str, timeout_s: float) -> Completed:
        """Raises Failed."""
        argv = [self.python or sys.executable, "-m", "steward.deep.torch_child", *words]
        return run(argv, timeout_s=timeout_s, max_bytes=1 << 20)


Answer = Mapping[str, float | str]
Work = Callable[[int, Budget], Answer]
"""(number of the worker from 0, its budget) -> what it found, as plain values."""

GRACE_S = 1.0
_MAX_ANSWER = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The answer of one worker; `lost` says why there is no answer."""

    core: int
    answer: Answer = field(default_factory=dict)
    lost: str = ""


@dataclass(slots=True)
class _Child:
    pid: int
    core: int
    pipe: int
    got: bytes = b""


def on_every_core(work: Work, budget: Budget, *, cores: int | None = None) -> list[Told]:
    """Runs `work` once on each core that we may use (at most `cores`). What is not over `GRACE_S` after the budget is
    killed and told as lost. Must not be called while other threads run."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    sys.stdout.flush()
    children = [_start(work, number, core, budget) for number, core in enumerate(allowed)]
    try:
        _read(children, budget.until + GRACE_S)
    finally:
        told = [_end(child) for child in children]
    return told


def _start(work: Work, number: int, core: int, budget: Budget) -> _Child:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _work(work, number, core, budget, writer)
    os.close(writer)
    return _Child(pid=pid, core=core, pipe=reader)


def _work(work: Work, number: int, core: int, budget: Budget, writer: int) -> NoReturn:
    """In the child: never returns into the parent's code."""
    status = 1
    try:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})
        os.write(writer, json.dumps(dict(work(number, budget))).encode()[:_MAX_ANSWER])
        status = 0
    except MemoryError:
        os.write(writer, b'{"error": "out of memory"}')
        status = 0
    finally:
        os._exit(status)


def _read(children: list[_Child], until: float) -> None:
    open_pipes = {child.pipe: child for child in children}
    while open_pipes and (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select(list(open_pipes), [], [], left)
        for pipe in ready:
            chunk = os.read(pipe, _MAX_ANSWER)
            open_pipes[pipe].got += chunk
            if not chunk:
                del open_pipes[pipe]


def _end(child: _Child) -> Told:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)  # not reaped yet: the number is still its own
    _, status = os.waitpid(child.pid, 0)
    os.close(child.pipe)
    try:
        answer = json.loads(child.got)
    except ValueError:
        return Told(core=child.core, lost=_why(status))
    return Told(core=child.core, answer=answer)


def _why(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL:
        return "no end in time, or killed"
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
