"""The elastic runs in memory, while a plan is made."""

from dataclasses import replace
from typing import Any

from steward.model.elastic import ElasticRun, Replica, SizeChange
from steward.model.ids import JobId
from steward.policy.kept import Kept

CHANGES_KEPT = 64
"""How many changes of size are remembered for a run."""
KEPT_S = 86_400.0
"""The time for which an ended run is remembered."""


class ElasticBook(Kept[JobId, ElasticRun]):
    """The elastic runs in memory, by the id of the base job; only `keep` and `prune` change them."""

    __slots__ = ()

    def keep(self, run: ElasticRun) -> ElasticRun:
        """Store the run if it changed, and return it."""
        if self.get(run.id) != run:
            self[run.id] = run
        return run

    def prune(self, now: float) -> None:
        """Forget the runs that ended `KEPT_S` ago or earlier."""
        self.drop([id for id, run in self.items() if run.ended is not None and now >= run.ended + KEPT_S])

    def run_of(self, job: JobId) -> ElasticRun | None:
        """Return the run of a replica job; None if there is none."""
        for run in self.values():
            if any(replica.job == job for replica in run.replicas):
                return run
        return None


def counted(run: ElasticRun, now: float) -> ElasticRun:
    """Return the run with its node-seconds beyond the base size added up to `now`."""
    beyond = max(len(run.members) - run.base, 0)
    return replace(run, node_seconds=run.node_seconds + beyond * max(now - run.counted, 0.0), counted=now)


def with_change(run: ElasticRun, change: SizeChange) -> ElasticRun:
    """Return the run with one more change of size in its history."""
    return replace(run, events=(*run.events, change)[-CHANGES_KEPT:], changes=run.changes + 1)


def last_change(run: ElasticRun, **fields: Any) -> ElasticRun:
    """Return the run with these fields in its last change of size."""
    return replace(run, events=(*run.events[:-1], replace(run.events[-1], **fields))) if run.events else run


def with_replica(run: ElasticRun, replica: Replica) -> ElasticRun:
    """Return the run with this replica in place of the one with the same token."""
    others = tuple(one for one in run.replicas if one.token != replica.token)
    return replace(run, replicas=(*others, replica))
