"""What each feature of Steward would have saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .costs import hanging, lost_work, unseen
from .estimate import Draw, Interval, Moments, interval, samples
from .history import BLAMED, HANG, LAUNCH, LOST, PastJobs, Setback
from .lemons import NodeRecord
from .outages import CLEAN_UP, PROLOG, REBOOTED, SILENT, Outage

NODE_HOURS, WAITING = "node_hours", "hours_of_waiting"
_CURED = {REBOOTED: "cured_rebooted", SILENT: "cured_silent", PROLOG: "cured_clean_up", CLEAN_UP: "cured_clean_up"}
_REQUEUE_DELAY_S = 120
_RELEASE_S = 60


FEATURES = (
    ("find", NODE_HOURS, "lost nodes found within seconds", "Slurm held the nodes of dead jobs until SlurmdTimeout"),
    ("hang", NODE_HOURS, "hung jobs ended", "they held their nodes until the time limit"),
    (
        "repair",
        NODE_HOURS,
        "nodes repaired and given back",
        "they stood still until a person came; as far as nodes are in use",
    ),
    ("lemons", NODE_HOURS, "lemons taken out", "work that later faults of the same nodes destroyed"),
    ("resume", WAITING, "jobs resumed by themselves", "until submitted again; after a requeue Slurm's two minutes"),
    ("release", WAITING, "jobs released after a failed launch", "Slurm held them until a person released them"),
)
"""Key, unit, title, and what was lost without the feature."""


class Feature(NamedTuple):
    """What one feature would have saved: node-hours, or hours in which jobs waited."""

    key: str
    unit: str
    title: str
    why: str
    moments: Moments


def features(past: PastJobs, records: Sequence[NodeRecord], use: float) -> list[Feature]:
    """Return the features with their savings in seconds. `use`: the share of node time in which jobs had the nodes."""
    of = {kind: [one for one in past.setbacks if one.kind == kind] for kind in (LOST, HANG)}
    moments = {
        "find": _found(past, of[LOST]),
        "hang": hanging(of[HANG], lambda draw: 60 * draw["hang_found"]),
        "repair": _repaired(past.outages, use),
        "lemons": _without_lemons(past, records),
        "resume": _resumed(past),
        "release": _released(past),
    }
    return [Feature(key, unit, title, why, moments[key]) for key, unit, title, why in FEATURES]


def _found(past: PastJobs, lost: Sequence[Setback]) -> Moments:
    timeout_s = past.site.slurmd_timeout_s
    by_slurm = unseen(lost, timeout_s)
    weights = sum(one.weight for one in lost)

    def moments(draw: Draw) -> tuple[float, float, float]:
        mean, variance, most = by_slurm(draw)
        return max(0.0, mean - weights * draw["steward_notices"]), variance, most

    return moments


def _repaired(outages: Sequence[Outage], use: float) -> Moments:
    """Return the time that nodes were out longer than a repair takes, of those that a repair would have cured."""
    lengths = {cause: [one.seconds for one in outages if one.cause == cause] for cause in _CURED}
    known: dict[tuple[str, float], tuple[float, float]] = {}

    def beyond(cause: str, repair_s: float) -> tuple[float, float]:
        if (cause, repair_s) not in known:
            rest = [use * max(0.0, length - repair_s) for length in lengths[cause]]
            known[cause, repair_s] = sum(rest), sum(each * each for each in rest)
        return known[cause, repair_s]

    def moments(draw: Draw) -> tuple[float, float, float]:
        mean = variance = most = 0.0
        for cause, assumption in _CURED.items():
            total, squares = beyond(cause, 60 * draw["repair"])
            cured = draw[assumption]
            mean, variance, most = mean + cured * total, variance + cured * (1 - cured) * squares, most + total
        return mean, variance, most

    return moments


def _without_lemons(past: PastJobs, records: Sequence[NodeRecord]) -> Moments:
    """Return the work that was lost at lemons after Steward would have proposed to take them out."""
    later = [
        one
        for record in records
        if record.is_lemon
        for one in record.setbacks
        if one.kind in (LOST, BLAMED) and one.run.ended > record.proposed_at()
    ]
    work, nodes = lost_work(later, past.site.slurmd_timeout_s), max(1, len({one.node for one in later}))

    def moments(draw: Draw) -> tuple[float, float, float]:
        mean, variance, most = work(draw)
        heeded = draw["heeded"]
        return heeded * mean, heeded * variance + heeded * (1 - heeded) * mean * mean / nodes, most

    return moments


def _resumed(past: PastJobs) -> Moments:
    """Return the waiting of jobs that a node's fault ended, without the queue: they would have waited there, too."""
    own = [one for one in past.setbacks if one.kind in (LOST, BLAMED) and one.again_submit is not None]
    delays = [(one.again_submit or 0) - one.run.ended for one in own if not one.was_requeued]
    requeued = sum(min(_REQUEUE_DELAY_S, (one.again_start or 0) - one.run.ended) for one in own if one.was_requeued)
    total, squares = float(sum(delays)), float(sum(each * each for each in delays))

    def moments(draw: Draw) -> tuple[float, float, float]:
        wanted = draw["wanted"]
        return requeued + wanted * total, wanted * (1 - wanted) * squares, requeued + total

    return moments


def _released(past: PastJobs) -> Moments:
    """Return the waiting of jobs that Slurm held after a launch that failed."""
    own = [one for one in past.setbacks if one.kind == LAUNCH and one.again_start is not None]
    total = float(sum(max(0, (one.again_start or 0) - one.run.ended - _RELEASE_S) for one in own))
    return lambda _: (total, 0.0, total)


def savings(listed: Sequence[Feature], drawn: Sequence[Draw]) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Return what each feature would have saved, and the total of each unit, in seconds.

    All features rest on the same draws, so that the interval of the total is right where they share an assumption.
    """
    each = {one.key: samples(one.moments, drawn, seed=place) for place, one in enumerate(listed)}
    totals = {}
    for unit in (NODE_HOURS, WAITING):
        own = [each[one.key] for one in listed if one.unit == unit]
        totals[unit] = interval([sum(values) for values in zip(*own)])
    return {key: interval(values) for key, values in each.items()}, totals
