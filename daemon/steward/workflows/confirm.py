"""An old picture does nothing destructive, for each record: what an action is about is read before it is decided.

The picture of a turn has records of different ages. When the plan wishes for an action, or tells of something (opens a
repair, trips a breaker), the nodes and jobs that it is about must have been read for this turn. What was not is read
now; where it is another thing than was planned on, the plan is made anew. Each round reads what no round before it
read, and the last one reads everything.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from steward.model.action import Action
from steward.model.fit import Question
from steward.model.observed import Freshness, Observed, Subject
from steward.model.plan import Plan
from steward.workflows.journal import kind_of, subject_of, told_of

log = logging.getLogger(__name__)

ROUNDS = 3
"""After so many everything is read: a world in which each round finds another action to check does not hold us up."""

ANSWERS = 2
"""So often a plan is made again because Slurm answered what it asked."""

T = TypeVar("T")
Ask = Callable[[Observed, Sequence[Question]], Observed]
"""The picture with Slurm's answers. Never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """`same`: nothing that was read is other than in the picture before."""

    seen: Observed
    same: bool


class Confirmer(Protocol):
    """Who can read single records once more."""

    def confirm(self, seen: Observed, subject: Subject) -> Confirmed:
        """The picture with what is read now, only of what was not read in this turn. Never raises: a look that fails
        makes it an old one."""

    def confirm_all(self, seen: Observed) -> Observed:
        """The same, of everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(Generic[T]):
    """A result, and the picture that it was worked out from."""

    seen: Observed
    thought: T


def decide(
    think: Callable[[Observed], T],
    plan_of: Callable[[T], Plan],
    seen: Observed,
    reader: Confirmer,
    ask: Ask | None = None,
) -> Decided[T]:
    """Think until all that is done and told is about what was read for this turn. Where that cannot be read the picture
    is old, and what is thought about an old picture stands: it withholds all that may harm. `ask` answers what a plan
    asks of Slurm."""
    for number in range(ROUNDS + 1):
        seen, thought = _answered(think, plan_of, seen, ask)
        if seen.slurm is not Freshness.FRESH:
            return Decided(seen=seen, thought=thought)
        plan = plan_of(thought)
        confirmed = reader.confirm(seen, subject_of(plan.actions, seen) | told_of(plan.events))
        if confirmed.same:
            return Decided(seen=confirmed.seen, thought=thought)
        seen = reader.confirm_all(confirmed.seen) if number == ROUNDS - 1 else confirmed.seen
        _tell(plan.actions, seen)
    seen = replace(seen, slurm=Freshness.OLD)
    return Decided(seen=seen, thought=think(seen))


def _answered(
    think: Callable[[Observed], T], plan_of: Callable[[T], Plan], seen: Observed, ask: Ask | None
) -> tuple[Observed, T]:
    """Think, and again with the answers to what was asked; what is still asked then waits for the next turn."""
    thought = think(seen)
    for _ in range(ANSWERS if ask is not None else 0):
        questions = plan_of(thought).questions
        if not questions or ask is None:
            break
        seen = ask(seen, questions)
        thought = think(seen)
    return seen, thought


def _tell(actions: Sequence[Action], seen: Observed) -> None:
    if seen.slurm is Freshness.FRESH:
        log.debug("planned again: what was read last differs from what the plan was made on")
    else:
        kinds = ", ".join(sorted({kind_of(action) for action in actions}))
        log.warning("withheld until Slurm can be read: %s; what they are about could not be looked at now", kinds)
