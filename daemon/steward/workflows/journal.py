"""Intent before act: what is to be done is written down first, and how it went afterwards. Every line says why."""

import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, TypeVar

from steward.model.action import Action, BackUpNode
from steward.model.events import Event, Level
from steward.model.memory import Memory
from steward.ports import Clock, StorePort
from steward.workflows.subject import action_fields, event_fields, kind_of

log = logging.getLogger(__name__)

T = TypeVar("T")

_LEVELS = {Level.INFO: logging.INFO, Level.WARNING: logging.WARNING, Level.ERROR: logging.ERROR}


class Journal:
    """The store, with logs. `counted` is told of each outcome: kind of action, outcome (`done`, `stale`, ...)."""

    def __init__(self, store: StorePort, clock: Clock, counted: Callable[[str, str], None]) -> None:
        self._store, self._clock, self._counted = store, clock, counted
        self._failures = _Kept(lambda: MappingProxyType(dict(store.failures())))
        self._done = _Kept(lambda: store.done(BackUpNode.__name__))

    def load(self) -> Memory:
        """What was meant when the last head ended. Raises Retryable."""
        return self._store.load()

    def failures(self) -> Mapping[str, str]:
        """Failed tries by key; read again only after an outcome was recorded."""
        return self._failures.value()

    def done(self) -> frozenset[str]:
        """Backups and restores that ended well; read again only after the outcome of one was recorded."""
        return self._done.value()

    def begin(self, memory: Memory, actions: Sequence[Action], events: Sequence[Event]) -> None:
        """Memory, intents and events in one transaction. Raises Retryable, and then nothing may be done."""
        self._store.commit(memory, actions, events)
        for event in events:
            log.log(_LEVELS[event.level], event.text, extra=event_fields(event))

    def told(self, action: Action, kind: str, error: str) -> None:
        """How an intent ended, for people; empty `error` is success. `record` writes it down."""
        if error:
            log.warning("%s %s: %s; why: %s", kind_of(action), kind, error, action.why, extra=action_fields(action))
        else:
            log.info("%s; why: %s", kind_of(action), action.why, extra=action_fields(action))
        self._counted(kind_of(action), kind)

    def record(self, ended: Sequence[tuple[Action, str]]) -> None:
        """Write down, all at once, how intents ended (the error, or empty). A store that fails is logged: the intents
        are then repeated."""
        if not ended:
            return
        try:
            self._store.record_outcomes({action.key: error for action, error in ended}, self._clock.now())
        except Exception as failure:
            log.error("cannot record %d outcomes: %s", len(ended), failure, extra=action_fields(ended[0][0]))
        self._failures.is_stale = True
        if any(isinstance(action, BackUpNode) for action, _ in ended):
            self._done.is_stale = True


class _Kept(Generic[T]):
    """What `read` gave, until it is called stale: by any thread, also while it is being read."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._value: T | None = None
        self.is_stale = True

    def value(self) -> T:
        """Raises what `read` raises; the next call reads again then."""
        if self.is_stale or self._value is None:
            self.is_stale = False  # before the read: what comes meanwhile may not be in it
            self._value = None
            self._value = self._read()
        return self._value
