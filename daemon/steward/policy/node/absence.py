"""Nodes that somebody takes away on purpose: Slurm's power saving, a reboot, maintenance. Their silence says nothing,
and when they are there again their agents need a while to come."""

from steward.model.ids import NodeName
from steward.policy.draft import Draft
from steward.policy.traits import Trait

_AWAY = "away:"
_REFRESH_S = 43_200.0
"""Notes that are not said again are forgotten after a day (`prune.py`)."""


def note_absences(draft: Draft) -> None:
    """Note who is away on purpose, and since when one of them is there again."""
    away = draft.ground.nodes.having(Trait.AWAY)
    for name in sorted(away):
        _stand(_away_key(name), draft)
    for name in map(NodeName, draft.overview.noted_of(_AWAY)):
        if name in draft.seen.nodes and name not in away:
            del draft.noted[_away_key(name)]
            draft.noted[_back_key(name)] = draft.now


def there_again(node: NodeName, draft: Draft) -> float | None:
    """Since when a node that was away on purpose is back; None: it was not, lately."""
    return draft.noted.get(_back_key(node))


def _away_key(node: NodeName) -> str:
    return f"{_AWAY}{node}"


def _back_key(node: NodeName) -> str:
    return f"back:{node}"


def _stand(key: str, draft: Draft) -> None:
    """Note what is so now; it is not forgotten while it is said again and again. Its time says nothing."""
    at = draft.noted.get(key)
    if at is None or draft.now - at > _REFRESH_S:
        draft.noted[key] = draft.now
