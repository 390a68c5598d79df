"""A store that keeps everything in this process, held to the contract that the SQL store passes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from steward.model.agent_action import Action
from steward.model.events import Event
from steward.model.ids import Key
from steward.model.ledger import Run
from steward.model.memory import Memory
from steward.model.notify import ChannelState
from steward.policy.job.ledger import Line, changed_lines, key_of
from steward.ports import LedgerQuery, Retryable

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
    lines: dict[str, Line] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    broken: str = ""

    def load(self) -> Memory:
        self._check()
        newest = {entry.action.key: entry for entry in self.journal}
        unknown = {key for key, entry in newest.items() if entry.outcome is None}
        asked = {key: at for key, at in self.memory.asked.items() if key not in unknown}
        return replace(self.memory, asked=MappingProxyType(asked))

    def commit(self, memory: Memory, intents: Sequence[Action], events: Sequence[Event]) -> None:
        self._check()
        self.lines |= {key_of(line): line for line in changed_lines(self.memory, memory)}
        self.memory = memory
        self.journal += [Entry(action=action) for action in intents]
        self.happened += events

    def ledger(self, wanted: LedgerQuery) -> list[Line]:
        self._check()
        young = {key for key, line in self.lines.items() if (_end(line) or wanted.since) >= wanted.since}
        jobs = {line.job for key, line in self.lines.items() if key in young and isinstance(line, Run)}
        found = [
            line
            for key, line in self.lines.items()
            if (key in young or (isinstance(line, Run) and line.job in jobs))
            and wanted.job in (0, getattr(line, "job", None))
            and wanted.task in ("", getattr(line, "task_id", None))
            and (wanted.until is None or _begin(line) < wanted.until)
        ]
        return sorted(found, key=lambda line: (_begin(line), key_of(line)))[-wanted.limit :]

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

    def first_use(self, key: str, until: float) -> bool:
        self._check()
        is_first = self.used.get(key, self.now() - 1.0) < self.now()
        if is_first:
            self.used[key] = until
        return is_first

    def _check(self) -> None:
        if self.broken:
            raise Retryable(self.broken)


def _begin(line: Line) -> float:
    return line.started if isinstance(line, Run) else line.opened


def _end(line: Line) -> float | None:
    if isinstance(line, Run):
        return line.ended if line.ending is not None else None
    return line.closed
