"""The child processes of a deep check: one on each core for the same work, and one for PyTorch.

Unlike a thread, a process can be killed when its time budget is spent.
"""

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
    """The time that a part may take. `until` is on the monotonic clock of this machine."""

    until: float

    @classmethod
    def of(cls, seconds: float) -> "Budget":
        return cls(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """The seconds left, at least 0."""
        return max(0.0, self.until - time.monotonic())

    def part(self, share: float, *, most_s: float = float("inf")) -> "Budget":
        """Return a budget of `share` of the time left, at most `most_s` seconds."""
        return Budget.of(min(self.left_s * share, most_s))


@dataclass(frozen=True, slots=True)
class TorchRunner:
    """A starter of PyTorch's measures in a separate process.

    `python` is the interpreter, which needs PyTorch and Steward's package; empty means our own, if it has PyTorch.
    """

    python: str = ""

    def is_there(self) -> bool:
        return bool(self.python) or importlib.util.find_spec("torch") is not None

    def run(self, *words: str, timeout_s: float) -> Completed:
        """Run `torch_child` with these arguments. Raises Failed."""
        argv = [self.python or sys.executable, "-m", "steward.deep.torch_child", *words]
        return run(argv, timeout_s=timeout_s, max_bytes=1 << 20)


Answer = Mapping[str, float | str]
Work = Callable[[int, Budget], Answer]
"""(number of the worker from 0, its budget) -> its results, as plain values."""

GRACE_S = 1.0
_MAX_ANSWER = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerAnswer:
    """The answer of one worker; `lost` says why there is none."""

    core: int
    answer: Answer = field(default_factory=dict)
    lost: str = ""


@dataclass(slots=True)
class _Child:
    pid: int
    core: int
    pipe: int
    got: bytes = b""


def on_every_core(work: Work, budget: Budget, *, cores: int | None = None) -> list[WorkerAnswer]:
    """Run `work` once on each core that we may use (at most `cores`), and return the answers.

    A worker that still runs `GRACE_S` after the budget is killed and returned as lost. Do not call this while other
    threads run: it forks.
    """
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    sys.stdout.flush()
    children = [_start(work, number, core, budget) for number, core in enumerate(allowed)]
    try:
        _read(children, budget.until + GRACE_S)
    finally:
        answers = [_end(child) for child in children]
    return answers


def _start(work: Work, number: int, core: int, budget: Budget) -> _Child:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _work(work, number, core, budget, writer)
    os.close(writer)
    return _Child(pid=pid, core=core, pipe=reader)


def _work(work: Work, number: int, core: int, budget: Budget, writer: int) -> NoReturn:
    """Run the work in the child and exit, never returning into the parent's code."""
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


def _end(child: _Child) -> WorkerAnswer:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)  # not reaped yet, so the process id cannot be another's
    _, status = os.waitpid(child.pid, 0)
    os.close(child.pipe)
    try:
        answer = json.loads(child.got)
    except ValueError:
        return WorkerAnswer(core=child.core, lost=_why_lost(status))
    return WorkerAnswer(core=child.core, answer=answer)


def _why_lost(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL:
        return "no end in time, or killed"
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
