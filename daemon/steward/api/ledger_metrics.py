"""Prometheus: what incidents took of jobs' time, by partition."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from prometheus_client import CollectorRegistry, Histogram

from steward.model.ledger import Run
from steward.model.memory import Memory

_SECONDS = (0.1, 0.2, 0.5, 1, 2, 3, 5, 7.5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
_STEPS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)
_HISTOGRAMS = (
    ("detect_seconds", "From a fault that hit a job to its detection.", _SECONDS),
    ("decide_seconds", "From the detection of what hit a job to the decision about it.", _SECONDS),
    ("mark_seconds", "From a fault that hit a job to our mark on the node.", _SECONDS),
    ("resume_seconds", "From a fault that hit a job to its next run.", _SECONDS),
    ("first_step_seconds", "From a fault that hit a job to the first step of its next run.", _SECONDS),
    ("steps_redone", "Steps that a resumed job made again.", _STEPS),
)


class LedgerMetrics:
    """Fed by Metrics. Labels are partitions alone: jobs and users are without number."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._histograms = {
            name: Histogram(f"steward_job_{name}", text, ["partition"], buckets=buckets, registry=registry)
            for name, text, buckets in _HISTOGRAMS
        }

    def watch(self, before: Memory, now: Memory) -> None:
        """A cycle ended: what became known in it is counted, once."""
        for job, runs in now.ledger.items() if now.ledger is not before.ledger else ():
            old = before.ledger.get(job, ())
            if runs is old or runs == old:
                continue
            known = {(key, name) for key, name, _, _ in _figures(old)}
            for key, name, partition, value in _figures(runs):
                if (key, name) not in known:
                    self._histograms[name].labels(partition).observe(max(value, 0.0))


def _figures(runs: Sequence[Run]) -> Iterator[tuple[str, str, str, float]]:
    """Run, histogram, partition and value of all that is known."""
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
