"""Slurm's own will-run test, through a process that is linked with Slurm's library (`reader/fits.c`).

Facts, tried on real 22.05.8: no command tests an existing job. The library's test of a waiting job adds the time of all
jobs before it to the start, and takes no list of nodes. Its test of a new job with the highest priority does not, obeys
the exclude list, and sees the nodes of a reservation with FLEX as free, besides all others. Each such test uses up a
job number, and leaves nothing else behind.
"""

import re
import time
from collections.abc import Callable, Sequence

from steward.adapters.slurm.helper import Helper
from steward.adapters.slurm.library import program
from steward.adapters.slurm.words import expand, node_list, partition
from steward.model.fit import MISSING, UNKNOWN, Fit, FitState, Question
from steward.ports import PortError

_PATIENCE_S = 1.0
_MOST = 1 << 16
_ANSWER = re.compile(r"fits (now|later|never|unknown) (\d{1,18}) (-|[a-z]{1,20}) (\S{1,60000})\n")


_NOT_TAKEN = "no\n"
"""The answer of the program to a question that it rejects."""


class FitAsker:
    """The process that makes the test. Safe to call from several threads; it ends with ours, or with `close`."""

    def __init__(
        self,
        *,
        conf: str = "",
        argv: Sequence[str] = (),
        patience_s: float = _PATIENCE_S,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`argv` is another program than ours; `monotonic` is for the pause after a failure."""
        self._argv, self._clock = argv, clock
        env = {"SLURM_CONF": conf} if conf else {}
        self._helper = Helper(lambda: argv or program(), env, patience_s=patience_s, most=_MOST, monotonic=monotonic)

    def ask(self, question: Question) -> Fit:
        """Return Slurm's answer; UNKNOWN without a program, or without a well-formed answer in time. Never raises."""
        at = self._clock()
        try:
            line = _line(question)
        except PortError:
            return UNKNOWN  # a bad name costs this question alone
        fit = self._helper.ask(
            line.encode(),
            lambda got: b"\n" in got,
            lambda got: fit_of(got.decode("ascii", "replace"), at),
        )
        return fit or UNKNOWN

    def close(self) -> None:
        """End the process."""
        self._helper.close()


def _line(question: Question) -> str:
    """Return the question as a line. Raises Permanent for a bad name and for a list that is too long."""
    through = partition(question.reservation) if question.reservation else "-"
    return f"fits {question.job} {question.nodes} {through} {node_list(question.without) or '-'}\n"


def fit_of(line: str, at: float) -> Fit | None:
    """Return the answer of a line; None if it is malformed, UNKNOWN if the program rejects the question.

    Raises Retryable for an unreadable node list.
    """
    if line == _NOT_TAKEN:
        return UNKNOWN
    found = _ANSWER.fullmatch(line)
    if found is None or (found[3] != "-" and found[3] not in MISSING):
        return None
    nodes = frozenset() if found[4] == "-" else expand(found[4])
    missing = "" if found[3] == "-" else found[3]
    return Fit(state=FitState(found[1]), at=at, in_s=float(found[2]), nodes=nodes, missing=missing)
