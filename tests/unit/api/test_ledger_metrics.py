"""Histograms of incidents: each figure once, when it becomes known."""

from dataclasses import replace
from itertools import pairwise

from prometheus_client import CollectorRegistry

from steward.api.metrics import LedgerMetrics
from steward.model.memory import Memory
from tests.builders.ledger import JOB, LAST, LOST, RETRIED, a_memory


def counts(registry: CollectorRegistry) -> dict[str, float]:
    names = ("detect_seconds", "decide_seconds", "mark_seconds", "resume_seconds", "first_step_seconds", "steps_redone")
    found = {name: registry.get_sample_value(f"steward_job_{name}_count", {"partition": "main"}) for name in names}
    return {name: count for name, count in found.items() if count}


def test_a_figure_counts_once_when_it_becomes_known() -> None:
    registry = CollectorRegistry()
    metrics = LedgerMetrics(registry)
    going = replace(RETRIED, first_step=None, ending=None, ended=None, culprits=frozenset(), detected=None)
    stages = [
        Memory(),
        Memory(ledger={JOB: (LOST,)}),
        Memory(ledger={JOB: (LOST, going)}),
        Memory(ledger={JOB: (LOST, replace(going, first_step=RETRIED.first_step))}),
        a_memory(),
    ]
    seen = []
    for before, now in pairwise(stages):
        metrics.watch(before, now)
        metrics.watch(now, now)
        seen.append(counts(registry))
    first = {"detect_seconds": 1, "decide_seconds": 1, "mark_seconds": 1, "steps_redone": 1}
    assert seen[0] == first
    assert seen[1] == first | {"resume_seconds": 1}
    assert seen[2] == first | {"resume_seconds": 1, "first_step_seconds": 1}
    assert seen[3] == seen[2] | {"decide_seconds": 2}
    assert registry.get_sample_value("steward_job_resume_seconds_sum", {"partition": "main"}) == 20.0


def test_a_head_that_starts_counts_nothing_of_what_it_remembers() -> None:
    registry = CollectorRegistry()
    LedgerMetrics(registry).watch(a_memory(), Memory(ledger={JOB: (LOST, RETRIED, LAST)}))
    assert counts(registry) == {}
