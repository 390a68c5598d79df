"""The page about checks: what each is, how it is set, and what it says now."""

from collections.abc import Iterable
from typing import Any

from steward.api.shapes import shape
from steward.api.source import CheckBook
from steward.checks.catalogue import ListedCheck, site_check
from steward.model.health import Finding
from steward.model.ids import NodeName
from steward.model.observed import AgentView
from steward.views.check_results import CheckResults, check_results
from steward.workflows.snapshot import Snapshot

Json = dict[str, Any]
_MOST_NODES = 200
"""Nodes that are named in one answer; the counts are of all."""


def checks_view(book: CheckBook, snapshot: Snapshot) -> list[Json]:
    """Every check with its results over the cluster; those that only agents know of come last."""
    results = check_results(snapshot.seen.agents)
    return [_with_results(one, results.get(one.id, CheckResults())) for one in _all(book, results)]


def node_checks_view(book: CheckBook, name: NodeName, snapshot: Snapshot) -> list[Json]:
    """Every check as it stands on one node; `outcome` None: it did not run there (yet)."""
    view = snapshot.seen.agents.get(name)
    named = {*view.passed, *view.skipped, *(f.check for f in view.findings)} if view else set()
    return [_on_node(one, view) for one in _all(book, named)]


def _all(book: CheckBook, told: Iterable[str]) -> list[ListedCheck]:
    known = {one.id: one for one in book.listed}
    more = [check for check in sorted(told) if check not in known]
    return [*book.listed, *(_unlisted(check, known, book) for check in more)]


def _unlisted(check: str, known: dict[str, ListedCheck], book: CheckBook) -> ListedCheck:
    """A line of the kernel log is of its family; anything else is the site's."""
    family = known.get(check.partition(".")[0])
    if family is None:
        return site_check(check, book.limits, book.interval_s)
    return ListedCheck(
        id=check,
        title=family.title,
        source=family.source,
        every_s=family.every_s,
        timeout_s=family.timeout_s,
        cost_ms=family.cost_ms,
        mode=book.mode_of(check),
        mode_by=family.mode_by,
        numbers=tuple(one for one in family.numbers if one.name.startswith(f"{check}.")),
    )


def _with_results(check: ListedCheck, results: CheckResults) -> Json:
    return {
        **shape(check),
        "passed": results.passed,
        "failed": len(results.failed),
        "unknown": len(results.unknown),
        "skipped": results.skipped,
        "failing": _nodes(results.failed),
        "unknown_on": _nodes(results.unknown),
    }


def _nodes(found: dict[NodeName, Finding]) -> list[Json]:
    named = sorted(found.items())[:_MOST_NODES]
    return [{"node": node, "severity": f.severity.value, "text": f.text, "at": f.at} for node, f in named]


def _on_node(check: ListedCheck, view: AgentView | None) -> Json:
    finding = next((f for f in view.findings if f.check == check.id), None) if view else None
    outcome = finding.outcome.value if finding else _quiet_outcome(check.id, view)
    return {
        **shape(check),
        "outcome": outcome,
        "severity": finding.severity.value if finding and finding.is_bad else None,
        "text": finding.text if finding else "",
        "at": finding.at if finding else None,
        "reported_at": view.reported_at if view else None,
    }


def _quiet_outcome(check: str, view: AgentView | None) -> str | None:
    if view is None:
        return None
    return "passed" if check in view.passed else "skipped" if check in view.skipped else None
