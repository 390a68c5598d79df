"""The page about hardware that fails again and again, from one snapshot."""

from typing import Any

from steward.api.shapes import shape
from steward.policy.node.lemons import Lemon, arithmetic, lemons
from steward.workflows.snapshot import Snapshot

Json = dict[str, Any]


def lemons_view(snapshot: Snapshot, now: float) -> list[Json]:
    """The worst first, each with the arithmetic of its score."""
    return [_view(lemon) for lemon in lemons(snapshot.memory, len(snapshot.seen.nodes), now)]


def _view(lemon: Lemon) -> Json:
    return {**shape(lemon), "is_candidate": lemon.is_candidate, "arithmetic": arithmetic(lemon.parts)}
