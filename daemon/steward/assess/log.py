"""Read slurmctld's log, where it is readable: which node's fault ended which job, and which launches failed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from .records import JobRun, unix_time

_JOB = r"JobId=(?:[\d_+]+\((\d+)\)|(\d+))"
_LINE = re.compile(
    r"\[([0-9T:-]{19})[^\]]*\] (?:error: )?"
    rf"(?:(?:Killing {_JOB} on failed node|requeue job {_JOB} due to failure of node) (\S+)"
    rf"|Prolog launch failure, {_JOB})"
)
_NEAR_S = 60
_ZONE_S = 900
"""The log has no time zone: its times may be off by a multiple of so much."""


def tells_of_jobs(line: str) -> bool:
    """Return whether the line may say something that is used; of most lines it is quickly told that they do not."""
    return "Prolog launch failure" in line or "failed node" in line or "due to failure of node" in line


class LogFacts:
    """What the log says about jobs. It may go back less far than the accounting, as it is rotated."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self.first: int | None = None
        self._nodes: dict[int, list[tuple[int, str]]] = defaultdict(list)
        self._launches: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for line in lines:
            self._take(line)

    def node_of(self, run: JobRun) -> str:
        """Return the node whose fault ended the run; empty if the log does not say."""
        return _nearest(self._nodes.get(run.job, []), run.ended) or ""

    def is_launch_failure(self, run: JobRun) -> bool:
        """Return whether the log says that the run's launch failed."""
        return _nearest(self._launches.get(run.job, []), run.ended) is not None

    def _take(self, line: str) -> None:
        match = _LINE.match(line)
        at = unix_time(match[1]) if match else None
        if match is None or at is None:
            return
        self.first = at if self.first is None else self.first
        job = int(next(filter(None, (match[place] for place in (2, 3, 4, 5, 7, 8))))[:15])
        (self._nodes if match[6] else self._launches)[job].append((at, match[6] or ""))


def _nearest(found: list[tuple[int, str]], at: int) -> str | None:
    """Return the word that was said at this time of the day, in whatever zone."""
    off = ((abs((said - at + _ZONE_S // 2) % _ZONE_S - _ZONE_S // 2), abs(said - at), word) for said, word in found)
    best = min(off, default=None)
    return best[2] if best is not None and best[0] <= _NEAR_S and best[1] <= 86_400 else None
