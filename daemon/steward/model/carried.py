"""What an order came to."""

from dataclasses import dataclass, field

from steward.model.events import Event
from steward.model.memory import Memory
from steward.model.order import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The memory after it, what to tell, and the caller's answer."""

    memory: Memory
    events: tuple[Event, ...] = ()
    answer: Answer = field(default_factory=Answer)
