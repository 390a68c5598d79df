"""Read the records that an action is about again before it is decided, so that an old picture causes no harm.

The picture of a turn has records of different ages. If the plan has an action, or an event (a repair was opened, a
breaker tripped), the nodes and jobs in it must have been read for this turn. Those that were not are read now; if they
differ from the picture, the plan is made again. Each round reads only records that no earlier round read, and the last
round reads everything.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from steward.model.agent_action import Action
from steward.model.fit import Question
from steward.model.observed import Freshness, Observed, Subject
from steward.model.plan import Plan
from steward.workflows.journal import kind_of, subject_of, subjects_of_events

log = logging.getLogger(__name__)

ROUNDS = 3
"""After this many rounds everything is read: plans with ever new actions cannot delay the turn without end."""

ANSWERS = 2
"""How often one plan is made again because Slurm answered its questions."""

T = TypeVar("T")
Ask = Callable[[Observed, Sequence[Question]], Observed]
"""Returns the picture with Slurm's answers. Never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """The picture after a confirmation. `same`: all records that were read are as before."""

    seen: Observed
    same: bool


class Confirmer(Protocol):
    """The reader of single records."""

    def confirm(self, seen: Observed, subject: Subject) -> Confirmed:
        """Return the picture with these records, reading only those not read in this turn.

        Never raises: a failed read makes the picture an old one.
        """

    def confirm_all(self, seen: Observed) -> Observed:
        """Return the picture with all records read again. Never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(Generic[T]):
    """A result of `think`, and the picture that it was made from."""

    seen: Observed
    result: T


def plan_confirmed(
    think: Callable[[Observed], T],
    plan_of: Callable[[T], Plan],
    seen: Observed,
    reader: Confirmer,
    ask: Ask | None = None,
) -> Decided[T]:
    """Plan until all actions and events rest on records that were read for this turn.

    If these cannot be read, the picture is old, and the plan made on it stands: planning withholds all harmful actions
    then. `plan_of` returns the plan in a result of `think`; `ask` answers a plan's questions to Slurm.
    """
    for number in range(ROUNDS + 1):
        seen, thought = _answered(think, plan_of, seen, ask)
        if seen.slurm is not Freshness.FRESH:
            return Decided(seen=seen, result=thought)
        plan = plan_of(thought)
        confirmed = reader.confirm(seen, subject_of(plan.actions, seen) | subjects_of_events(plan.events))
        if confirmed.same:
            return Decided(seen=confirmed.seen, result=thought)
        seen = reader.confirm_all(confirmed.seen) if number == ROUNDS - 1 else confirmed.seen
        _log_next_plan(plan.actions, seen)
    seen = replace(seen, slurm=Freshness.OLD)
    return Decided(seen=seen, result=think(seen))


def _answered(
    think: Callable[[Observed], T], plan_of: Callable[[T], Plan], seen: Observed, ask: Ask | None
) -> tuple[Observed, T]:
    """Plan, and plan again with the answers to the plan's questions; further questions wait for the next turn."""
    thought = think(seen)
    for _ in range(ANSWERS if ask is not None else 0):
        questions = plan_of(thought).questions
        if not questions or ask is None:
            break
        seen = ask(seen, questions)
        thought = think(seen)
    return seen, thought


def _log_next_plan(actions: Sequence[Action], seen: Observed) -> None:
    """Log why the plan is made again, or which actions are withheld."""
    if seen.slurm is Freshness.FRESH:
        log.debug("planned again: what was read last differs from what the plan was made on")
    else:
        kinds = ", ".join(sorted({kind_of(action) for action in actions}))
        log.warning("withheld until Slurm can be read: %s; what they are about could not be looked at now", kinds)
