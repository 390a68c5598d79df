"""Carry out people's commands to the head.

The next cycle makes each command part of the memory, so that it survives a restart.
"""

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from steward.model.desired import Desired
from steward.model.events import Event, Level
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.order import Order, OrderAnswer, Refusal
from steward.policy.controls import arm_check, pause, reset_breakers, resume_actions
from steward.policy.orders import carry_out
from steward.ports import Permanent, Retryable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseOrder:
    """An order to pause all actions until they are resumed."""

    who: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeActions:
    """An order to resume actions and reset tripped breakers."""

    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetBreakers:
    """An order to close one breaker, or all tripped ones if `scope` is empty."""

    who: str
    scope: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCheck:
    """An order to arm or disarm a site check, whatever its trial says."""

    who: str
    check: str
    armed: bool


Command = PauseOrder | ResumeActions | ResetBreakers | ArmCheck | Order


@dataclass(slots=True)
class _WaitingCommand:
    """A command that waits for the cycle, and its answer."""

    command: Command
    done: threading.Event = field(default_factory=threading.Event)
    answer: OrderAnswer = field(default_factory=OrderAnswer)
    refusal: Refusal | Permanent | None = None


class Commands:
    """The waiting commands of people: given from any thread, carried out by the cycle."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._waiting: queue.SimpleQueue[_WaitingCommand] = queue.SimpleQueue()
        self._taken: list[_WaitingCommand] = []

    def give(self, command: Command, timeout_s: float = 20.0) -> OrderAnswer:
        """Give a command, and return its answer once the change is in the store.

        Raises Refusal if it cannot be carried out, and Permanent if the head failed at it; either way nothing was
        changed. Raises Retryable if the answer takes too long: the command may still be carried out.
        """
        given = _WaitingCommand(command)
        self._waiting.put(given)
        self._ring()
        if not given.done.wait(timeout_s):
            remedy = "`journalctl -u stewardd -n 50` says why"
            raise Retryable(f"not carried out within {timeout_s:g} s: the cycle is held up; {remedy}")
        if given.refusal is not None:
            raise given.refusal
        return given.answer

    def take(self, memory: Memory, seen: Observed, want: Desired) -> tuple[Memory, list[Event]]:
        """Return the memory after all waiting commands, and their events."""
        while not self._waiting.empty():
            self._taken.append(self._waiting.get())
        events: list[Event] = []
        for given in self._taken:
            given.refusal = None
            try:
                memory, told, given.answer = _carry_out(given.command, memory, seen, want)
            except Refusal as refusal:
                given.refusal = refusal
            except Exception as error:  # one failing order must not stop the cycle for all nodes
                log.exception("an order failed, nothing was changed: %s", given.command)
                given.refusal = Permanent(f"the head failed at this order ({type(error).__name__}); its log says why")
            else:
                events += told
        return memory, events

    def committed(self) -> None:
        """Answer the taken commands: they are in the store now."""
        for given in self._taken:
            given.done.set()
        self._taken.clear()


def _carry_out(
    command: Command, memory: Memory, seen: Observed, want: Desired
) -> tuple[Memory, tuple[Event, ...], OrderAnswer]:
    """Return the memory after the command, its events and its answer."""
    now = seen.at
    match command:
        case PauseOrder():
            text = f"{command.who} paused all actions: {command.why or 'no reason given'}"
            event = Event(at=now, kind="head.paused", level=Level.WARNING, text=text)
            return pause(memory), (event,), OrderAnswer()
        case ResumeActions():
            reset = ", ".join(sorted(memory.breakers)) or "none was tripped"
            text = f"{command.who} resumed actions; breakers reset: {reset}"
            event = Event(at=now, kind="head.resumed", text=text)
            return resume_actions(memory, now), (event,), OrderAnswer()
        case ResetBreakers():
            text = f"{command.who} reset breakers: {command.scope or ', '.join(sorted(memory.breakers))}"
            event = Event(at=now, kind="breaker.reset", text=text)
            return reset_breakers(memory, command.scope, now), (event,), OrderAnswer()
        case ArmCheck():
            memory = arm_check(memory, command.check, command.who, armed=command.armed)
            word = "armed" if command.armed else "disarmed: it only reports"
            event = Event(at=now, kind="check.armed", text=f"check {command.check} was {word}, by {command.who}")
            return memory, (event,), OrderAnswer()
        case _:
            carried = carry_out(command, memory, seen, want)
            return carried.memory, carried.events, carried.answer
