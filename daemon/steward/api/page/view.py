"""The content of the status page, from one snapshot, in the words of the JSON pages; and times, signs and node lists as
the page writes them."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from steward.api.shapes import shape
from steward.api.source import Source
from steward.api.views import cases_view, in_order, natural, nodes_of, status_view, user_name, verdicts, views_of
from steward.model.ids import JobId, NodeName
from steward.model.ledger import Phase, Sums
from steward.model.node_names import fold
from steward.model.resume import JobMemory
from steward.model.text import PAUSED, REPORT_ONLY
from steward.ports import PortError
from steward.views.node_verdict import NodeVerdict, Word
from steward.views.report import timeline
from steward.workflows.snapshot import Snapshot

SIGNS: Mapping[str, str] = MappingProxyType(
    {
        Word.FINE.value: "✓",
        Word.SUSPECT.value: "?",
        Word.DEGRADED.value: "!",
        Word.LOST.value: "✕",
        Word.IN_REPAIR.value: "↻",
        Word.IN_DEEP_CHECK.value: "◎",
        Word.HELD.value: "■",
        Word.FOREIGN.value: "▲",
        Word.REPORT_ONLY.value: "~",
        Word.UNWATCHED.value: "–",
    }
)
"""A node's verdict for those who do not tell colours apart."""
Json = dict[str, Any]
_MOST_CELLS, _MOST_ROWS, _MOST_JOBS, _MOST_ACTIONS, _LAST_EVENTS, _CLOSED = 1500, 200, 40, 100, 25, 10
_WIDTH = 1000.0
"""The width of a timeline, in its own units."""


def page_view(source: Source, snapshot: Snapshot, actions: list[Json], now: float) -> Json:
    """Everything that the template names."""
    status, cases, said = status_view(source, snapshot), cases_view(snapshot), verdicts(source, snapshot)
    names = sorted((name for name, verdict in said.items() if verdict.word is not Word.FINE), key=natural)
    wrong = views_of(names[:_MOST_CELLS], said, source, snapshot)
    return {
        "now": now,
        "status": status,
        "alerts": _alerts(status, source.stands()),
        **_grid(said, wrong, source, snapshot),
        "wrong": wrong[:_MOST_ROWS],
        "more_wrong": max(len(names) - _MOST_ROWS, 0),
        "cases": [case for case in cases if case["open"]][:_MOST_ROWS],
        "closed": [case for case in cases if not case["open"]][:_CLOSED],
        "incidents": [{**one, "nodes": fold(one["nodes"])} for one in status["incidents"]],
        "breakers": status["breakers"],
        "jobs": _jobs(snapshot, now),
        "groups": status["groups"],
        "gates": [shape(gate) for _, gate in sorted(snapshot.memory.gates.items())],
        "actions": [_action(action) for action in actions[:_MOST_ACTIONS]],
        "more_actions": max(len(actions) - _MOST_ACTIONS, 0),
        "events": _events(source),
    }


def _events(source: Source) -> list[Json]:
    """The last ones, newest first; none where the store cannot be read: the page is needed most then."""
    try:
        return [shape(event) for _, event in reversed(source.store.events(limit=_LAST_EVENTS))]
    except PortError:
        return []


def _alerts(status: Json, stands: str) -> list[Json]:
    found = []
    if stands:
        text = f"{stands[0].upper()}{stands[1:]}. What is shown here is the last picture before that."
        found.append({"level": "error", "text": text})
    if status["slurm"] != "fresh":
        found.append({"level": "error", "text": "Slurm cannot be read now: nothing is decided on what is shown here."})
    if status["paused"]:
        found.append({"level": "warning", "text": PAUSED})
    if not status["acts"]:
        found.append({"level": "warning", "text": REPORT_ONLY})
    if not status["resumes"]:
        found.append({"level": "warning", "text": "Resuming is off (resume.enabled = false): no job is brought back."})
    for one in status["cases_waiting"]:
        text = f"The repair of {one['node']} waits for your approval: `steward approve {one['case']}`."
        found.append({"level": "warning", "text": text})
    return found


