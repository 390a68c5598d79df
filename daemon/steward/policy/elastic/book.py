"""What is remembered of elastic runs, while a plan is made."""

from dataclasses import replace
from typing import Any

from steward.model.elastic import ElasticRun, Replica, SizeChange
from steward.model.ids import JobId
from steward.policy.kept import Kept

CHANGES_KEPT = 64
KEPT_S = 86_400.0
"""A run that is over is remembered for so long."""


class ElasticBook(Kept[JobId, ElasticRun]):
    """The elastic runs by their base's job id. Every change goes through `keep` and `prune`."""

    __slots__ = ()

    def keep(self, run: ElasticRun) -> ElasticRun:
        """Remember the run as it is now."""
        if self.get(run.id) != run:
            self[run.id] = run
        return run

    def prune(self, now: float) -> None:
        """Forget the runs that ended `KEPT_S` seconds ago."""
        self.drop([id for id, run in self.items() if run.ended is not None and now >= run.ended + KEPT_S])

    def run_of(self, job: JobId) -> ElasticRun | None:
        """Return the run that this job is a replica of; None if it is of none."""
        for run in self.values():
            if any(replica.job == job for replica in run.replicas):
                return run
        return None


def counted(run: ElasticRun, now: float) -> ElasticRun:
    """With what it had beyond its base up to now."""
    beyond = max(len(run.members) - run.base, 0)
    return replace(run, node_seconds=run.node_seconds + beyond * max(now - run.counted, 0.0), counted=now)


def with_change(run: ElasticRun, change: SizeChange) -> ElasticRun:
    return replace(run, events=(*run.events, change)[-CHANGES_KEPT:], changes=run.changes + 1)


def last_change(run: ElasticRun, **fields: Any) -> ElasticRun:
    """With these fields of its last change."""
    return replace(run, events=(*run.events[:-1], replace(run.events[-1], **fields))) if run.events else run


def with_replica(run: ElasticRun, replica: Replica) -> ElasticRun:
    """The one of the same token in its place."""
    others = tuple(one for one in run.replicas if one.token != replica.token)
    return replace(run, replicas=(*others, replica))
