"""Slurm's own will-run test, asked of a process that is linked with Slurm's library (`reader/steward_slurm.c`).

Facts, tried on real 22.05.8: no command has the test of a job that is there. The library's test of a waiting job adds
to the start the time of all that waits before it, and takes no list of nodes. Its test of a new job with the highest
priority does not, obeys the exclude list, and sees the nodes of a reservation with FLEX as free, besides all others.
Each such test uses up a job number; nothing else is left of it.
"""

import os
import re
import selectors
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from steward.adapters import process
from steward.adapters.process import Child
from steward.adapters.slurm.words import expand, node_list, partition
from steward.model.fit import MISSING, UNKNOWN, Fit, FitState, Question
from steward.ports import PortError

_PATIENCE_S = 1.0
_AGAIN_S, _AGAIN_MOST_S = 5.0, 60.0
_END_S = 0.2
_MOST = 1 << 16
_ANSWER = re.compile(r"fits (now|later|never|unknown) (\d{1,18}) (-|[a-z]{1,20}) (\S{1,60000})\n")
_PROGRAM = "steward-slurm"
_PLACES = (Path(__file__).parents[4] / "reader/build", Path("/usr/lib/steward"))


class FitAsker:
    """Safe to call from several threads; the process ends with ours, or with `close`."""

    def __init__(
        self,
        *,
        conf: str = "",
        argv: Sequence[str] = (),
        patience_s: float = _PATIENCE_S,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`argv` is another program than ours; `monotonic` tells when one that failed may be asked again."""
        self._argv, self._patience_s, self._monotonic, self._clock = argv, patience_s, monotonic, clock
        self._env = {"SLURM_CONF": conf} if conf else {}
        self._turn = threading.Lock()
        self._child: Child | None = None
        self._not_before, self._pause_s = float("-inf"), _AGAIN_S

    @property
    def can_ask(self) -> bool:
        """Whether there is a program for it."""
        return bool(self._argv or program())

    def ask(self, question: Question) -> Fit:
        """UNKNOWN where there is no program, or no answer of the right form in time. Never raises."""
        with self._turn:
            if self._monotonic() < self._not_before:
                return UNKNOWN
            at = self._clock()
            try:
                fit = self._answer(_line(question), at)
            except (OSError, PortError):
                fit = None
            if fit is None:
                self._stop()
                self._not_before = self._monotonic() + self._pause_s
            self._pause_s = _AGAIN_S if fit else min(2 * self._pause_s, _AGAIN_MOST_S)
            return fit or UNKNOWN

    def close(self) -> None:
        with self._turn:
            self._stop()

    def _answer(self, line: str, at: float) -> Fit | None:
        child = self._running()
        if child is None or child.stdin is None or child.stdout is None:
            return None
        child.stdin.write(line.encode())
        deadline, got = time.monotonic() + self._patience_s, b""
        with selectors.DefaultSelector() as ready:
            ready.register(child.stdout, selectors.EVENT_READ)
            while len(got) < _MOST and ready.select(max(0.0, deadline - time.monotonic())):
                chunk = os.read(child.stdout.fileno(), _MOST)
                got += chunk
                if not chunk or b"\n" in got:
                    return fit_of(got.decode("ascii", "replace"), at)
        return None

    def _running(self) -> Child | None:
        if self._child is None and (argv := self._argv or program()):
            self._child = process.begin(argv, env=self._env)
        return self._child

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            process.end(child, _END_S)
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()


def _line(question: Question) -> str:
    """Raises Permanent for names that are none, and for a list that is too long."""
    through = partition(question.through) if question.through else "-"
    return f"fits {question.job} {question.nodes} {through} {node_list(question.without) or '-'}\n"


def fit_of(line: str, at: float) -> Fit | None:
    """None for an answer of another form. Raises Retryable for a node list that cannot be read."""
    found = _ANSWER.fullmatch(line)
    if found is None or (found[3] != "-" and found[3] not in MISSING):
        return None
    nodes = frozenset() if found[4] == "-" else expand(found[4])
    missing = "" if found[3] == "-" else found[3]
    return Fit(state=FitState(found[1]), at=at, in_s=float(found[2]), nodes=nodes, missing=missing)


def program() -> tuple[str, ...]:
    """Empty where it was not built. The loader refuses one that was built for another Slurm."""
    path = os.pathsep.join(map(str, _PLACES))
    found = shutil.which(_PROGRAM, path=path)
    return (found,) if found else ()
