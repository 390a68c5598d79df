"""Write intents before acts and outcomes after them, with the reason and the nodes and jobs concerned."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from steward.model.action import BackUpNode, SignalJob
from steward.model.agent_action import Action
from steward.model.events import Event, Level
from steward.model.ids import JobId, Key, NodeName
from steward.model.memory import Memory
from steward.model.observed import Observed, Subject
from steward.ports import Clock, PortError, StorePort
from steward.workflows.effects import Affected, row_of

log = logging.getLogger(__name__)

_NAMED = ("node", "job", "run", "instance", "partition", "open")


def kind_of(action: Action) -> str:
    """Return the action's name in logs and metrics (`DrainNode`)."""
    return type(action).__name__


def action_fields(action: Action) -> dict[str, Any]:
    """Return the action's name, key, node, job, case and the like, as `extra` of a log call."""
    return {"action": kind_of(action), "key": action.key, **_about(action)}


def _about(action: Action) -> dict[str, Any]:
    """Return the action's fields for a log line."""
    about = {name: getattr(action, name) for name in _NAMED if hasattr(action, name)}
    of_row = row_of(action).about
    return {**about, **of_row(action)} if of_row is not None else about


def subject_of(actions: Iterable[Action], seen: Observed) -> Subject:
    """Return the records that must still be as the plan saw them when these actions are done."""
    affected = Affected(seen)
    found = [row_of(action).reads(action, affected) for action in actions]
    return Subject(
        nodes=frozenset().union(*(one.nodes for one in found)), jobs=frozenset().union(*(one.jobs for one in found))
    )


def subjects_of_events(events: Iterable[Event]) -> Subject:
    """Return the nodes and jobs that the events name."""
    events = tuple(events)
    nodes, jobs = (event.node for event in events), (event.job for event in events)
    return Subject(
        nodes=frozenset(name for name in nodes if name is not None), jobs=frozenset(id for id in jobs if id is not None)
    )


def touched_by(actions: Iterable[Action], seen: Observed) -> Subject | None:
    """Return the records that these actions change; None if that is unknown."""
    affected = Affected(seen)
    nodes, jobs = set[NodeName](), set[JobId]()
    for action in actions:
        one = row_of(action).touched(action, affected)
        if one is None:
            return None
        nodes |= one.nodes
        jobs |= one.jobs
    return Subject(nodes=frozenset(nodes), jobs=frozenset(jobs))


def event_fields(event: Event) -> dict[str, Any]:
    """Return the event's fields for a log line."""
    about = {"node": event.node, "job": event.job, "case": event.case}
    return {"event": event.kind, **{key: value for key, value in about.items() if value is not None}}


T = TypeVar("T")
_LATER_S = 1.0
_AT_ONCE = (BackUpNode, SignalJob)
"""Written at once: plans wait for a backup's outcome, and a repeated signal would make a job save twice."""

_LEVELS = {Level.INFO: logging.INFO, Level.WARNING: logging.WARNING, Level.ERROR: logging.ERROR}


