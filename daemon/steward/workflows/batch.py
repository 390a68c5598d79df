"""What one Slurm command does for many nodes: a command for each of a thousand would hold up the cycle for minutes."""

from collections.abc import Hashable, Sequence

from steward.model.action import Action
from steward.model.ids import NodeName
from steward.workflows.effects import Batch, row_of


def batches(actions: Sequence[Action]) -> list[Batch]:
    """In order, but that an action goes with an earlier one of its kind.

    Never past one that promises something about a job (what comes before it is part of the promise) or is about a
    partition, nor past another one about the same node.
    """
    found: list[list[Action]] = []
    open_at: dict[Hashable, int] = {}
    touched: dict[NodeName, int] = {}
    for action in actions:
        kind, nodes = _kind(action), row_of(action).nodes(action)
        at = open_at.get(kind, -1)
        if kind is None or at < max((touched.get(node, 0) for node in nodes or ()), default=0):
            at = len(found)
            found.append([])
        found[at].append(action)
        open_at[kind] = at
        touched |= dict.fromkeys(nodes or (), at)
        if nodes is None:
            open_at.clear()
    return [tuple(batch) for batch in found]


def _kind(action: Action) -> Hashable | None:
    """Actions of one kind are one call; None: each is its own."""
    groups_by = row_of(action).groups_by
    return (type(action), groups_by(action)) if groups_by is not None else None
