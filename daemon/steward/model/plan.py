"""The outcome of one decision: actions, the new memory, events."""

from collections.abc import Iterable
from dataclasses import dataclass

from steward.model.action import AnswerAsk
from steward.model.agent_action import Action
from steward.model.ask import Answer
from steward.model.events import Event
from steward.model.fit import Question
from steward.model.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The outcome of one decision: `actions` in the order to apply them, `wake_at` the next deadline (Unix s)."""

    actions: tuple[Action, ...]
    memory: Memory
    events: tuple[Event, ...] = ()
    wake_at: float | None = None
    questions: tuple[Question, ...] = ()
    """Questions for Slurm before this plan counts: the answers may change the plan."""


def stops_last(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return the actions in order, but with the answers that stop a shim last."""
    # such an answer ends the shim's job, and no later action can change the job in Slurm
    return tuple(sorted(actions, key=lambda action: isinstance(action, AnswerAsk) and action.answer is Answer.STOP))
