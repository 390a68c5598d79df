"""Times in which nodes were out of service, and why."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from .records import NodeEvent, SiteFacts

REBOOTED, SILENT, PROLOG, CLEAN_UP = "rebooted", "silent", "prolog", "clean_up"
CAUSES = {
    REBOOTED: "Slurm found them rebooted",
    SILENT: "they did not respond",
    PROLOG: "a prolog failed",
    CLEAN_UP: "an epilog, the end of a job or a registration failed",
    "": "a person or a check of the site took them out",
}
_WORDS = (
    (REBOOTED, re.compile(r"unexpectedly rebooted", re.IGNORECASE)),
    (SILENT, re.compile(r"not responding", re.IGNORECASE)),
    (PROLOG, re.compile(r"prolog error|launch failure", re.IGNORECASE)),
    (
        CLEAN_UP,
        re.compile(
            r"epilog error|kill task failed|batch job complete failure|duplicate jobid|step not running"
            r"|low (real ?memory|cpus|sockets?|tmp ?disk|cores|threads|gres)|gres/\S+ count|registration",
            re.IGNORECASE,
        ),
    ),
)
_OUT = re.compile(r"DOWN|DRAIN|FAIL|ERROR", re.IGNORECASE)
_ONE_OUTAGE_S = 60
"""Events of a node that are no farther apart are one outage: Slurm begins a new one with each change of state."""


@dataclass
class Outage:
    """A time in which a node was out of service. `cause` is of `CAUSES`."""

    node: str
    start: int
    end: int
    cause: str
    is_open: bool = False

    @property
    def seconds(self) -> int:
        """Return how long the node was out."""
        return self.end - self.start


def outages(events: Iterable[NodeEvent], site: SiteFacts) -> list[Outage]:
    """Return the outages of all nodes in the time that is looked at; those of nodes that were switched off are none."""
    by_node: dict[str, list[NodeEvent]] = defaultdict(list)
    for event in events:
        if _OUT.search(event.state) and "POWER" not in event.state.upper():
            by_node[event.node].append(event)
    found: list[Outage] = []
    for node, own in by_node.items():
        last: Outage | None = None
        for event in sorted(own, key=lambda one: one.start):
            end = site.until if event.end is None else min(event.end, site.until)
            start = max(event.start, site.since)
            if end <= start:
                continue
            if last is not None and start <= last.end + _ONE_OUTAGE_S:
                last.end, last.is_open = max(last.end, end), last.is_open or event.end is None
            else:
                last = Outage(node, start, end, cause_of(event.reason), event.end is None)
                found.append(last)
    return sorted(found, key=lambda one: (one.start, one.node))


def cause_of(reason: str) -> str:
    """Return what Slurm's reason says; empty for the words of a person or of a site's own check."""
    return next((cause for cause, words in _WORDS if words.search(reason)), "")
