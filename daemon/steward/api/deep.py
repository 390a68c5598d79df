"""Deep checks as people read them."""

import math
from collections.abc import Mapping
from typing import Any

from steward.api.shapes import shape
from steward.model.deep import DeepRun, DeepState, Measure
from steward.model.ids import NodeName
from steward.model.order import CheckDeep, Refusal, RefusalKind
from steward.model.setting_types import expand_nodes
from steward.workflows.snapshot import Snapshot

Json = dict[str, Any]


def deeps_view(snapshot: Snapshot) -> list[Json]:
    """All remembered deep checks, open ones first, then the newest."""
    runs = sorted(snapshot.memory.deeps.values(), key=lambda run: (not run.is_open, -run.asked, run.id))
    return [_run_view(run, snapshot) for run in runs]


def deep_view(id: str, snapshot: Snapshot) -> Json | None:
    """One of them with its measures; None where there is none of this id."""
    run = snapshot.memory.deeps.get(id)
    if run is None:
        return None
    told = run.measures or tuple(one for name in sorted(run.nodes) for one in _told(run, name, snapshot))
    return {**_run_view(run, snapshot), "measures": [_measure_view(one) for one in told]}


def check_deep(who: str, said: Mapping[str, str]) -> CheckDeep:
    """The order of a body such as `{"nodes": "n[1-8]", "kinds": "InstanceStress"}`. Raises Refusal for what is no list
    of nodes."""
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
