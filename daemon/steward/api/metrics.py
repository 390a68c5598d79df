"""Prometheus: how long repairs and resumes take, what was done, and what the cluster looks like now."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from steward.api.elastic_metrics import ElasticMetrics
from steward.api.group_metrics import GroupMetrics
from steward.api.health_metrics import HealthMetrics
from steward.api.ledger_metrics import LedgerMetrics
from steward.api.site_metrics import SiteMetrics
from steward.model.action import AnswerAsk
from steward.model.case import Case
from steward.model.desired import Desired
from steward.model.memory import Memory
from steward.model.resume import Attempt
from steward.workflows.snapshot import Snapshot

_QUICK = (0.01, 0.02, 0.03, 0.06, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_FAULT = (0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 7.5, 10, 20, 30, 60, 120, 300)
_REPAIR = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 2700, 5400, 10800)
_TIMES = (
    ("detected", "detect", "From the fault to its detection.", _FAULT),
    ("marked", "mark", "From the fault to our mark on the node.", _FAULT),
    ("replaced", "replaced", "From the fault to the new instance.", _REPAIR),
    ("returned", "returned", "From the fault to the node's return to service.", _REPAIR),
)


class Metrics:
    """Fed by the cycle (`watch`, `count`); read by HTTP."""

    def __init__(self, want: Desired | None = None) -> None:
        self._registry = registry = CollectorRegistry()
        self._times = {
            field: Histogram(f"steward_{name}_seconds", text, buckets=buckets, registry=registry)
            for field, name, text, buckets in _TIMES
        }
        self._running = Histogram(
            "steward_running_seconds", "From the fault to the job's running again.", buckets=_FAULT, registry=registry
        )
        self._answer = Histogram(
            "steward_answer_seconds", "From a shim's question to its answer.", buckets=_QUICK, registry=registry
        )
        self._cycle = Histogram("steward_cycle_seconds", "One whole cycle.", buckets=_QUICK, registry=registry)
        self._bell = Histogram(
            "steward_bell_seconds", "From an event to the end of its cycle.", buckets=_QUICK, registry=registry
        )
        self._actions = Counter(
            "steward_actions", "Actions by kind and outcome.", ["kind", "outcome"], registry=registry
        )
        self._site = SiteMetrics(registry)
        self._groups = GroupMetrics(registry)
        self._ledger = LedgerMetrics(registry)
        self._elastic = ElasticMetrics(registry)
        self._health = HealthMetrics(registry, want or Desired())

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self._registry)

    def count(self, kind: str, outcome: str) -> None:
        """An action ended."""
        self._actions.labels(kind, outcome).inc()

    def watch(self, snapshot: Snapshot) -> None:
        """A cycle ended."""
        self._cycle.observe(snapshot.phases.total_s)
        if snapshot.phases.bell_s is not None:
            self._bell.observe(snapshot.phases.bell_s)
        self._note_repairs(snapshot.before, snapshot.memory)
        self._note_resumes(snapshot.before, snapshot.memory)
        self._note_answers(snapshot)
        self._site.watch(snapshot)
        self._groups.watch(snapshot.before, snapshot.memory, snapshot.seen)
        self._ledger.watch(snapshot.before, snapshot.memory)
        self._elastic.watch(snapshot.before, snapshot.memory)
        self._health.watch(snapshot)

    def _note_repairs(self, before: Memory, now: Memory) -> None:
        for key, case in now.cases.items() if now.cases is not before.cases else ():
            old = before.cases.get(key)
            if case is old or case.fault_at is None:
                continue
            for field, histogram in self._times.items():
                reached = getattr(case, field)
                if reached is not None and (old is None or getattr(old, field) is None):
                    histogram.observe(max(reached - case.fault_at, 0.0))

    def _note_resumes(self, before: Memory, now: Memory) -> None:
        for key, job in now.jobs.items() if now.jobs is not before.jobs else ():
            old = before.jobs.get(key)
            if job is old or not job.attempts or job.attempts[-1].running is None:
                continue
            if old is None or not old.attempts or old.attempts[-1].running is None:
                last = job.attempts[-1]
                self._running.observe(max((last.running or 0.0) - _fault_of(last, now), 0.0))

    def _note_answers(self, snapshot: Snapshot) -> None:
        asked = {ask.id: ask.at for ask in snapshot.seen.asks}
        for action in snapshot.plan.actions:
            if isinstance(action, AnswerAsk) and action.ask in asked:
                self._answer.observe(max(snapshot.at + snapshot.phases.total_s - asked[action.ask], 0.0))


def _fault_of(attempt: Attempt, memory: Memory) -> float:
    """When the node last broke that the attempt blames; the decision's own time where none is blamed."""
    blamed = [case for case in memory.cases.values() if _explains(case, attempt)]
    return max((case.fault_at or attempt.at for case in blamed), default=attempt.at)


def _explains(case: Case, attempt: Attempt) -> bool:
    return case.node in attempt.culprits and case.fault_at is not None and case.fault_at <= attempt.at
