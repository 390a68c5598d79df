"""Prometheus metrics of the present: nodes, checks, verdicts, breakers, incidents, deep checks, results of repairs.

The figures are computed at each scrape from the last snapshot: a cycle does not pay for them.
"""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from steward.model.case import Case, CaseStep
from steward.model.deep import DeepState
from steward.model.desired import Desired
from steward.model.health import Severity
from steward.model.memory import Memory
from steward.model.node import Node
from steward.model.observed import Observed
from steward.policy.draft import Draft
from steward.views.explain_health import check_results
from steward.views.node_verdict import Word, node_verdicts
from steward.workflows.snapshot import Snapshot

# Names are bounded so that agents cannot create series without limit.
MOST_NAMES = 400
"""At most this many checks, and as many breakers, have series of their own; all others share `other`."""
_OTHER = "other"


_IDLE = (
    ("INVALID_REG", "invalid"),
    ("INVALID", "invalid"),
    ("MAINTENANCE", "maint"),
    ("REBOOT_ISSUED", "reboot"),
    ("POWERING_UP", "powering_up"),
    ("POWERING_DOWN", "powering_down"),
    ("POWER_DOWN", "powering_down"),
    ("POWERED_DOWN", "powered_down"),
    ("RESERVED", "reserved"),
)
"""Slurm's flags of a node that would otherwise count as idle, with the words for them; the first that it has counts."""


def node_state(node: Node) -> str:
    """Return the node's state in one word, mostly as `sinfo` has it: what keeps jobs away counts before `idle`."""
    if node.is_down:
        return "down"
    if node.is_drain:
        return "draining" if node.is_busy else "drained"
    idle = not node.is_busy
    return next((word for flag, word in _IDLE if idle and flag in node.flags), node.base.value.lower())


class HealthMetrics(Collector):
    """Metrics of the cluster's health, updated by Metrics."""

    def __init__(self, registry: CollectorRegistry, want: Desired) -> None:
        self._want = want
        self._latest: Snapshot | None = None
        self._repairs = Counter(
            "steward_repairs",
            "Repairs that ended, by the last rung and how: returned, stood_in, held (a person must act), called_off.",
            ["rung", "result"],
            registry=registry,
        )
        registry.register(self)

    def watch(self, snapshot: Snapshot) -> None:
        """Count the repairs that ended in this cycle."""
        self._latest = snapshot
        if snapshot.memory.cases is snapshot.before.cases:
            return
        for key, case in snapshot.memory.cases.items():
            old = snapshot.before.cases.get(key)
            if case is not old and (result := _result(old, case)):
                self._repairs.labels(case.rung.value, result).inc()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        snapshot = self._latest
        seen, memory = (snapshot.seen, snapshot.memory) if snapshot else (Observed(at=0.0), Memory())
        yield from _site(seen, memory)
        yield from _checks(seen)
        yield _verdicts(seen, memory, self._want, snapshot.at if snapshot else 0.0)
        tripped = _bounded(memory.breakers)
        yield _gauge("steward_breaker_tripped", "1 for each tripped breaker.", ["scope"], _same(tripped.values()))
        states = Tally(run.state for run in memory.deeps.values())
        runs: dict[tuple[str, ...], int] = {(state.value,): states[state] for state in DeepState}
        yield _gauge("steward_deep_runs", "Deep checks that are remembered, by state.", ["state"], runs)
        open_ones = sum(one.over is None for one in memory.incidents.values())
        yield GaugeMetricFamily("steward_incidents_open", "Faults that many nodes have at once.", value=open_ones)


def _result(old: Case | None, now: Case) -> str:
    """Return how the repair ended in this cycle; empty if it did not end or was only a suspicion."""
    was = old.step if old is not None else CaseStep.SUSPECT
    if now.step is was:
        return ""
    if now.step is CaseStep.HELD:
        return "stood_in" if now.is_stood_in else "held"
    if now.step is not CaseStep.CLOSED or was in (CaseStep.SUSPECT, CaseStep.HELD):
        return ""
    return "returned" if now.returned is not None else "called_off"


def _site(seen: Observed, memory: Memory) -> Iterator[GaugeMetricFamily]:
    states: dict[tuple[str, ...], int] = {(s,): n for s, n in Tally(map(node_state, seen.nodes.values())).items()}
    yield _gauge("steward_nodes", "Nodes by state.", ["state"], states)
    cases = sum(case.is_open for case in memory.cases.values())
    yield GaugeMetricFamily("steward_open_cases", "Repairs that are not closed.", value=cases)
    agents = sum(view.connected for view in seen.agents.values())
    yield GaugeMetricFamily("steward_agents_connected", "Agents that are connected now.", value=agents)
    yield GaugeMetricFamily("steward_paused", "1 while all actions are paused.", value=memory.paused)


def _checks(seen: Observed) -> Iterator[GaugeMetricFamily]:
    results = check_results(seen.agents)
    labels = _bounded(results)
    outcomes: Tally[tuple[str, ...]] = Tally()
    severities: Tally[tuple[str, ...]] = Tally()
    for check, found in results.items():
        name = labels[check]
        counts = (len(found.failed), len(found.unknown))
        for outcome, count in zip(
            ("passed", "failed", "unknown", "skipped"), (found.passed, *counts, found.skipped), strict=True
        ):
            outcomes[name, outcome] += count
        severities.update((name, finding.severity.value) for finding in found.failed.values())
    yield _gauge("steward_check_results", "Nodes by check and outcome.", ["check", "outcome"], outcomes)
    for check in labels.values():
        severities.update({(check, severity.value): 0 for severity in Severity})
    yield _gauge("steward_findings", "Nodes on which a check fails, by severity.", ["check", "severity"], severities)


def _verdicts(seen: Observed, memory: Memory, want: Desired, now: float) -> GaugeMetricFamily:
    said = Tally(each.word for each in node_verdicts(Draft(seen, want, memory, now)).values())
    counts: dict[tuple[str, ...], int] = {(word.value,): said[word] for word in Word}
    return _gauge("steward_node_verdicts", "Nodes by verdict, as `steward nodes` tells it.", ["verdict"], counts)


def _bounded(names: Iterable[str]) -> dict[str, str]:
    """Return the label of each name: the name itself, or `other` beyond `MOST_NAMES`."""
    # sorted, so that the same names keep their labels
    ordered = sorted(names)
    return {name: name if place < MOST_NAMES else _OTHER for place, name in enumerate(ordered)}


def _same(names: Iterable[str]) -> dict[tuple[str, ...], int]:
    return {(name,): 1 for name in names}


def _gauge(name: str, text: str, labels: list[str], values: Mapping[tuple[str, ...], int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(list(key), value)
    return family
