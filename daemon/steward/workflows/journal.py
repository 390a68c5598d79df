"""Intent before act: what is to be done is written down first, and how it went afterwards. Every line says why."""

import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from steward.model.action import Action, BackUpNode
from steward.model.events import Event, Level
from steward.model.memory import Memory
from steward.ports import Clock, StorePort
from steward.workflows.subject import action_fields, event_fields, kind_of

log = logging.getLogger(__name__)

_LEVELS = {Level.INFO: logging.INFO, Level.WARNING: logging.WARNING, Level.ERROR: logging.ERROR}


class Journal:
    """The store, with logs. `counted` is told of each outcome: kind of action, outcome (`done`, `stale`, ...)."""

    def __init__(self, store: StorePort, clock: Clock, counted: Callable[[str, str], None]) -> None:
        self._store, self._clock, self._counted = store, clock, counted
        self._failures: Mapping[str, str] = MappingProxyType({})
        self._done: frozenset[str] = frozenset()
        self._outcomes_came = self._backups_came = True

    def load(self) -> Memory:
        """What was meant when the last head ended. Raises Retryable."""
        return self._store.load()

    def failures(self) -> Mapping[str, str]:
        """Failed tries by key; read again only after an outcome was recorded."""
        if self._outcomes_came:
            self._outcomes_came = False
            self._failures = MappingProxyType(dict(self._store.failures()))
        return self._failures

    def done(self) -> frozenset[str]:
        """Backups and restores that ended well; read again only after the outcome of one was recorded."""
        if self._backups_came:
            self._done = self._store.done(BackUpNode.__name__)
            self._backups_came = False
        return self._done

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
        self._outcomes_came = True
        self._backups_came = self._backups_came or any(isinstance(action, BackUpNode) for action, _ in ended)
