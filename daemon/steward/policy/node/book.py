"""The nodes of a plan in the making: the part of memory that is about them. A quiet node has no row in it."""

import math
from collections.abc import Container, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from steward.model.ids import NodeName
from steward.model.memory import NodeMemory
from steward.policy.groundwork import Groundwork
from steward.policy.kept import Kept

KEPT_S = 86_400.0
"""What is older is forgotten."""
_NOTHING = NodeMemory()
_FADING = ("back_at", "lost_at", "silent_since", "left_at")
_NAMES_GONE = (*_FADING, "away_since")
"""Of a node that Slurm does not know any more."""


class NodeBook(Kept[NodeName, NodeMemory]):
    """What is remembered of nodes, by name. Every change goes through `note`."""

    __slots__ = ()

    def of(self, node: NodeName) -> NodeMemory:
        return self.get(node, _NOTHING)

    def note(self, node: NodeName, **news: Any) -> None:
        """Remember these fields of the node as they are now."""
        before = self.of(node)
        after = replace(before, **news)
        if after == _NOTHING:
            self.pop(node, None)
        elif after != before:
            self[node] = after

    def prune(self, now: float, in_slurm: Container[NodeName], ground: Groundwork) -> None:
        """Forget what is a day old. A finding that settles is forgotten when it does not stand any more, and that a
        node of Slurm's is away when it is back."""
        since, before = now - KEPT_S, self.unchanged
        of = (before, ground.nodes.keys_stamp)
        if before is not None and ground.once("oldest of nodes", of, lambda: self._oldest(in_slurm)) > since:
            return
        for name, mem in list(self.items()):
            if any(at <= since for at in _times(mem, is_there=name in in_slurm)):
                self.note(name, **_young(mem, since, is_there=name in in_slurm))

    def _oldest(self, in_slurm: Container[NodeName]) -> float:
        return min(
            (at for name, mem in self.items() for at in _times(mem, is_there=name in in_slurm)), default=math.inf
        )


def _times(mem: NodeMemory, *, is_there: bool) -> Iterator[float]:
    yield from mem.excluded_by.values()
    for what in _FADING if is_there else _NAMES_GONE:
        at: float | None = getattr(mem, what)
        if at is not None:
            yield at


def _young(mem: NodeMemory, since: float, *, is_there: bool) -> dict[str, Any]:
    """The fields that fade, without what was so by then."""
    told = {what: getattr(mem, what) for what in (_FADING if is_there else _NAMES_GONE)}
    young = {what: at if at is not None and at > since else None for what, at in told.items()}
    excluded_by = {user: at for user, at in mem.excluded_by.items() if at > since}
    return {**young, "excluded_by": MappingProxyType(excluded_by)}
