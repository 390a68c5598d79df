"""What people tell the head. It becomes part of the memory with the next cycle: a restart does not forget it."""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from steward.model.events import Event, Level
from steward.model.memory import Memory
from steward.policy.controls import pause, resume_actions
from steward.ports import Retryable


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Act on nothing until told otherwise."""

    who: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeActions:
    """Act again; tripped breakers are reset."""

    who: str


Command = Pause | ResumeActions


@dataclass(slots=True)
class _Order:
    command: Command
    done: threading.Event = field(default_factory=threading.Event)


class Commands:
    """Given from any thread, carried out by the cycle."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._waiting: queue.SimpleQueue[_Order] = queue.SimpleQueue()
        self._taken: list[_Order] = []

    def give(self, command: Command, timeout_s: float = 20.0) -> None:
        """Return when it is in the store. Raises Retryable when that takes longer; it may still come to be."""
        order = _Order(command)
        self._waiting.put(order)
        self._ring()
        if not order.done.wait(timeout_s):
            raise Retryable(f"not carried out within {timeout_s:g} s: the cycle is held up; see the head's log")

    def take(self, memory: Memory, now: float) -> tuple[Memory, list[Event]]:
        """The memory after all commands given, and what to tell of them."""
        while not self._waiting.empty():
            self._taken.append(self._waiting.get())
        events: list[Event] = []
        for order in self._taken:
            memory, event = _carry_out(order.command, memory, now)
            events.append(event)
        return memory, events

    def committed(self) -> None:
        """What was taken is in the store."""
        for order in self._taken:
            order.done.set()
        self._taken.clear()


def _carry_out(command: Command, memory: Memory, now: float) -> tuple[Memory, Event]:
    match command:
        case Pause():
            text = f"{command.who} paused all actions: {command.why or 'no reason given'}"
            event = Event(at=now, kind="head.paused", level=Level.WARNING, text=text)
            return pause(memory), event
        case ResumeActions():
            reset = ", ".join(sorted(memory.breakers)) or "none was tripped"
            text = f"{command.who} resumed actions; breakers reset: {reset}"
            event = Event(at=now, kind="head.resumed", text=text)
            return resume_actions(memory, now), event
