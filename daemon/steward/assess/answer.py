"""The assessment as one mapping: the JSON, of which the text and the page are made."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .costs import WAYS, WEEK_S, costs_by, costs_by_kind, week_of
from .estimate import Assumption, Interval, draws, medians
from .history import KINDS, LAUNCH, LOST, PastJobs
from .lemons import NodeRecord, node_records
from .outages import CAUSES
from .savings import features, savings

FORMAT = 1
"""Counts up when a field changes its meaning. Fields may be added at any time."""
_MOST_ROWS = 200
_HOUR = 3600.0


def answer(
    past: PastJobs, assumptions: Mapping[str, Assumption], per_node_hour: float | None, gaps: list[str]
) -> dict[str, Any]:
    """Return everything that the assessment found. `gaps`: what could not be read, in sentences."""
    site = past.site
    middle, drawn = medians(assumptions), draws(assumptions)
    nodes = past.nodes
    used = sum(past.used_s.values())
    use = min(1.0, used / max(1.0, nodes * float(site.until - site.since)))
    records = node_records(past, nodes)
    listed = features(past, records, use)
    each, totals = savings(listed, drawn)
    kinds = costs_by_kind(past, middle, drawn)
    return {
        "format": FORMAT,
        "cluster": site.cluster,
        "slurm": site.version,
        "since": site.since,
        "until": site.until,
        "nodes": nodes,
        "runs": past.runs,
        "used_node_hours": hours(used),
        "use": round(use, 4),
        "per_node_hour": per_node_hour,
        "costs": [
            {"kind": kind, "title": KINDS[kind], "count": count, **_hours_of(cost)}
            for kind, (count, cost) in kinds.items()
        ],
        "lost_node_hours": hours(sum(cost.middle for _, cost in kinds.values())),
        **{f"by_{name}": _rows(costs_by(past, middle, key)) for name, key in WAYS.items()},
        "weeks": _weeks(past, costs_by(past, middle, week_of)),
        "outages": _outages(past),
        "node_records": [_record(one) for one in records[:_MOST_ROWS]],
        "savings": [
            {"feature": one.key, "unit": one.unit, "title": one.title, "why": one.why, **_hours_of(each[one.key])}
            for one in listed
        ],
        "saved": {unit: _hours_of(total) for unit, total in totals.items()},
        "assumptions": [one._asdict() for one in assumptions.values()],
        "unknown": [*gaps, *_unknown(past)],
    }


def hours(seconds: float) -> float:
    """Return node-hours of node-seconds, as precise as they are read."""
    return round(seconds / _HOUR, 1 if seconds > 100 * _HOUR else 3)


def day(at: float) -> str:
    """Return the date, in UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def _hours_of(found: Interval) -> dict[str, float]:
    return {name: hours(value) for name, value in zip(found._fields, found)}


def _rows(found: Mapping[str, tuple[int, float]]) -> list[dict[str, Any]]:
    """Return the dearest rows, and what the others cost in one row without a name."""
    rows = [{"name": name, "count": count, "node_hours": hours(cost)} for name, (count, cost) in found.items()]
    rest = list(found.values())[_MOST_ROWS:]
    others = {
        "name": None,
        "count": sum(count for count, _ in rest),
        "node_hours": hours(sum(cost for _, cost in rest)),
    }
    return [*rows[:_MOST_ROWS], *([others] if rest else [])]


def _weeks(past: PastJobs, found: Mapping[str, tuple[int, float]]) -> list[dict[str, Any]]:
    """Return the node-hours lost in each week, by kind."""
    weeks: dict[int, dict[str, float]] = {
        week: {} for week in range(past.site.since // WEEK_S, past.site.until // WEEK_S + 1)
    }
    for name, (_, cost) in found.items():
        week, _, kind = name.partition(" ")
        weeks.setdefault(int(week), {})[kind] = hours(cost)
    return [{"begin": week * WEEK_S, "node_hours": kinds} for week, kinds in sorted(weeks.items())]


def _outages(past: PastJobs) -> list[dict[str, Any]]:
    found = []
    for cause, title in CAUSES.items():
        own = [one for one in past.outages if one.cause == cause]
        length = hours(sum(one.seconds for one in own))
        still = sum(one.is_open for one in own)
        found.append(
            {"cause": cause or "others", "title": title, "count": len(own), "open": still, "node_hours": length}
        )
    return found


def _record(one: NodeRecord) -> dict[str, Any]:
    out = hours(sum(each.seconds for each in one.outages))
    return {
        "node": one.node,
        "faults": len(one.faults),
        "jobs": len(one.setbacks),
        "out_hours": out,
        "lemon": one.is_lemon,
    }


def _unknown(past: PastJobs) -> list[str]:
    """Return what the data cannot tell, in sentences with figures."""
    site, found = past.site, []
    count, node_s = past.unjudged
    if count:
        found.append(
            f"{count:,} runs ({hours(node_s):,} node-hours) ended at their time limit, and no like jobs completed to "
            "compare them with: hung, or only long. None is counted."
        )
    count, node_s = past.states.get("FAILED", (0, 0.0))
    if count:
        found.append(
            f"{count:,} runs ({hours(node_s):,} node-hours) are FAILED to Slurm. Faults of GPUs, links, file systems "
            "are among them, and the data do not tell them from bugs. Only those whose node went down then are counted."
        )
    unnamed = sum(not one.node for one in past.setbacks if one.kind in (LOST, LAUNCH))
    if unnamed:
        found.append(f"Of {unnamed:,} node and launch failures the data do not name the node.")
    if past.first is not None and past.first > site.since + 3 * 86400:
        found.append(
            f"The oldest run began on {day(past.first)}: nothing older is in the accounting, or visible to you."
        )
    if not site.shapes:
        found.append("How large the nodes are is not known: each job counts as if it had its nodes alone.")
    if past.families_left_out:
        found.append(
            f"{past.families_left_out:,} runs have too many different names to be compared: none counts as a hang."
        )
    found.append(
        "Whether programs save checkpoints, and how often, is not in the data. It is assumed; --assume changes it."
    )
    return found
