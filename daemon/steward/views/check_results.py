"""The results of each check over all nodes now: how many passed, and on which nodes it fails or cannot tell."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steward.model.health import Finding, Outcome
from steward.model.ids import NodeName
from steward.model.observed import AgentView


@dataclass(slots=True)
class CheckResults:
    """`failed` and `unknown`: node -> its finding. Nodes whose agent is not connected are left out."""

    passed: int = 0
    skipped: int = 0
    failed: dict[NodeName, Finding] = field(default_factory=dict)
    unknown: dict[NodeName, Finding] = field(default_factory=dict)


def check_results(agents: Mapping[NodeName, AgentView]) -> dict[str, CheckResults]:
    """By check id, sorted."""
    found: defaultdict[str, CheckResults] = defaultdict(CheckResults)
    views = [view for view in agents.values() if view.connected]
    for check, count in _named(view.passed for view in views):
        found[check].passed += count
    for check, count in _named(view.skipped for view in views):
        found[check].skipped += count
    for view in views:
        for finding in view.findings:
            _add(finding, view.node, found[finding.check])
    return dict(sorted(found.items()))


def _named(many: Iterable[frozenset[str]]) -> Iterable[tuple[str, int]]:
    """Most nodes pass the same checks: each set of names is gone through once."""
    return ((check, count) for names, count in Counter(many).items() for check in names)


def _add(finding: Finding, node: NodeName, results: CheckResults) -> None:
    match finding.outcome:
        case Outcome.FAILED:
            results.failed.setdefault(node, finding)
        case Outcome.UNKNOWN:
            results.unknown.setdefault(node, finding)
        case Outcome.PASSED:
            results.passed += 1
        case Outcome.SKIPPED:
            results.skipped += 1
