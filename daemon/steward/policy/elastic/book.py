"""The part of memory that is about elastic runs: one object reads and writes it."""

from dataclasses import replace
from typing import Any

from steward.model.elastic import ElasticRun, Replica, SizeChange
from steward.model.ids import JobId
from steward.model.memory import Memory
from steward.policy.kept import Kept

CHANGES_KEPT = 64
KEPT_S = 86_400.0
"""A run that is over is remembered for so long."""


class ElasticBook:
    """The elastic runs' part of memory, to be changed while a plan is made."""

    def __init__(self, memory: Memory) -> None:
        self.runs = Kept(memory.elastic)

    def keep(self, run: ElasticRun) -> ElasticRun:
        """Remember the run; one that is as before changes nothing."""
        if self.runs.get(run.id) != run:
            self.runs[run.id] = run
        return run

    def prune(self, now: float) -> None:
        self.runs.drop([id for id, run in self.runs.items() if run.ended is not None and now >= run.ended + KEPT_S])

    def run_of(self, job: JobId) -> ElasticRun | None:
        """The run that a replica job is of."""
        for run in self.runs.values():
            if any(replica.job == job for replica in run.replicas):
                return run
        return None

    def stored(self) -> dict[str, Any]:
        """The fields of Memory."""
        return {"elastic": self.runs.frozen()}


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
