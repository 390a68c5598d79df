"""The pages about checks, deep checks, trials of checks and lemons, each made from one snapshot."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.exceptions import HTTPException

from steward.api.shapes import shape
from steward.api.source import CheckBook
from steward.checks.catalogue import ListedCheck, mode_by, site_check
from steward.model.deep import DeepRun, DeepState, Measure
from steward.model.health import Finding
from steward.model.ids import NodeName
from steward.model.node_names import expand_nodes
from steward.model.observed import AgentView
from steward.model.order import CheckDeep, Refusal, RefusalKind
from steward.model.text import printable
from steward.policy.guards.lemons import Lemon, lemons, score_text
from steward.views.explain_health import CheckResults, check_results
from steward.workflows.snapshot import Snapshot

Json = dict[str, Any]
_MOST_NODES = 200
"""At most this many nodes are named in one answer; the counts include all nodes."""


def checks_page(book: CheckBook, node: str, snapshot: Snapshot) -> list[Json]:
    """Return every check over the cluster, or on one node if it is named. Raises HTTPException."""
    name = NodeName(node)
    if not name:
        return checks_view(book, snapshot)
    if name not in snapshot.seen.nodes and name not in snapshot.seen.agents:
        raise HTTPException(404, f"{printable(node, 200)} is not a node of this cluster: `steward nodes` lists them")
    return node_checks_view(book, name, snapshot)


def checks_view(book: CheckBook, snapshot: Snapshot) -> list[Json]:
    """Return every check with its results over the cluster; checks that only agents know come last."""
    results = check_results(snapshot.seen.agents)
    return [_with_results(one, results.get(one.id, CheckResults())) for one in _all(book, results)]


def node_checks_view(book: CheckBook, name: NodeName, snapshot: Snapshot) -> list[Json]:
    """Return every check with its result on one node; `outcome` is None if it has not run there."""
    view = snapshot.seen.agents.get(name)
    named = {*view.passed, *view.skipped, *(f.check for f in view.findings)} if view else set()
    passes_since = view.passes_since if view else {}
    return [_on_node(one, view, passes_since.get(one.id)) for one in _all(book, named)]


def _all(book: CheckBook, told: Iterable[str]) -> list[ListedCheck]:
    known = {one.id: one for one in book.listed}
    more = [check for check in sorted(told) if check not in known]
    return [*book.listed, *(_unlisted(check, known, book) for check in more)]


def _unlisted(check: str, known: dict[str, ListedCheck], book: CheckBook) -> ListedCheck:
    """Return the traits of a check that only agents know."""
    # A check of the kernel log has the traits of its family; any other unknown check is the site's own.
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
        mode_by=mode_by(check, book.limits),
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


def _on_node(check: ListedCheck, view: AgentView | None, passes_since: int | None) -> Json:
    finding = next((f for f in view.findings if f.check == check.id), None) if view else None
    outcome = finding.outcome.value if finding else _quiet_outcome(check.id, view)
    return {
        **shape(check),
        "outcome": outcome,
        "severity": finding.severity.value if finding and finding.is_bad else None,
        "text": finding.text if finding else "",
        "at": finding.at if finding else passes_since,
        "passed_at": (finding.passed_at or None) if finding else None,
        "good_since": (finding.good_since or None) if finding else None,
        "reported_at": view.reported_at if view else None,
    }


def _quiet_outcome(check: str, view: AgentView | None) -> str | None:
    if view is None:
        return None
    return "passed" if check in view.passed else "skipped" if check in view.skipped else None


# Trials: the versions of checks that may change.


def trials_view(snapshot: Snapshot) -> list[Json]:
    """Return every known version of each check that may change, with its trial, the newest version first."""
    found = sorted(snapshot.memory.trials.values(), key=lambda each: (each.check, -each.since, each.version))
    return [
        {
            "check": each.check,
            "version": each.version,
            "state": each.state.value,
            "since": each.since,
            "tried": len(each.nodes_tried),
            "failed": len(each.nodes_failed),
            "text": each.text,
        }
        for each in found
    ]


# Lemons: hardware that fails again and again.


def lemons_view(snapshot: Snapshot, now: float) -> list[Json]:
    """Return the lemons, the worst first, each with the arithmetic of its score."""
    return [_lemon_view(lemon) for lemon in lemons(snapshot.memory, len(snapshot.seen.nodes), now)]


def _lemon_view(lemon: Lemon) -> Json:
    return {**shape(lemon), "is_candidate": lemon.is_candidate, "arithmetic": score_text(lemon.parts)}


# Deep checks.


def deeps_view(snapshot: Snapshot) -> list[Json]:
    """Return all remembered deep checks: open ones first, then the newest."""
    runs = sorted(snapshot.memory.deeps.values(), key=lambda run: (not run.is_open, -run.asked, run.id))
    return [_run_view(run, snapshot) for run in runs]


def deep_page(id: str, snapshot: Snapshot) -> Json:
    """Return one deep check with its measures. Raises HTTPException if no deep check has this id."""
    run = snapshot.memory.deeps.get(id)
    if run is None:
        raise HTTPException(404, f"there is no deep check {printable(id, 200)}: `steward check list` shows them")
    told = run.measures or tuple(one for name in sorted(run.nodes) for one in _told(run, name, snapshot))
    return {**_run_view(run, snapshot), "measures": [_measure_view(one) for one in told]}


def check_deep(who: str, said: Mapping[str, str]) -> CheckDeep:
    """Return the order of a body such as `{"nodes": "n[1-8]", "kinds": "InstanceStress"}`.

    Raises Refusal if `nodes` is not a list of nodes.
    """
    try:
        nodes = expand_nodes(said.get("nodes", ""))
    except ValueError as error:
        raise Refusal(RefusalKind.VALIDATION, str(error)) from error
    kinds = tuple(word for word in said.get("kinds", "").split(",") if word)
    return CheckDeep(who=who, nodes=tuple(sorted(nodes)), kinds=kinds)


def _run_view(run: DeepRun, snapshot: Snapshot) -> Json:
    return {
        "id": run.id,
        "cause": run.cause.value,
        "who": run.who,
        "kinds": shape(run.kinds),
        "state": run.state.value,
        "asked": run.asked,
        "started": run.started,
        "ended": run.ended,
        "job": run.job,
        "nodes": {name: _node_view(run, name, snapshot) for name in sorted(run.nodes)},
    }


def _node_view(run: DeepRun, name: NodeName, snapshot: Snapshot) -> Json:
    result = run.results.get(name)
    return {
        "result": result.value if result else None,
        "why": run.why.get(name, ""),
        "progress": "" if result else _progress(run, name, snapshot),
    }


def _progress(run: DeepRun, name: NodeName, snapshot: Snapshot) -> str:
    if run.state is not DeepState.RUNNING:
        return str(run.state.value)
    view = snapshot.seen.agents.get(name)
    told = [report.progress for report in view.deep if report.run == run.token] if view else []
    return told[-1] if told and told[-1] else "running"


def _told(run: DeepRun, name: NodeName, snapshot: Snapshot) -> tuple[Measure, ...]:
    view = snapshot.seen.agents.get(name)
    return tuple(one for report in view.deep if report.run == run.token for one in report.measures) if view else ()


def _measure_view(measure: Measure) -> Json:
    view: Json = shape(measure)
    return {**view, "value": None if math.isnan(measure.value) else measure.value}
