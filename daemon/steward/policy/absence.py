"""Nodes that somebody takes away on purpose: Slurm's power saving, a reboot, maintenance. Their silence says nothing,
and when they are there again their agents need a while to come."""

from steward.model.ids import NodeName
from steward.model.node import Node
from steward.policy.draft import Draft
from steward.policy.standing_notes import stand

PLANNED_ABSENCE = frozenset(
    {"POWER_DOWN", "POWERING_DOWN", "POWERED_DOWN", "POWERING_UP", "REBOOT_ISSUED", "MAINTENANCE"}
)
"""Slurm's own flags. Those of a node that comes up are over when its slurmd registers, or at ResumeTimeout: then Slurm
sets it DOWN, which is a fault of its own (`reasons.py`). What we launched has the deadlines of its case or slot."""


def is_away_on_purpose(node: Node) -> bool:
    return bool(PLANNED_ABSENCE & node.flags)


def note_absences(draft: Draft) -> None:
    """Note who is away on purpose, and since when one of them is there again."""
    for name, node in draft.seen.nodes.items():
        if is_away_on_purpose(node):
            stand(_away_key(name), draft)
        elif draft.noted.pop(_away_key(name), None) is not None:
            draft.noted[_back_key(name)] = draft.now


def there_again(node: NodeName, draft: Draft) -> float | None:
    """Since when a node that was away on purpose is back; None: it was not, lately."""
    return draft.noted.get(_back_key(node))


def _away_key(node: NodeName) -> str:
    return f"away:{node}"


def _back_key(node: NodeName) -> str:
    return f"back:{node}"
