"""The nodes that Slurm's backfill keeps for jobs that come first.

Slurm starts no other job there that would not be over by then: an eviction for such a job is in vain.
"""

from collections.abc import Callable, Iterable, Iterator

from steward.model.ids import JobId, NodeName
from steward.model.job import Job


class Plans:
    """The plans of Slurm's backfill, in Slurm's order of the jobs."""

    def __init__(self, jobs: Iterable[Job], now: float) -> None:
        self._now = now
        self._jobs = sorted((j for j in jobs if j.is_pending and j.planned and j.started), key=_order)

    def before(self, job: Job, gets_room: Callable[[JobId], bool]) -> Iterator[Job]:
        """Return the jobs of its partition that come before this one, start before its end, and get no room now.

        Jobs of other partitions do not count: it is not known whether they come first.
        """
        over = self._now + (job.time_limit_s if job.time_limit_s is not None else float("inf"))
        for first in self._jobs:
            if _order(first) >= _order(job):
                return
            leader, partitions = first.het_job_id or first.id, first.partitions
            if (first.started or over) < over and not gets_room(leader) and set(partitions) & set(job.partitions):
                yield first

    def kept_from(self, job: Job, gets_room: Callable[[JobId], bool]) -> frozenset[NodeName]:
        """Return the nodes on which Slurm does not start this job now."""
        if not self._jobs:
            return frozenset()
        return frozenset[NodeName]().union(*(first.planned for first in self.before(job, gets_room)))


def _order(job: Job) -> tuple[int, int]:
    return -job.priority, job.id
