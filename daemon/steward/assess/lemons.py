"""Nodes that fail more often than chance allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from .history import HANG, PastJobs, Setback
from .outages import Outage

LEAST_FAULTS = 3
_CHANCE = 0.01
"""The probability with which a cluster of equal nodes has one that looks like a lemon."""
_PROPOSED_WITHIN_S = 28 * 86400


@dataclass
class NodeRecord:
    """What happened at one node."""

    node: str
    setbacks: list[Setback] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    is_lemon: bool = False

    @property
    def faults(self) -> list[int]:
        """Return when the node failed: outages that Slurm found, and setbacks outside of them."""
        spans = [(one.start, one.end) for one in self.outages if one.cause]
        alone = (one.run.ended for one in self.setbacks)
        return sorted([*(start for start, _ in spans), *(at for at in alone if not _is_in(at, spans))])

    def proposed_at(self) -> float:
        """Return when Steward would have proposed to take the node out: at its third fault within four weeks."""
        faults = self.faults
        near = (last for first, last in zip(faults, faults[LEAST_FAULTS - 1 :]) if last - first <= _PROPOSED_WITHIN_S)
        return next(near, math.inf)


def _is_in(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start - 600 <= at <= end for start, end in spans)


def node_records(past: PastJobs, nodes: int) -> list[NodeRecord]:
    """Return each node at which anything happened, the most faults first; lemons are marked."""
    found: dict[str, NodeRecord] = {}
    for setback in past.setbacks:
        if setback.node and setback.kind != HANG:
            found.setdefault(setback.node, NodeRecord(setback.node)).setbacks.append(setback)
    for outage in past.outages:
        found.setdefault(outage.node, NodeRecord(outage.node)).outages.append(outage)
    records = sorted(found.values(), key=lambda one: (-len(one.faults), one.node))
    total = sum(len(one.faults) for one in records)
    for one in records:
        count = len(one.faults)
        expected = (total - count) / max(1, nodes - 1)
        one.is_lemon = count >= LEAST_FAULTS and at_least(count, expected) < _CHANCE / max(1, nodes)
    return records


def at_least(count: int, expected: float) -> float:
    """Return the probability of so many or more events where this many are expected."""
    term, below = math.exp(-expected), 0.0
    for number in range(count):
        below += term
        term *= expected / (number + 1)
    return max(0.0, 1.0 - below)