def _grid(said: Mapping[NodeName, NodeVerdict], wrong: list[Json], source: Source, snapshot: Snapshot) -> Json:
    """A cell a node. Of very many nodes only those that are not fine have one; the others are a folded list."""
    is_all = len(said) <= _MOST_CELLS
    counts = Counter(verdict.word.value for verdict in said.values())
    fine = [] if is_all else [name for name, verdict in said.items() if verdict.word is Word.FINE]
    return {
        "cells": views_of(sorted(said, key=natural), said, source, snapshot) if is_all else wrong,
        "folded_fine": fold(fine)[:2000],
        "fine_count": len(fine),
        "legend": [{"word": word, "count": counts[word]} for word in SIGNS if counts[word]],
    }


def _jobs(snapshot: Snapshot, now: float) -> list[Json]:
    return [_job(job, snapshot, now) for job in in_order(snapshot.memory)[:_MOST_JOBS]]


def _job(job: JobMemory, snapshot: Snapshot, now: float) -> Json:
    known = snapshot.seen.jobs.get(job.id)
    runs = snapshot.memory.ledger.get(job.id, ())
    last = job.last_attempt
    nodes = nodes_of(known, snapshot.memory) if known is not None and known.nodes else job.nodes
    return {
        "id": job.id,
        "name": known.name if known else (runs[-1].name if runs else ""),
        "user": user_name(job.uid),
        "state": known.state.value if known and job.ended is None else (job.end_text or "ended"),
        "mode": job.mode.text,
        "resumes": job.resumes,
        "nodes": fold(nodes),
        "excluded": fold(job.excluded),
        "step": runs[-1].step if runs else None,
        "last": {"at": last.at, "decision": last.decision.value, "why": last.why.text} if last else None,
        **_timeline(job.id, job.ended, snapshot, now),
    }


def _timeline(id: JobId, ended: float | None, snapshot: Snapshot, now: float) -> Json:
    """A job's time as stretches of a bar, and in words."""
    found = timeline(snapshot.memory.ledger.get(id, ()), ended or now)
    if not found:
        return {"bars": [], "spent": ""}
    begin, whole = found[0].begin, max(found[-1].end - found[0].begin, 1e-3)
    spent = Sums.of(found).seconds
    bars = [
        {
            "phase": one.phase.value,
            "x": round((one.begin - begin) / whole * _WIDTH, 1),
            "width": round(max(one.seconds / whole * _WIDTH, 1.5), 1),
            "text": f"{one.phase.value}: {one.seconds:.1f} s on {one.nodes} nodes",
        }
        for one in found
    ]
    words = ", ".join(f"{phase.value} {spent[phase]:.0f} s" for phase in Phase if spent[phase] >= 0.5)
    return {"bars": bars, "spent": words}


def _action(action: Json) -> Json:
    slot = action.get("slot") or {}
    names = [str(action[key]) for key in ("node", "job") if action.get(key) is not None]
    about = names[0] if names else str(slot.get("node") or fold(action.get("nodes", [])))
    return {"action": action["action"], "about": about, "why": action["why"]["text"], "rule": action["why"]["rule"]}


# Times, signs and node lists as the page writes them.


def css(word: str) -> str:
    """A verdict or a level as a class."""
    return word.replace(" ", "-")


def clock(at: float) -> str:
    """Local time with its zone."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def age(seconds: float) -> str:
    """`12 s`, `3 min`, `5 h`, `2 d`."""
    seconds = max(seconds, 0.0)
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def ago(at: float | None, now: float) -> Markup:
    """How long ago, which the page's script keeps true; the moment itself as title."""
    if not at:
        return Markup("–")
    moment = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(moment, clock(at), age(now - at))


FILTERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"css": css, "clock": clock, "ago": ago, "folded": fold, "sign": lambda word: SIGNS.get(word, "?")}
)
