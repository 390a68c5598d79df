"""The common part of the tables of cases, slots, deep checks and elastic runs: (step, fact) -> step, facts tried in
order."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

S = TypeVar("S")
F = TypeVar("F")
Step = TypeVar("Step", bound=Enum)
Fact = TypeVar("Fact", bound=Enum)


def in_order(table: Iterable[tuple[S, F]]) -> Callable[[S], tuple[F, ...]]:
    """Return a function that gives the facts that can end a step, the most urgent first; none for a step that the table
    does not leave."""
    facts: dict[S, tuple[F, ...]] = {}
    for step, fact in table:
        facts[step] = (*facts.get(step, ()), fact)
    return lambda step: facts.get(step, ())


def page_tables(
    table: Mapping[tuple[Step, Fact], Step | None], limit: Callable[[Step], str], meaning: str = "meaning"
) -> str:
    """Two tables of a page: what each step may lead to (no step: `gone`), and what its facts say. Facts that lead to
    the same step stand together."""

    def ways(step: Step) -> str:
        found = [(fact.name.lower(), to.value if to else "gone") for (at, fact), to in table.items() if at is step]
        return "; ".join(f"{', '.join(f for f, _ in some)} → {to}" for to, some in groupby(found, key=itemgetter(1)))

    steps = [f"| {step.value} | {limit(step)} | {ways(step)} |" for step in dict.fromkeys(at for at, _ in table)]
    facts = [f"| {fact.name.lower()} | {fact.value} |" for fact in dict.fromkeys(fact for _, fact in table)]
    heads = (
        ["| step | deadline (default) | fact → next step |", "|---|---|---|"],
        [f"| fact | {meaning} |", "|---|---|"],
    )
    return "\n".join([*heads[0], *steps, "", *heads[1], *facts, ""])
