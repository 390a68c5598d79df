"""What the tables of cases, slots, deep checks and elastic runs share: (step, fact) -> step, facts tried in order."""

from collections.abc import Callable, Iterable
from typing import TypeVar

S = TypeVar("S")
F = TypeVar("F")


def in_order(table: Iterable[tuple[S, F]]) -> Callable[[S], tuple[F, ...]]:
    """What says which facts can end a step, the most urgent first; none for a step that the table does not leave."""
    facts: dict[S, tuple[F, ...]] = {}
    for step, fact in table:
        facts[step] = (*facts.get(step, ()), fact)
    return lambda step: facts.get(step, ())
