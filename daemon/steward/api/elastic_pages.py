"""Elastic runs: as people read them, and what they ask of one."""

from collections.abc import Mapping
from typing import Any

from steward.model.elastic import ElasticRun, SizeChange
from steward.model.elastic_policy import ElasticPolicy
from steward.model.order import ChangeRun, Refusal, RefusalKind
from steward.policy.elastic.picture import picture, stretches_of
from steward.views.explain_elastic import run_lines
from steward.workflows.snapshot import Snapshot

Json = dict[str, Any]
_PAUSED = {"true": True, "false": False, "": None}


def runs_view(snapshot: Snapshot, site: ElasticPolicy) -> list[Json]:
    """All remembered runs, open ones first, then the newest."""
    runs = sorted(snapshot.memory.elastic.values(), key=lambda run: (not run.is_open, -run.begun, run.id))
    return [_run_view(run, site, snapshot.at) for run in runs]


def run_report(snapshot: Snapshot, run: ElasticRun) -> Json:
    """The run's size and throughput over time: every change, and a picture as lines of text."""
    words = (word for agent in snapshot.seen.agents.values() for word in agent.elastic if word.run == run.id)
    consumed = next((word.consumed for word in words if word.consumed is not None), run.consumed)
    stretches = stretches_of(run, snapshot.at, consumed)
    return {
        "base": run.base,
        "changes": run.changes,
        "node_hours_beyond_base": _beyond_s(run, snapshot.at) / 3600.0,
        "events": [_event_view(one) for one in run.events],
        "stretches": [
            {"began": one.began, "ended": one.ended, "nodes": one.nodes, "samples_per_s": one.rate}
            for one in stretches
            if one.ended > one.began
        ],
        "picture": picture(stretches),
    }


def change_run(who: str, said: Mapping[str, str]) -> ChangeRun:
    """The order of a body such as `{"run": "7", "size": "4"}`. Raises Refusal for what is no number."""
    run, size, paused = said.get("run", ""), said.get("size", ""), said.get("paused", "")
    if not _is_number(run) or (size and not _is_number(size)) or paused not in _PAUSED:
        raise Refusal(RefusalKind.VALIDATION, "run and size are whole numbers, paused is true or false")
    return ChangeRun(who=who, run=int(run), size=int(size) if size else None, paused=_PAUSED[paused])


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 10


def _run_view(run: ElasticRun, site: ElasticPolicy, now: float) -> Json:
    return {
        "run": run.id,
        "spec": run.spec,
        "base": run.base,
        "size": len(run.members),
        "phase": run.phase.value,
        "since": run.entered,
        "nodes": sorted(run.members),
        "replicas": [{"job": one.job, "nodes": one.nodes} for one in run.replicas],
        "wish": run.wish,
        "paused": run.paused,
        "generation": run.generation,
        "changes": run.changes,
        "node_hours_beyond_base": _beyond_s(run, now) / 3600.0,
        "events": [_event_view(one) for one in run.events],
        "lines": run_lines(run, site, now),
    }


def _beyond_s(run: ElasticRun, now: float) -> float:
    """Node-seconds that it had beyond its base."""
    return run.node_seconds + max(len(run.members) - run.base, 0) * max(now - run.counted, 0.0)


def _event_view(one: SizeChange) -> Json:
    return {
        "at": one.at,
        "before": one.before,
        "after": one.after,
        "cause": one.cause.value,
        "why": one.why,
        "done": one.done,
        "saved_s": one.saved_s,
        "up_s": one.up_s,
    }
