"""Prometheus: how elastic runs change their size, and what they have of idle nodes."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from steward.model.elastic import Cause, SizeChange
from steward.model.memory import Memory

_SECONDS = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200)


class ElasticMetrics:
    """Fed by Metrics. Labels are causes alone: runs are without number."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._runs = Gauge("steward_elastic_runs", "Elastic runs that are not over.", registry=registry)
        self._beyond = Gauge(
            "steward_elastic_borrowed_nodes", "Nodes that elastic runs have beyond their bases.", registry=registry
        )
        self._changes = Counter("steward_elastic_changes", "Changes of size begun.", ["cause"], registry=registry)
        self._pause = Histogram(
            "steward_elastic_pause_seconds",
            "From the wish for another size to the first step at it.",
            ["cause"],
            buckets=_SECONDS,
            registry=registry,
        )

    def watch(self, before: Memory, now: Memory) -> None:
        """A cycle ended: what became known in it is counted, once."""
        if now.elastic is before.elastic:
            return
        is_open = [run for run in now.elastic.values() if run.is_open]
        self._runs.set(len(is_open))
        self._beyond.set(sum(max(len(run.members) - run.base, 0) for run in is_open))
        for id, run in now.elastic.items():
            old = before.elastic.get(id)
            if run is old:
                continue
            known = {change.at: change for change in old.events} if old is not None else {}
            for change in run.events:
                self._count(change, known.get(change.at))

    def _count(self, change: SizeChange, old: SizeChange | None) -> None:
        if change.cause is Cause.START:
            return
        if old is None:
            self._changes.labels(change.cause.value).inc()
        if change.done is not None and (old is None or old.done is None):
            self._pause.labels(change.cause.value).observe(max(change.done - change.at, 0.0))
