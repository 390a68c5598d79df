"""Slurm's nodes, or its jobs: read whole by the sweep beside the cycle and in part by narrow looks, kept as one page.

The sweep takes its time by what it costs, so that a large site is not read all day long and a small one is seen as soon
as ever. One sweep and one narrow look are under way at most; what comes in late is still put into the page.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Generic, TypeVar

from steward.model.observed import ReadTimes
from steward.ports import Clock
from steward.workflows.pool import BackgroundRead, Workers

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_TRIES = 3
_COSTS_KEPT = 3
"""The least of the last costs counts: one sweep that was held up does not make the next ones rare."""
_COMMAND_S = 0.025
_RECORD_S = 0.0002
"""The most that a command costs, and each record of it, in seconds. A sweep of few records that took longer was held up
by a busy machine: it is late, not dear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """From one sweep to the next: `share` of the time may be spent on them, never longer than `most_s` (seconds) unless
    `least_s` is longer. Nodes and jobs have their own sweeps, each with this share: 1 % of a core for both."""

    least_s: float = 5.0
    most_s: float = 60.0
    share: float = 0.005

    def every(self, cost_s: float) -> float:
        return max(self.least_s, min(self.most_s, cost_s / self.share))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted(Generic[K]):
    """The records of a book that a turn must know: all as it was at `swept` or later, and single records likewise (Unix
    s)."""

    swept: float | None = None
    records: Mapping[K, float] = field(default_factory=dict)


def cost_of(took_s: float, records: int) -> float:
    """Seconds that a sweep of so many records cost: those that it took, where so many can cost as much."""
    return min(took_s, _COMMAND_S + records * _RECORD_S)


class Book(Generic[K, V]):
    """One thread asks for reads, the pool's threads carry them out; `page` may be read by any."""

    def __init__(
        self,
        name: str,
        *,
        sweep: Callable[[], Mapping[K, V]],
        some: Callable[[Collection[K]], Mapping[K, V]],
        pool: Workers,
        clock: Clock,
        came: Callable[[bool], None],
    ) -> None:
        """`came` is called after every read, well or not, with whether a sweep brought news."""
        self._read_all, self._read_some, self._clock, self._came = sweep, some, clock, came
        self._lock = threading.Lock()
        self._keys: frozenset[K] = frozenset()
        self._costs: deque[float] = deque(maxlen=_COSTS_KEPT)
        self._news = False
        self.page: Page[K, V] = Page()
        self.sweep: BackgroundRead[None] = BackgroundRead(f"Slurm's {name}", self._sweep, pool, clock, self._swept)
        self.narrow: BackgroundRead[None] = BackgroundRead(
            f"some of Slurm's {name}", self._look, pool, clock, lambda: came(False)
        )

    @property
    def cost_s(self) -> float:
        """The cost of a sweep in seconds; 0 before the first."""
        return min(self._costs, default=0.0)

    def look(self, keys: Collection[K]) -> None:
        """Begin to read these once more; a narrow look that is under way goes first."""
        if self.narrow.running_since is None:
            self._keys = frozenset(keys)
            self.narrow.start()

    def _sweep(self) -> None:
        began, started = self._clock.now(), time.monotonic()
        found = self._read_all()
        self._costs.append(cost_of(time.monotonic() - started, len(found)))
        with self._lock:
            before, self.page = self.page, self.page.with_sweep(found, began, self._clock.now())
            self._news = self.page.records is not before.records

    def _swept(self) -> None:
        news, self._news = self._news, False
        self._came(news)

    def _look(self) -> None:
        keys, began = self._keys, self._clock.now()
        found = self._read_some(keys)
        with self._lock:
            self.page = self.page.with_look(keys, found, began)


class Errand(Generic[K, V]):
    """One turn's wishes for a book, and the reads that it begins for them: each at most a few times."""

    def __init__(self, book: Book[K, V], wanted: Wanted[K], clock: Clock) -> None:
        self._book, self._wanted, self._clock = book, wanted, clock
        self._begun: dict[str, int] = {}

    @property
    def running_since(self) -> float | None:
        """Since when the read that it waits for is under way."""
        look = self._awaited()
        return look.running_since if look else None

    def go_on(self) -> bool | None:
        """True: all is there. False: a read that it began failed. None: it waits for one."""
        look = self._awaited()
        if look is None:
            return True
        if look.running_since is not None:
            return None
        name = "sweep" if look is self._book.sweep else "narrow"
        tries = self._begun.get(name, 0)
        if tries and (look.failed or tries == _TRIES):
            return False
        self._begun[name] = tries + 1
        if look is self._book.sweep:
            look.start()
        else:
            self._book.look(self._book.page.stale(self._wanted.records, self._clock.now()))
        return None

    def _awaited(self) -> BackgroundRead[None] | None:
        """The read that is still to be done; None when all is there."""
        page, now = self._book.page, self._clock.now()
        if self._wanted.swept is not None and not page.is_swept(self._wanted.swept, now):
            return self._book.sweep
        return self._book.narrow if page.stale(self._wanted.records, now) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[K, V]):
    """`records` stays the same object as long as nothing in it changed. Before the first sweep all is of time 0."""

    records: MappingProxyType[K, V] = field(default_factory=lambda: MappingProxyType({}))
    times: ReadTimes[K] = field(default_factory=lambda: ReadTimes(swept=0.0))

    def with_sweep(self, found: Mapping[K, V], began: float, now: float) -> "Page[K, V]":
        """All of them were read. What was looked at later than that stands; a time to come is of a wrong clock."""
        looked = {key: at for key, at in self.times.looked.items() if began < at <= now}
        records = dict(found)
        for key in looked:
            _put(records, key, self.records.get(key))
        return Page(records=self._same_as(records), times=ReadTimes(swept=began, looked=MappingProxyType(looked)))

    def with_look(self, wanted: Collection[K], found: Mapping[K, V], began: float) -> "Page[K, V]":
        """Just `wanted` were asked for, `found` is what came: one that did not come is gone."""
        news = {key: found.get(key) for key in {*wanted, *found} if self.times.at(key) <= began}
        times = replace(self.times, looked=MappingProxyType({**self.times.looked, **dict.fromkeys(news, began)}))
        changed = {key: value for key, value in news.items() if self.records.get(key) != value}
        if not changed:
            return replace(self, times=times)
        records = self.records.copy()
        for key, value in changed.items():
            _put(records, key, value)
        return Page(records=MappingProxyType(records), times=times)

    def stale(self, wanted: Mapping[K, float], now: float) -> frozenset[K]:
        """Those of `wanted` that were not read at the time (Unix s) beside them or later."""
        return frozenset(key for key, since in wanted.items() if not since <= self.times.at(key) <= now)

    def is_swept(self, since: float, now: float) -> bool:
        """All were read at `since` or later."""
        return self.times.swept > 0.0 and since <= self.times.swept <= now

    def _same_as(self, records: dict[K, V]) -> MappingProxyType[K, V]:
        """The old object for the same content; where it is another, records that did not change are the same ones."""
        before = self.records
        for key, value in records.items():
            old = before.get(key)
            if old is not value and old == value:
                records[key] = old
        is_same = len(records) == len(before) and all(before.get(key) is value for key, value in records.items())
        return before if is_same else MappingProxyType(records)


def _put(records: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        records.pop(key, None)
    else:
        records[key] = value
