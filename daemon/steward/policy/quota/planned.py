"""The nodes that Slurm's backfill plans to use for jobs that come first.

Slurm starts no later job there that would still run at the planned start: an eviction for such a job is in vain.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from steward.model.ids import JobId, NodeName
from steward.model.job import Job

_MAY_START = frozenset({"", "None", "Priority"})
"""Slurm's reasons for jobs that may start on what is free: for want of nodes it gives another one."""
_WAITS_FOR_NODES = _MAY_START | {"Resources"}
_READ_S = 5.0
"""How long after backfill's pass its plan may be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstJob:
    """A waiting job that comes first, and the nodes that Slurm keeps for it.

    `start` is the planned start (Unix s); None: backfill has not looked at the job, and may keep any of the nodes.
    """

    job: Job
    nodes: frozenset[NodeName]
    start: float | None = None

    @property
    def is_a_part(self) -> bool:
        """Return whether Slurm keeps the nodes for a part of a heterogeneous job, which waits for its other parts."""
        return self.job.het_job_id is not None and self.start is not None


class PlannedNodes(NamedTuple):
    """The nodes that Slurm keeps from a job: for jobs that come first, and only for parts of heterogeneous ones."""

    firmly: frozenset[NodeName] = frozenset()
    for_parts: frozenset[NodeName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomers:
    """Equal new jobs at which backfill has not looked: the last one in Slurm's order, and how many they are."""

    job: Job
    count: int


class PlannedStarts:
    """The plans of Slurm's backfill, in Slurm's order of the jobs.

    A new job that finds no room counts as planned on every node that it may use, until backfill has looked at it.
    """

    def __init__(
        self, jobs: Iterable[Job], now: float, backfill_s: float, may_use: Callable[[Job], frozenset[NodeName]]
    ) -> None:
        """Take the jobs of a picture; `backfill_s` is the interval of backfill (0: backfill is off)."""
        self._now, self._backfill_s, self._may_use = now, backfill_s, may_use
        self._first: list[FirstJob] = []
        self._new: dict[tuple[str, frozenset[NodeName]], tuple[int, int]] = {}
        """For equal new jobs without room: the first one's place in Slurm's order."""
        self._kept: dict[tuple[JobId, ...], PlannedNodes] = {}
        self._newcomers: dict[tuple[object, ...], Newcomers] = {}
        self._in_parts: dict[JobId, list[Job]] = {}
        """The parts of each heterogeneous job that waits."""
        for job in jobs:
            if job.is_pending and job.het_job_id is not None:
                self._in_parts.setdefault(job.het_job_id, []).append(job)
            if job.is_pending and job.planned and job.started:
                self._first.append(FirstJob(job=job, nodes=job.planned, start=job.started))
            elif job.is_pending and job.reason == "Resources" and self.looked_at(job) is not None:
                self._first.append(FirstJob(job=job, nodes=may_use(job)))
            elif job.is_pending and job.reason in _MAY_START and self.looked_at(job) is not None:
                self._note_newcomer(job)
        self._first.sort(key=_place_in_order)

    def _note_newcomer(self, job: Job) -> None:
        """Count a new job that Slurm may start without Steward, with the others that ask for the same."""
        limits = job.account, job.qos, job.time_limit_s
        key = job.partition, job.requested, job.node_count, job.excluded, job.required, job.features, limits
        known, tasks = self._newcomers.get(key), max(job.waiting_tasks, 1)
        last = job if known is None else max((known.job, job), key=_order)
        self._newcomers[key] = Newcomers(job=last, count=tasks + (known.count if known is not None else 0))

    def newcomers_behind(self, job: Job) -> Iterator[Newcomers]:
        """Yield the new jobs behind this one that Slurm may start before it."""
        return (each for each in self._newcomers.values() if _order(each.job) > _order(job))

    def looked_at(self, job: Job) -> float | None:
        """Return by when backfill will have looked at a new job (Unix s); None: it has already, or it is not known."""
        if not self._backfill_s or job.eligible is None or job.planned:
            return None
        by = job.eligible + self._backfill_s + _READ_S
        return by if job.eligible <= self._now < by else None

    def add(self, job: Job) -> None:
        """Add a new job that its limits let start, but for which no room was found."""
        key, order = (job.partition, self._may_use(job)), _order(job)
        known = self._new.get(key)
        if known is None or order < known:  # equal jobs keep the same nodes: only the first one counts
            self._new[key] = order
            insort(self._first, FirstJob(job=job, nodes=key[1]), key=_place_in_order)

    def before(self, job: Job, gets_room: Callable[[JobId], bool]) -> Iterator[FirstJob]:
        """Yield the jobs of its partition that come before this one, start before its end, and get no room now."""
        # jobs of other partitions do not count: their place in Slurm's order is not known
        over = self._now + (job.time_limit_s if job.time_limit_s is not None else float("inf"))
        for first in self._first:
            if _place_in_order(first) >= _order(job):
                return
            leader, partitions = first.job.whole_id, first.job.partitions
            if (first.start or self._now) < over and not gets_room(leader) and set(partitions) & set(job.partitions):
                yield first

    def parts_before(self, job: Job, gets_room: Callable[[JobId], bool]) -> Iterator[list[Job]]:
        """Yield the parts, in Slurm's order, of each heterogeneous job that comes before this one and gets no room."""
        for leader, parts in self._in_parts.items():
            order = sorted(parts, key=_order)
            is_first = _order(order[0]) < _order(job) and leader != job.whole_id and not gets_room(leader)
            # Slurm looks at none of the parts while one of them may not run
            if is_first and set(order[0].partitions) & set(job.partitions) and all(map(_may_run, parts)):
                yield order

    def kept_from(self, job: Job, gets_room: Callable[[JobId], bool]) -> PlannedNodes:
        """Return the nodes on which Slurm does not start this job now."""
        if not self._first:
            return PlannedNodes()
        found = list(self.before(job, gets_room))
        key = tuple(first.job.id for first in found)
        if key not in self._kept:
            firmly, for_parts = (
                frozenset[NodeName]().union(*(first.nodes for first in found if first.is_a_part is is_a_part))
                for is_a_part in (False, True)
            )
            self._kept[key] = PlannedNodes(firmly, for_parts - firmly)
        return self._kept[key]


def _may_run(job: Job) -> bool:
    """Return whether nothing but nodes or a limit holds the waiting job up."""
    return job.reason in _WAITS_FOR_NODES or "Grp" in job.reason


def _place_in_order(first: FirstJob) -> tuple[int, int]:
    """Return the place of a job in Slurm's order."""
    return _order(first.job)


def _order(job: Job) -> tuple[int, int]:
    return -job.priority, job.id
