"""Read Slurm's nodes, or its jobs: all of them in sweeps, a few by name in narrow looks, both beside the cycle.

Sweeps come the less often the more they cost: a large site is not read all day long, a small one is seen quickly. At
most one sweep and one narrow look are under way. A late answer still counts.
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
"""How many costs of sweeps are kept. The least one counts, so that one slow sweep does not make the next ones rare."""
_COMMAND_S = 0.025
_RECORD_S = 0.0002
"""The most seconds that one record can cost; `_COMMAND_S` is for the command itself.

A sweep that took longer than its records can cost was slowed by a busy machine.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The pace of sweeps.

    Sweeps may take `share` of the time. The pause between two is `most_s` at most (seconds), or `least_s` if that is
    longer. Nodes and jobs have their own sweeps, each with this share: 1 % of a core for both.
    """

    least_s: float = 5.0
    most_s: float = 60.0
    share: float = 0.005

    def every(self, cost_s: float) -> float:
        """Return the seconds from one sweep to the next."""
        return max(self.least_s, min(self.most_s, cost_s / self.share))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted(Generic[K]):
    """The oldest reads of a book's records that a turn can use (Unix s).

    All records must have been read at `swept` or later (None: not all are needed), each of `records` at its own time or
    later.
    """

    swept: float | None = None
    records: Mapping[K, float] = field(default_factory=dict)


def cost_of(took_s: float, records: int) -> float:
    """Return the seconds that a sweep cost: the time it took, or the most that its records can cost if that is less."""
    return min(took_s, _COMMAND_S + records * _RECORD_S)


class Book(Generic[K, V]):
    """Slurm's nodes, or its jobs, with their reads.

    One thread asks for reads, and threads of the pool carry them out. Any thread may read `page`.
    """

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
        """Take the functions that read all or some records, and `came`.

        `came` is called after each read, also a failed one, with whether a sweep brought news.
        """
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
        """Return the cost of a sweep in seconds; 0 before the first one."""
        return min(self._costs, default=0.0)

    def look(self, keys: Collection[K]) -> None:
        """Begin to read these records again, unless a narrow look is under way."""
        if self.narrow.running_since is None:
            self._keys = frozenset(keys)
            self.narrow.start()

    def _sweep(self) -> None:
        """Read all records into the page."""
        began, started = self._clock.now(), time.monotonic()
        found = self._read_all()
        self._costs.append(cost_of(time.monotonic() - started, len(found)))
        with self._lock:
            before, self.page = self.page, self.page.with_sweep(found, began)
            self._news = self.page.records is not before.records

    def _swept(self) -> None:
        """Report the end of a sweep, with whether it brought news."""
        news, self._news = self._news, False
        self._came(news)

    def _look(self) -> None:
        """Read the wanted records into the page."""
        keys, began = self._keys, self._clock.now()
        found = self._read_some(keys)
        with self._lock:
            self.page = self.page.with_look(keys, found, began)


class Errand(Generic[K, V]):
    """The reads of a book that one turn waits for; each kind of read is tried a few times at most."""

    def __init__(self, book: Book[K, V], wanted: Wanted[K]) -> None:
        self._book, self._wanted = book, wanted
        self._begun: dict[str, int] = {}

    @property
    def running_since(self) -> float | None:
        """Return since when the awaited read is under way; None if no read is."""
        look = self._awaited()
        return look.running_since if look else None

    def go_on(self) -> bool | None:
        """Begin the next read that is needed.

        Return True if all records are there, False if a read failed, None while a read is under way.
        """
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
            self._book.look(self._book.page.stale(self._wanted.records))
        return None

    def _awaited(self) -> BackgroundRead[None] | None:
        """Return the read that is still needed; None if all records are there."""
        page = self._book.page
        if self._wanted.swept is not None and not page.is_swept(self._wanted.swept):
            return self._book.sweep
        return self._book.narrow if page.stale(self._wanted.records) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[K, V]):
    """The records of a book, and when each was read.

    `records` stays the same object while its content does not change. Before the first sweep, the time of all records
    is 0.
    """

    records: MappingProxyType[K, V] = field(default_factory=lambda: MappingProxyType({}))
    times: ReadTimes[K] = field(default_factory=lambda: ReadTimes(swept=0.0))

    def with_sweep(self, found: Mapping[K, V], began: float) -> "Page[K, V]":
        """Return the page after a sweep; a record that was looked at since the sweep began keeps that look."""
        looked = {key: at for key, at in self.times.looked.items() if began < at}
        records = dict(found)
        for key in looked:
            _put(records, key, self.records.get(key))
        return Page(records=self._same_as(records), times=ReadTimes(swept=began, looked=MappingProxyType(looked)))

    def with_look(self, wanted: Collection[K], found: Mapping[K, V], began: float) -> "Page[K, V]":
        """Return the page after a look at `wanted`; a wanted record that is missing in `found` is gone."""
        news = {key: found.get(key) for key in {*wanted, *found} if self.times.at(key) <= began}
        times = replace(self.times, looked=MappingProxyType({**self.times.looked, **dict.fromkeys(news, began)}))
        changed = {key: value for key, value in news.items() if self.records.get(key) != value}
        if not changed:
            return replace(self, times=times)
        records = self.records.copy()
        for key, value in changed.items():
            _put(records, key, value)
        return Page(records=MappingProxyType(records), times=times)

    def stale(self, wanted: Mapping[K, float]) -> frozenset[K]:
        """Return the wanted records whose last read is older than their time (Unix s)."""
        return frozenset(key for key, since in wanted.items() if self.times.at(key) < since)

    def is_swept(self, since: float) -> bool:
        """Return whether all records were read at `since` or later."""
        return self.times.swept > 0.0 and since <= self.times.swept

    def _same_as(self, records: dict[K, V]) -> MappingProxyType[K, V]:
        """Return the old object if the content is equal; else the new content, with old objects where equal."""
        before = self.records
        for key, value in records.items():
            old = before.get(key)
            if old is not value and old == value:
                records[key] = old
        is_same = len(records) == len(before) and all(before.get(key) is value for key, value in records.items())
        return before if is_same else MappingProxyType(records)


def _put(records: dict[K, V], key: K, value: V | None) -> None:
    """Set or remove one record."""
    if value is None:
        records.pop(key, None)
    else:
        records[key] = value