class Journal:
    """The store, with a log line for each write. `counted` gets the action's kind and the outcome's word (`done`, ...).

    Some outcomes are kept and written within `_LATER_S` and a turn. After a crash before that, the action is done once
    more, as after a crash between an act and its outcome.
    """

    def __init__(self, store: StorePort, clock: Clock, counted: Callable[[str, str], None]) -> None:
        self._store, self._clock, self._counted = store, clock, counted
        self._lock = threading.Lock()
        self._later: dict[Key, Action] = {}
        self._later_since = 0.0
        self._calm = Calm()
        self._failures = _CachedRead(lambda: MappingProxyType(dict(store.failures())))
        self._done = _CachedRead(lambda: store.done(BackUpNode.__name__))

    def load(self) -> Memory:
        """Return the memory that the last head left. Raises Retryable."""
        return self._store.load()

    def failures(self) -> Mapping[str, str]:
        """Return the error of each failed action by key; read again only after an outcome was recorded."""
        return self._failures.value()

    def done(self) -> frozenset[str]:
        """Return the keys of backups and restores that ended well; read again only after one's outcome."""
        return self._done.value()

    def begin(self, memory: Memory, actions: Sequence[Action], events: Sequence[Event]) -> None:
        """Write memory, intents and events in one transaction. Raises Retryable; then no action may be carried out."""
        if self._must_flush(actions):
            self.flush()
        events = self._calm.filter_events(events)
        self._store.commit(memory, actions, events)
        for event in events:
            log.log(_LEVELS[event.level], event.text, extra=event_fields(event))

    def tell(self, event: Event) -> bool:
        """Write one event that belongs to no plan, and log it; return False if the store does not take it."""
        try:
            self._store.add_events([event])
        except PortError:
            return False
        log.log(_LEVELS[event.level], event.text, extra=event_fields(event))
        return True

    def told(self, action: Action, kind: str, error: str) -> None:
        """Log and count how an action ended; an empty `error` is success. `record` writes it to the store."""
        if error:
            log.warning("%s %s: %s; why: %s", kind_of(action), kind, error, action.why, extra=action_fields(action))
        else:
            log.info("%s; why: %s", kind_of(action), action.why, extra=action_fields(action))
        self._counted(kind_of(action), kind)

    def keep(self, ended: Sequence[tuple[Action, str]]) -> None:
        """Write the outcomes now if the next plan may need them; otherwise keep them for the next `flush`."""
        if any(error or isinstance(action, _AT_ONCE) or self._may_have_failed(action) for action, error in ended):
            self.record(ended)
            return
        with self._lock:
            self._later_since = self._later_since if self._later else time.monotonic()
            self._later |= {action.key: action for action, _ in ended}

    def _may_have_failed(self, action: Action) -> bool:
        """Return whether the store may have a failure of this action that its success must clear."""
        return action.key in self._failures.known(MappingProxyType({action.key: ""}))

    def _must_flush(self, actions: Sequence[Action]) -> bool:
        """Return whether kept outcomes must be written now."""
        with self._lock:
            # The store gives an outcome to the newest intent of its key: write it before there is a newer intent.
            is_late = bool(self._later) and time.monotonic() > self._later_since + _LATER_S
            return is_late or any(action.key in self._later for action in actions)

    def flush(self) -> None:
        """Write the outcomes that were kept for later."""
        self.record(())

    def record(self, ended: Sequence[tuple[Action, str]]) -> None:
        """Write these outcomes (the error; empty: success) and the kept ones, all at once.

        If the store fails, that is logged: the actions are done again.
        """
        with self._lock:
            later, self._later = self._later, {}
        ended = [*((action, "") for action in later.values()), *ended]
        if not ended:
            return
        try:
            self._store.record_outcomes({action.key: error for action, error in ended}, self._clock.now())
        except Exception as failure:
            log.error("cannot record %d outcomes: %s", len(ended), failure, extra=action_fields(ended[0][0]))
        self._failures.is_stale = True
        if any(isinstance(action, BackUpNode) for action, _ in ended):
            self._done.is_stale = True


class _CachedRead(Generic[T]):
    """The result of `read`, kept until any thread marks it stale, even during the read."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._value: T | None = None
        self.is_stale = True

    def known(self, otherwise: T) -> T:
        """Return the kept result without reading; `otherwise` if there is none or it is stale."""
        value = self._value
        return otherwise if self.is_stale or value is None else value

    def value(self) -> T:
        """Return the result, reading it if needed. Raises what `read` raises; the next call then reads again."""
        if self.is_stale or self._value is None:
            self.is_stale = False  # set before the read, because a change during the read may not be in the result
            self._value = None
            self._value = self._read()
        return self._value


EVENTS_AT_ONCE = 60


EVENTS_EACH_S = 10.0


MOST_SUBJECTS = 50_000


_Subject = tuple[str, object, object]


@dataclass(slots=True)
class _Repeats:
    """The events of one kind and subject.

    `paid`: each event that passed moves this time `EVENTS_EACH_S` further (monotonic). `left`, `last`: how many events
    were left out, and the newest of them.
    """

    paid: float
    left: int = 0
    last: Event | None = None


class Calm:
    """A limit on events: `EVENTS_AT_ONCE` of a kind about one subject, then one each `EVENTS_EACH_S`, with a number.

    The number is of those left out. A user can cause some events again and again: these must not hide other events, nor
    fill the store.

    Errors always pass.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._told: dict[_Subject, _Repeats] = {}

    def filter_events(self, events: Iterable[Event]) -> list[Event]:
        """Return the events to write: those that pass, and the newest left-out event of each subject that is due."""
        now = self._monotonic()
        found = [event for event in events if self._is_let(event, now)]
        found.extend(self._due_again(now))
        if len(self._told) > MOST_SUBJECTS:
            self._told = {key: one for key, one in self._told.items() if one.paid > now or one.left}
        return found

    def _is_let(self, event: Event, now: float) -> bool:
        """Return whether the event passes; if it does not, count it."""
        if event.level is Level.ERROR:
            return True
        told = self._told.setdefault((event.kind, event.job, event.node if event.job is None else None), _Repeats(now))
        paid = max(told.paid, now)
        if told.left or paid - now > (EVENTS_AT_ONCE - 1) * EVENTS_EACH_S:
            told.left, told.last = told.left + 1, event
            return False
        told.paid = paid + EVENTS_EACH_S
        return True

    def _due_again(self, now: float) -> list[Event]:
        """Return the newest left-out event of each kind and subject that is due again, with the number left out."""
        found = []
        for told in self._told.values():
            if told.last is None or max(told.paid, now) - now > (EVENTS_AT_ONCE - 1) * EVENTS_EACH_S:
                continue
            more = f" (and {told.left - 1:,} more like it)" if told.left > 1 else ""
            found.append(replace(told.last, text=f"{told.last.text}{more}"))
            told.paid, told.left, told.last = max(told.paid, now) + EVENTS_EACH_S, 0, None
        return found
