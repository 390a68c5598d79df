"""A store that keeps everything in this process, held to the contract that the SQL store passes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from steward.model.action import Action
from steward.model.events import Event
from steward.model.ids import Key
from steward.model.memory import Memory
from steward.model.notify import ChannelState
from steward.ports import Retryable

_FAILURES_S = 3600.0


@dataclass(kw_only=True)
class Entry:
    """One intent of the journal; `outcome` is (Unix seconds, error)."""

    action: Action
    outcome: tuple[float, str] | None = None


@dataclass(kw_only=True)
class FakeStore:
    """`broken` is the text of the Retryable that every call raises while it is set."""

    now: Callable[[], float] = lambda: 0.0
    memory: Memory = field(default_factory=Memory)
    journal: list[Entry] = field(default_factory=list)
    happened: list[Event] = field(default_factory=list)
    channels: dict[str, ChannelState] = field(default_factory=dict)
    broken: str = ""

    def load(self) -> Memory:
        self._check()
        newest = {entry.action.key: entry for entry in self.journal}
        unknown = {key for key, entry in newest.items() if entry.outcome is None}
        asked = {key: at for key, at in self.memory.asked.items() if key not in unknown}
        return replace(self.memory, asked=MappingProxyType(asked))

    def commit(self, memory: Memory, intents: Sequence[Action], events: Sequence[Event]) -> None:
        self._check()
        self.memory = memory
        self.journal += [Entry(action=action) for action in intents]
        self.happened += events

    def record_outcomes(self, errors: Mapping[Key, str], at: float) -> None:
        self._check()
        newest = {entry.action.key: entry for entry in self.journal}
        for key in errors.keys() & newest.keys():
            newest[key].outcome = (at, errors[key])

    def failures(self) -> Mapping[str, str]:
        self._check()
        last = {entry.action.key: entry.outcome for entry in self.journal if entry.outcome is not None}
        since = self.now() - _FAILURES_S
        return {key: error for key, (at, error) in last.items() if error and at >= since}

    def done(self, kind: str) -> frozenset[str]:
        self._check()
        last = {e.action.key: e.outcome for e in self.journal if type(e.action).__name__ == kind and e.outcome}
        since = self.now() - _FAILURES_S
        return frozenset(key for key, (at, error) in last.items() if not error and at >= since)

    def add_events(self, events: Sequence[Event]) -> None:
        self._check()
        self.happened += events

    def events(self, *, after: int = 0, limit: int = 500, node: str = "", job: int = 0) -> list[tuple[int, Event]]:
        self._check()
        found = [
            (number, event)
            for number, event in enumerate(self.happened, start=1)
            if number > after and node in ("", event.node) and job in (0, event.job)
        ]
        return found[:limit] if after else found[-limit:]

    def channel(self, name: str) -> ChannelState | None:
        self._check()
        return self.channels.get(name)

    def keep_channel(self, name: str, state: ChannelState) -> None:
        self._check()
        self.channels[name] = state

    def _check(self) -> None:
        if self.broken:
            raise Retryable(self.broken)
