"""Nodes that somebody takes away on purpose: Slurm's power saving, a reboot, maintenance. Their silence says nothing,
and when they are there again their agents need a while to come."""

from steward.model.ids import NodeName
from steward.policy.draft import Draft
from steward.policy.traits import Trait


def note_absences(draft: Draft) -> None:
    """Note who is away on purpose, and since when one of them is there again."""
    away, before = draft.ground.nodes.having(Trait.AWAY), draft.overview.remembered("away_since")
    for name in sorted(away - before):
        draft.nodes.note(name, away_since=draft.now)
    for name in sorted(before - away):
        if name in draft.seen.nodes:
            draft.nodes.note(name, away_since=None, back_at=draft.now)


def there_again(node: NodeName, draft: Draft) -> float | None:
    """Since when a node that was away on purpose is back; None: it was not, lately."""
    return draft.nodes.of(node).back_at
