"""Read what Slurm's commands print: runs of jobs, events of nodes, facts about the site."""

from __future__ import annotations

import calendar
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

JOB_FIELDS = (
    *("JobIDRaw", "User", "Partition", "State", "Submit", "Start", "End", "NNodes", "TimelimitRaw", "AllocTRES"),
    *("NodeList", "FailedNode", "JobName"),
)
"""What sacct is asked for, as far as it knows it: 22.05 has no FailedNode. The name, any text of a user, comes last."""
EVENT_FIELDS = ("NodeName", "TimeStart", "TimeEnd", "State", "User", "Reason")
_SEPARATOR = re.compile(r"\w+(\x1f\d+\x1f|\W)")
_LATEST = 1 << 33
_MOST_NODES = 100_000
_TERM = re.compile(r"[^\[\],\s]+|\[[0-9,-]+\]|[,\s]+")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{0,18}))?")
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)")


class JobRun(NamedTuple):
    """One start of a job. `end` is None while it runs."""

    job: int
    user: str
    partition: str
    state: str
    submit: int
    start: int
    end: int | None
    nodes: int
    limit_s: int | None
    tres: str
    nodelist: str
    failed_node: str
    name: str

    @property
    def ended(self) -> int:
        """Return its end; of a run that goes on its start."""
        return self.start if self.end is None else self.end

    @property
    def seconds(self) -> int:
        """Return how long it took."""
        return self.ended - self.start


class NodeEvent(NamedTuple):
    """A time in which a node was out of service. `end` is None while it is."""

    node: str
    start: int
    end: int | None
    state: str
    user: str
    reason: str


class SiteFacts(NamedTuple):
    """The time that is looked at, Slurm's settings, and how large each node is."""

    since: int
    until: int
    cluster: str = ""
    version: str = ""
    slurmd_timeout_s: int = 300
    is_private: bool = False
    shapes: Mapping[str, tuple[int, int]] = MappingProxyType({})
    """Node -> its CPUs and GPUs."""


class Rows:
    """The rows of an answer whose first line names the fields. Counts the lines that are no rows.

    The separator is what stands between the first two names. It is chosen anew for each look, so that no job's name can
    forge a row.
    """

    def __init__(self, lines: Iterable[str], fields: tuple[str, ...]) -> None:
        self._lines = iter(lines)
        self._fields = fields
        self.unread = 0

    def __iter__(self) -> Iterator[list[str]]:
        """Yield the wanted fields of each row, in the order asked for; a field that Slurm does not have is empty.

        Raises ValueError if the first line does not name the first field.
        """
        header = next(self._lines, self._fields[0]).rstrip("\n")
        match = _SEPARATOR.match(header)
        names = header.split(match[1]) if match else [header]
        if self._fields[0] not in names:
            raise ValueError(f"the first line does not name {self._fields[0]}, as an answer of Slurm's does")
        places = [names.index(field) if field in names else len(names) for field in self._fields]
        for line in self._lines:
            text = line.rstrip("\n")
            parts = text.split(match[1], len(names) - 1) if match else [text]
            if len(parts) == len(names) and text != header:
                parts.append("")
                yield [parts[place] for place in places]
            elif text not in ("", header):
                self.unread += 1


def job_runs(rows: Rows) -> Iterator[JobRun]:
    """Yield the runs in an answer of sacct. A job that never started has none."""
    for row in rows:
        job, user, partition, state, submit, start, end, nodes, limit, tres, nodelist, failed, name = row
        began = unix_time(start)
        if began is None:
            continue
        ended = unix_time(end)
        minutes = whole(limit)
        yield JobRun(
            whole(job) or 0,
            sys.intern(user),
            sys.intern(partition),
            sys.intern(state.partition(" ")[0]),
            unix_time(submit) or began,
            began,
            None if ended is None else max(began, ended),
            max(1, min(whole(nodes) or 1, _MOST_NODES)),
            None if minutes is None else 60 * minutes,
            sys.intern(tres),
            sys.intern(nodelist),
            "" if failed in _NO_NODES else failed,
            sys.intern(name),
        )


def node_events(rows: Rows) -> Iterator[NodeEvent]:
    """Yield the events of nodes in an answer of sacctmgr; those of the whole cluster are left out."""
    for node, start, end, state, user, reason in rows:
        began, ended = unix_time(start), unix_time(end)
        if node not in _NO_NODES and began is not None:
            later = None if ended is None else max(began, ended)
            yield NodeEvent(node, began, later, state, user.partition("(")[0], reason)


_NO_NODES = frozenset({"", "(null)", "None", "None assigned", "N/A"})


def unix_time(text: str) -> int | None:
    """Return the time in Unix seconds: of seconds, or of a date in UTC. None for `Unknown` and the like."""
    if not text.isdecimal():
        match = _TIME.fullmatch(text)
        if match is None:
            return None
        year, month, day, hour, minute, second = map(int, match.groups())
        if not (year >= 1970 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]):
            return None
        return calendar.timegm((year, month, day, hour, minute, second))
    number = whole(text)
    return number if number is not None and 0 < number < _LATEST else None


def whole(text: str) -> int | None:
    """Return the number of a text that is one; None for `UNLIMITED` and the like."""
    return int(text) if text.isdecimal() and len(text) < 16 else None


@lru_cache(maxsize=500)
def node_names(text: str) -> tuple[str, ...]:
    """Return the names in Slurm's list of nodes, such as `gpu1-ib,n[1-3,7]`; none for a text that is no such list."""
    if text in _NO_NODES:
        return ()
    terms: list[list[tuple[str, ...]]] = [[]]
    at = size = 0
    while at < len(text):
        piece = _TERM.match(text, at)
        if piece is None:
            return ()
        word, at = piece[0], piece.end()
        if word[0] in ", \t\n\r\f\v":
            terms.append([])
            continue
        parts = _numbers(word[1:-1]) if word[0] == "[" else (word,)
        terms[-1].append(parts)
        size += len(parts)
        if not parts or size > _MOST_NODES:
            return ()
    return _joined(terms)


def _joined(terms: list[list[tuple[str, ...]]]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for term in filter(None, terms):
        count = 1
        for parts in term:
            count *= len(parts)
        if count + len(found) > _MOST_NODES:
            return ()
        found.update(dict.fromkeys(map("".join, product(*term))))
    return tuple(found)


def _numbers(ranges: str) -> tuple[str, ...]:
    """Return the numbers of a bracket, each as wide as the first of its range; none if one of them is no range."""
    found: list[str] = []
    for text in ranges.split(","):
        match = _RANGE.fullmatch(text)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if match is None or not first <= last < first + _MOST_NODES:
            return ()
        found += (str(number).zfill(len(match[1])) for number in range(first, last + 1))
    return tuple(found)


def settings(lines: Iterable[str]) -> dict[str, str]:
    """Return each setting with its value, from `scontrol show config`."""
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def shapes(lines: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the CPUs and GPUs of each node, from `sinfo -h -N -o '%N|%c|%G'`."""
    found = {}
    for line in lines:
        node, cpus, gres = [*line.strip().split("|", 2), "", ""][:3]
        gpus = sum(int(count) for count in re.findall(r"(?:^|,)gpu(?::[^:,()]+)?:(\d{1,6})", gres))
        if whole(cpus):
            found[node] = (int(cpus), gpus)
    return found
