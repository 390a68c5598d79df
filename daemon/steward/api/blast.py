"""What the pages about breakers and trials of checks say, from one snapshot."""

from typing import Any

from steward.api.shapes import shape
from steward.workflows.snapshot import Snapshot

Json = dict[str, Any]


def breakers_view(snapshot: Snapshot) -> list[Json]:
    """Tripped ones, the oldest first. `next_try` (Unix s): from when one repair is let through; None: a person
    must reset it."""
    found = sorted(snapshot.memory.breakers.values(), key=lambda each: (each.tripped, each.scope))
    return [{**shape(each), "next_try": each.next_try} for each in found]


def trials_view(snapshot: Snapshot) -> list[Json]:
    """Every known version of each check that may change, the newest first."""
    found = sorted(snapshot.memory.trials.values(), key=lambda each: (each.check, -each.since, each.version))
    return [
        {
            "check": each.check,
            "version": each.version,
            "state": each.state.value,
            "since": each.since,
            "tried": len(each.tried),
            "failed": len(each.failed),
            "text": each.text,
        }
        for each in found
    ]
