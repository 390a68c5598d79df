"""State machines: the common part of cases, slots, deep checks and elastic runs.

Each machine is stated once, as a table of rows (step, fact) -> next step, with a question for each fact. The loop that
moves an object, its diagram and its page are made from the table.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Generic, TypeVar

Step = TypeVar("Step", bound=Enum)
Fact = TypeVar("Fact", bound=Enum)
Next = TypeVar("Next", bound=Enum | None)
Scene = TypeVar("Scene")


@dataclass(frozen=True, slots=True)
class Table(Generic[Step, Fact, Next]):
    """The rows (step, fact) -> next step of a state machine; the next step None means that the object is gone.

    In each step the facts are tried in the order of the rows; the first that is true decides. A fact's value is its
    sentence for people.
    """

    rows: Mapping[tuple[Step, Fact], Next]
    _facts: Mapping[Step, tuple[Fact, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        facts: dict[Step, tuple[Fact, ...]] = {}
        for step, fact in self.rows:
            facts[step] = (*facts.get(step, ()), fact)
        object.__setattr__(self, "rows", MappingProxyType(dict(self.rows)))
        object.__setattr__(self, "_facts", facts)

    def facts_of(self, step: Step) -> tuple[Fact, ...]:
        """Return the facts that can end a step, most urgent first; none for a step that is never left."""
        return self._facts.get(step, ())

    def page(self, head: str, first: Step, limit: Callable[[Step], str], meaning: str = "meaning") -> str:
        """Return a page of the docs.

        The page has the head, a diagram that begins with the step `first`, for each step its deadline in words and
        where it may lead, and the sentence of each fact.
        """
        return "\n".join([head, *self._diagram(first), "", *self._steps(limit), "", *self._sentences(meaning), ""])

    def _diagram(self, first: Step) -> Iterable[str]:
        rows = self.rows.items()
        arrows = (f"    {at.name} --> {_name(to)}: {fact.name.lower()}" for (at, fact), to in rows)
        last = dict.fromkeys(to for _, to in rows if to is not None and to not in self._facts)
        ends = (f"    {_name(step)} --> [*]" for step in last)
        return ("```mermaid", "stateDiagram-v2", f"    [*] --> {first.name}", *arrows, *ends, "```")

    def _steps(self, limit: Callable[[Step], str]) -> Iterable[str]:
        """Return the lines about the steps; facts that lead to the same step stand together."""

        def ways(step: Step) -> str:
            found = [(fact.name.lower(), _value(self.rows[step, fact])) for fact in self.facts_of(step)]
            return "; ".join(
                f"{', '.join(f for f, _ in some)} → {to}" for to, some in groupby(found, key=itemgetter(1))
            )

        rows = (f"| {step.value} | {limit(step)} | {ways(step)} |" for step in self._facts)
        return ("| step | deadline (default) | fact → next step |", "|---|---|---|", *rows)

    def _sentences(self, meaning: str) -> Iterable[str]:
        rows = (f"| {fact.name.lower()} | {fact.value} |" for fact in dict.fromkeys(fact for _, fact in self.rows))
        return (f"| fact | {meaning} |", "|---|---|", *rows)


def _name(step: Enum | None) -> str:
    return step.name if step is not None else "[*]"


def _value(step: Enum | None) -> str:
    return str(step.value) if step is not None else "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMachine(Generic[Step, Fact, Next, Scene]):
    """A table with the functions that move an object through it.

    A scene is an object and the part of the picture around it. `step_of` returns the scene's step. `questions` has one
    question for each fact of the table; else ValueError is raised. `noted` returns the scene with times noted, before
    the facts are tried. `enter` carries out a move, writes its event, and returns the scene after it; None if no object
    is left to move.
    """

    table: Table[Step, Fact, Next]
    step_of: Callable[[Scene], Step]
    questions: Mapping[Fact, Callable[[Scene], bool]]
    enter: Callable[[Scene, Fact, Next], Scene | None]
    noted: Callable[[Scene], Scene] = lambda scene: scene

    def __post_init__(self) -> None:
        asked = {fact for _, fact in self.table.rows}
        if odd := asked ^ self.questions.keys():
            raise ValueError(f"a fact without a question, or a question that no row asks: {odd}")

    def move(self, scene: Scene) -> Scene | None:
        """Move the object as far as the picture lets it; return None if no object is left."""
        # each move needs a fact of its own: twice as many moves as there are steps would be a loop in the table
        for _ in range(2 * len(type(self.step_of(scene)))):
            scene = self.noted(scene)
            step = self.step_of(scene)
            fact = next((fact for fact in self.table.facts_of(step) if self.questions[fact](scene)), None)
            if fact is None:
                return scene
            after = self.enter(scene, fact, self.table.rows[step, fact])
            if after is None:
                return None
            scene = after
        return scene


BLIND_S = 15.0
"""A gap between fresh pictures that is longer than this counts against no step's deadline."""
