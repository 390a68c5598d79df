"""The outcome of one decision: what to do, what to remember, what to tell."""

from dataclasses import dataclass

from steward.model.action import Action
from steward.model.events import Event
from steward.model.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`actions` are in the order in which they must be applied. `wake_at` is when the next deadline falls (Unix s)."""

    actions: tuple[Action, ...]
    memory: Memory
    events: tuple[Event, ...] = ()
    wake_at: float | None = None
