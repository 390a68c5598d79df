"""Prometheus metrics: durations of repairs and resumes, actions by outcome, and the state of the cluster now."""

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from steward.api.health_metrics import HealthMetrics
from steward.api.job_metrics import JobMetrics
from steward.api.lead_metrics import lead_text
from steward.model.action import AnswerAsk
from steward.model.case import Case
from steward.model.desired import Desired
from steward.model.elastic import Cause, SizeChange
from steward.model.leadership import Heads
from steward.model.ledger import Run
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.resume import Attempt
from steward.model.slot import Hitch
from steward.policy.facts.serving import current_counts
from steward.workflows.snapshot import Snapshot

FIGURES = "/metrics"
"""The path of the metrics: each head has its own."""
_QUICK = (0.01, 0.02, 0.03, 0.06, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_FAULT = (0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 7.5, 10, 20, 30, 60, 120, 300)
_REPAIR = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 2700, 5400, 10800)
_TIMES = (
    ("detected", "detect", "From the fault to its detection.", _FAULT),
    ("marked", "mark", "From the fault to our mark on the node.", _FAULT),
    ("replaced", "replaced", "From the fault to the new instance.", _REPAIR),
    ("returned", "returned", "From the fault to the node's return to service.", _REPAIR),
)
_LOST_S = (0.1, 0.2, 0.5, 1, 2, 3, 5, 7.5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
_STEPS_LOST = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)
_HISTOGRAMS = (
    ("detect_seconds", "From a fault that hit a job to its detection.", _LOST_S),
    ("decide_seconds", "From the detection of what hit a job to the decision about it.", _LOST_S),
    ("mark_seconds", "From a fault that hit a job to our mark on the node.", _LOST_S),
    ("resume_seconds", "From a fault that hit a job to its next run.", _LOST_S),
    ("first_step_seconds", "From a fault that hit a job to the first step of its next run.", _LOST_S),
    ("steps_redone", "Steps that a resumed job made again.", _STEPS_LOST),
)
_CHANGE_S = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200)


class Metrics:
    """The head's metrics: updated by the cycle (`watch`, `count`), read over HTTP."""

    def __init__(self, want: Desired | None = None, set_aside_at: Callable[[], float] = lambda: 0.0) -> None:
        """Take `set_aside_at`: it returns, at each scrape, when a damaged store was set aside (0: never)."""
        self._set_aside_at = set_aside_at
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
        self._standstill = Gauge(
            "steward_standstill_seconds",
            "For how long nothing is decided; 0 while the head decides.",
            registry=registry,
        )
        self._set_aside = Gauge(
            "steward_store_set_aside_timestamp_seconds",
            "When the damaged store was last set aside and a new one begun, in Unix seconds; 0: no such file is there.",
            registry=registry,
        )
        self._groups = GroupMetrics(registry)
        self._ledger = LedgerMetrics(registry)
        self._elastic = ElasticMetrics(registry)
        self._health = HealthMetrics(registry, want or Desired())
        self._jobs = JobMetrics(registry, want or Desired())

    def text(self, standstill_s: float = 0.0, heads: Heads | None = None) -> bytes:
        """Return all metrics in Prometheus's text format; of a head that follows, what concerns the lead."""
        if heads is not None and not heads.is_mine:
            return lead_text(heads)
        self._standstill.set(standstill_s)
        self._set_aside.set(self._set_aside_at())
        return generate_latest(self._registry) + (lead_text(heads) if heads is not None else b"")

    def count(self, kind: str, outcome: str) -> None:
        """Count an action that ended."""
        self._actions.labels(kind, outcome).inc()

    def watch(self, snapshot: Snapshot) -> None:
        """Record the figures of a cycle that ended."""
        self._cycle.observe(snapshot.phases.total_s)
        if snapshot.phases.bell_s is not None:
            self._bell.observe(snapshot.phases.bell_s)
        self._note_repairs(snapshot.before, snapshot.memory)
        self._note_resumes(snapshot.before, snapshot.memory)
        self._note_answers(snapshot)
        self._groups.watch(snapshot.before, snapshot.memory, snapshot.seen)
        self._ledger.watch(snapshot.before, snapshot.memory)
        self._elastic.watch(snapshot.before, snapshot.memory)
        self._health.watch(snapshot)
        self._jobs.watch(snapshot)

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
    """Return when the latest fault that the attempt blames happened; the time of the decision if there is none."""
    blamed = [case for case in memory.cases.values() if _explains(case, attempt)]
    return max((case.fault_at or attempt.at for case in blamed), default=attempt.at)


