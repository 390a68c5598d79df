"""The outcome of one decision: what to do, what to remember, what to tell."""

from collections.abc import Iterable
from dataclasses import dataclass

from steward.model.action import Action, AnswerAsk
from steward.model.ask import Answer
from steward.model.events import Event
from steward.model.fit import Question
from steward.model.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`actions` are in the order in which they must be applied. `wake_at` is when the next deadline falls (Unix s)."""

    actions: tuple[Action, ...]
    memory: Memory
    events: tuple[Event, ...] = ()
    wake_at: float | None = None
    questions: tuple[Question, ...] = ()
    """What Slurm is to be asked before this plan counts: with the answers in the picture it may be another one."""


def stops_last(actions: Iterable[Action]) -> tuple[Action, ...]:
    """In order, but a shim is told to stop when all else is done: its job ends then, and nothing can be said of it in
    Slurm any more."""
    return tuple(sorted(actions, key=lambda action: isinstance(action, AnswerAsk) and action.answer is Answer.STOP))