def _explains(case: Case, attempt: Attempt) -> bool:
    return case.node in attempt.culprits and case.fault_at is not None and case.fault_at <= attempt.at


class GroupMetrics:
    """Metrics of instance groups, updated by Metrics. A deleted group leaves no series."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counts = {
            word: Gauge(f"steward_group_{word}", f"{text}, by instance group.", ["group"], registry=registry)
            for word, text in (
                ("current", "Nodes in service"),
                ("target", "Nodes wanted"),
                ("minimum", "Nodes without which the partition stays closed"),
            )
        }
        self._slots = Gauge("steward_slots", "Slots of API groups by step.", ["group", "step"], registry=registry)
        self._failures = Counter(
            "steward_slot_failures",
            "Failed tries to bring a node up, by reason.",
            ["group", "hitch"],
            registry=registry,
        )

    def watch(self, before: Memory, now: Memory, seen: Observed) -> None:
        """Record the counts, the slots and the failures of a cycle that ended."""
        self._note_counts(now, seen)
        self._note_slots(now)
        self._note_failures(before, now)

    def _note_counts(self, now: Memory, seen: Observed) -> None:
        current = current_counts(now, seen)
        for gauge in self._counts.values():
            gauge.clear()
        for name, group in now.groups.items():
            self._counts["current"].labels(name).set(current.get(name, 0))
            self._counts["target"].labels(name).set(group.goal.target)
            self._counts["minimum"].labels(name).set(group.goal.minimum)

    def _note_slots(self, now: Memory) -> None:
        self._slots.clear()
        for (group, step), count in Tally((slot.group, slot.step.value) for slot in now.slots.values()).items():
            self._slots.labels(group, step).set(count)

    def _note_failures(self, before: Memory, now: Memory) -> None:
        """Count the new failed tries; all count under the reason of the last one."""
        for node, slot in now.slots.items():
            old = before.slots.get(node)
            if slot is old or slot.hitch is Hitch.NONE:
                continue
            tries = old.tries if old is not None and old.logical == slot.logical else 0
            if slot.tries > tries:
                self._failures.labels(slot.group, slot.hitch.value).inc(slot.tries - tries)


class LedgerMetrics:
    """Metrics of the time that faults cost jobs, updated by Metrics.

    Labels are partitions only, because the number of jobs and users has no bound.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._histograms = {
            name: Histogram(f"steward_job_{name}", text, ["partition"], buckets=buckets, registry=registry)
            for name, text, buckets in _HISTOGRAMS
        }

    def watch(self, before: Memory, now: Memory) -> None:
        """Observe once each the figures that became known in this cycle."""
        for job, runs in now.ledger.items() if now.ledger is not before.ledger else ():
            old = before.ledger.get(job, ())
            if runs is old or runs == old:
                continue
            known = {(key, name) for key, name, _, _ in _figures(old)}
            for key, name, partition, value in _figures(runs):
                if (key, name) not in known:
                    self._histograms[name].labels(partition).observe(max(value, 0.0))


def _figures(runs: Sequence[Run]) -> Iterator[tuple[str, str, str, float]]:
    """Yield the run's key, histogram, partition and value of each known figure."""
    for run, follower in [*pairwise(runs), *((run, None) for run in runs[-1:])]:
        if not run.was_hit:
            continue
        spans = {
            "detect_seconds": (run.fault, run.detected),
            "decide_seconds": (run.detected, run.decided),
            "mark_seconds": (run.fault, run.marked),
            "resume_seconds": (run.fault, follower.started if follower else None),
            "first_step_seconds": (run.fault, follower.first_step if follower else None),
        }
        for name, (begin, end) in spans.items():
            if begin is not None and end is not None:
                yield run.key, name, run.partition, end - begin
        if run.steps_redone is not None:
            yield run.key, "steps_redone", run.partition, run.steps_redone


class ElasticMetrics:
    """Metrics of elastic runs, updated by Metrics. Labels are causes only, because the number of runs has no bound."""

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
            buckets=_CHANGE_S,
            registry=registry,
        )

    def watch(self, before: Memory, now: Memory) -> None:
        """Count the changes of size that began or ended in this cycle, once each."""
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
