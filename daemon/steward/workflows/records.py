"""Keep Slurm's nodes and jobs from turn to turn, each read as often as it is needed.

A hung Slurm must not hang Steward: reads run beside the cycle. After a time limit, a shorter one if a shim waits, the
picture is OLD and the cycle continues. The next turn uses the late answer, unless its records were changed or asked
about since the read began.
"""

import threading
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.model.observed import Freshness, Subject
from steward.ports import Clock, SlurmPort
from steward.workflows.attention import Attention
from steward.workflows.book import Book, Errand, Pace, Wanted
from steward.workflows.pool import Workers

K = TypeVar("K", bound=Hashable)

BUSY_SHARE = 0.05
"""The share of a core for each of the two sweeps while work is open."""
_POLL_S = 0.2
_LATE_S = 5.0
_MOVES_S = 5.0
"""For this time after an action each turn reads how far Slurm is with it."""
_AWAITED_S = 0.1
"""Records for a waiting shim are read at most this often: its answer must not wait for one read after another."""
_HURRY_S = 5.0
"""During a recovery, or just after an action, an expensive sweep is put off by this time or more.

It would take the processor that the recovery needs.
"""
_RECOVERY_S = 1.0
"""The longest time of a recovery: reads that only follow the clock wait this long at most."""
_FEW, _MANY, _PART = 32, 400, 4
"""How many records may be read by name: up to `_FEW`, or a quarter of the book if that is more, and never over `_MANY`.

For more records a sweep costs less.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The time limits of a cycle's wait for Slurm, and the periods of other reads, in seconds.

    - `usual`, `asked`: the limit of the wait; `asked` while a shim waits
    - `partitions_seldom`: while partitions only show slurmctld's last start and the limits of jobs
    - `close`: a record that was read this shortly before the turn, and after the request for it, is not read again; a
      change of Slurm reads its record once more right before the write
    - `costly`: a sweep that costs more is put off during a recovery
    """

    usual: float = 11.0
    asked: float = 2.5
    provider: float = 15.0
    provider_busy: float = 1.0
    partitions: float = 5.0
    partitions_seldom: float = 60.0
    settings: float = 60.0
    reservations: float = 60.0
    reservations_busy: float = 1.0
    close: float = 0.3
    costly: float = 0.05
    sweep: Pace = field(default_factory=Pace)
    sweep_busy: Pace = field(default_factory=lambda: Pace(least_s=1.0, share=BUSY_SHARE))


class Records:
    """Slurm's nodes and jobs. One thread calls `look` and `confirm`; any thread may call `changed`."""

    def __init__(
        self,
        slurm: SlurmPort,
        *,
        pool: Workers,
        clock: Clock,
        patience: Patience,
        ring: Callable[[], None],
        is_asked: Callable[[], bool],
    ) -> None:
        """Take the ports. `ring` is called for news that no turn waits for; `is_asked` returns whether a shim waits."""
        self._clock, self._patience, self._ring, self._is_asked = clock, patience, ring, is_asked
        self._news = threading.Condition()
        self._lock = threading.Lock()
        make = partial(Book, pool=pool, clock=clock, came=self._came)
        self.nodes: Book[NodeName, Node] = make("nodes", sweep=slurm.nodes, some=slurm.nodes)
        self.jobs: Book[JobId, Job] = make("jobs", sweep=slurm.jobs, some=slurm.jobs)
        self._touched_nodes: dict[NodeName, float] = {}
        self._touched_jobs: dict[JobId, float] = {}
        self._all_touched = 0.0
        self._since = self._close = self._asked = self._open = self._awaited = self._acted = 0.0
        self._late = self._waiting = False
        self._hurried_since: float | None = None

    @property
    def _books(self) -> tuple[Book[Any, Any], ...]:
        return self.nodes, self.jobs

    def changed(self, subject: Subject | None) -> None:
        """Note that these records were changed (None: unknown which), so that earlier reads of them are old."""
        now = self._clock.now()
        with self._lock:
            self._acted = now
            if subject is None:
                self._all_touched = now
            else:
                self._touched_nodes |= dict.fromkeys(subject.nodes, now)
                self._touched_jobs |= dict.fromkeys(subject.jobs, now)

    def look(self, about: Attention, *, asked: float, anew: float, busy: bool, alive: Callable[[], None]) -> Freshness:
        """Read the records that the turn needs, and begin the sweeps that are due.

        `asked`: when the last shim asked; `anew`: when slurmctld last started (Unix s).
        """
        now = self._clock.now()
        self._forget_touched()
        self._since = min(now, max(asked, now - _LATE_S)) if self._late else now
        self._close = min(self._since, now - self._patience.close)
        self._asked = max(self._close, min(asked, now))
        self._open = self._since if now - self._acted < _MOVES_S else self._close
        self._awaited = min(self._open, now - _AWAITED_S)
        self._note_hurry(about.hurried or now - self._acted < _HURRY_S, now)
        pace = self._patience.sweep_busy if busy else self._patience.sweep
        nodes, jobs = self._wanted(about, anew, now)
        self._sweep_if_due(self.nodes, nodes, pace, now)
        self._sweep_if_due(self.jobs, jobs, pace, now)
        return self._read(nodes, jobs, alive)

    def confirm(self, subject: Subject, alive: Callable[[], None]) -> Freshness | None:
        """Read those records that were not read in this turn; return the freshness; None if all were read."""
        now = self._clock.now()
        stale_nodes = self.nodes.page.stale(_as_needed(subject.nodes, self._close, self._touched_nodes))
        stale_jobs = self.jobs.page.stale(_as_needed(subject.jobs, self._close, self._touched_jobs))
        if not stale_nodes and not stale_jobs:
            return None
        nodes = _by_name_or_all(dict.fromkeys(stale_nodes, now), len(self.nodes.page.records), now)
        jobs = _by_name_or_all(dict.fromkeys(stale_jobs, now), len(self.jobs.page.records), now)
        return self._read(nodes, jobs, alive)

    def confirm_all(self, alive: Callable[[], None]) -> Freshness:
        """Read all nodes and jobs."""
        now = self._clock.now()
        return self._read(Wanted(swept=now), Wanted(swept=now), alive)

    def due_in(self, *, busy: bool) -> float:
        """Return the seconds until the next sweep is due; one under way does not count, because it rings at its end."""
        now, pace = self._clock.now(), self._patience.sweep_busy if busy else self._patience.sweep
        idle = [book for book in self._books if book.sweep.running_since is None]
        dues = [self._due(book, pace) - now for book in idle]
        return max(min(dues, default=pace.least_s), 0.0)

    def _read(self, nodes: Wanted[NodeName], jobs: Wanted[JobId], alive: Callable[[], None]) -> Freshness:
        """Wait for the wanted records; return how fresh the picture is then."""
        errands: list[Errand[Any, Any]] = [
            Errand(self.nodes, nodes),
            Errand(self.jobs, jobs),
        ]
        return self._freshness() if self._await(errands, alive) else self._freshness_after_failure()

    def _wanted(self, about: Attention, anew: float, now: float) -> tuple[Wanted[NodeName], Wanted[JobId]]:
        """Return the nodes and jobs that the turn needs, and since when they must have been read."""
        nodes_since, jobs_since = self._whole_since(self.nodes, anew, now), self._whole_since(self.jobs, anew, now)
        recent = now - self._patience.sweep_busy.every(self.jobs.cost_s)
        if about.unseen:
            jobs_since = recent if jobs_since is None else max(jobs_since, recent)
        if about.lost and self.jobs.cost_s <= self._patience.costly:
            jobs_since = max(jobs_since or 0.0, about.lost)
        new = {id: at for id, at in about.new.items() if id not in about.asked.jobs | about.open.jobs}
        nodes = self._narrowed(self.nodes, about.asked.nodes, about.open.nodes, self._touched_nodes, now)
        jobs = self._narrowed(self.jobs, about.asked.jobs, about.open.jobs, {**new, **self._touched_jobs}, now)
        return _also(nodes, nodes_since), _also(jobs, jobs_since)

    def _narrowed(
        self, book: Book[K, Any], asked: Collection[K], open: Collection[K], at: Mapping[K, float], now: float
    ) -> Wanted[K]:
        """Return the records to read by name; if they are too many, a sweep for those that are only open."""
        urgent = {**at, **_as_needed(asked, self._asked, at)}
        both = urgent | {key: max(self._awaited if key in asked else self._open, urgent.get(key, 0.0)) for key in open}
        size = len(book.page.records)
        if len(both) <= _most(size):
            return Wanted(records=both)
        recent = now - self._patience.sweep_busy.every(book.cost_s)
        return _also(_by_name_or_all(urgent, size, max(urgent.values(), default=recent)), recent)

    def _whole_since(self, book: Book[Any, Any], anew: float, now: float) -> float | None:
        """Return since when the whole book must have been read; None if records by name are enough."""
        times = book.page.times
        # The book was never read, or its last sweep failed or is too old.
        if book.sweep.failed or times.swept == 0.0 or now - times.swept > self._longest(book):
            return self._since
        # Any record may have changed, or slurmctld restarted and may have forgotten records.
        since = max(self._all_touched, anew)
        return since if times.swept < since <= now else None

    def _longest(self, book: Book[Any, Any]) -> float:
        """Return the age beyond which a sweep is worth nothing: by then the next one was due and had its time."""
        return self._patience.sweep.every(book.cost_s) + self._patience.usual + _LATE_S

    def _sweep_if_due(self, book: Book[K, Any], wanted: Wanted[K], pace: Pace, now: float) -> None:
        """Begin a sweep beside the cycle if it is due, unless the turn waits for one anyway."""
        if wanted.swept is None and now >= self._due(book, pace):
            book.sweep.start()

    def _due(self, book: Book[Any, Any], pace: Pace) -> float:
        """Return when the next sweep is due (Unix s)."""
        swept, cost_s = book.page.times.swept, book.cost_s
        due = swept + pace.every(cost_s)
        if self._hurried_since is None or cost_s <= self._patience.costly:
            return due
        # When a repair begins, the pace quickens, and a sweep is late at once. It waits for the end of the hurry all
        # the same, but not longer than the quiet pace allows.
        return min(max(due, self._hurried_since), swept + self._patience.sweep.every(cost_s)) + _HURRY_S

    def may_wait(self, now: float) -> bool:
        """Return whether a recovery began a moment ago, so that reads without urgency should wait."""
        return self._hurried_since is not None and now < self._hurried_since + _RECOVERY_S

    def _note_hurry(self, hurried: bool, now: float) -> None:
        """Note whether a recovery is under way, and since when."""
        since = now if self._hurried_since is None else self._hurried_since
        self._hurried_since = since if hurried else None

    def _await(self, errands: list[Errand[Any, Any]], alive: Callable[[], None]) -> bool:
        """Wait until all records are there; return False if a read failed or the time limit has passed."""
        self._waiting, self._late = True, False
        try:
            while True:
                states = [errand.go_on() for errand in errands]
                if False in states:
                    return False
                if all(states):
                    return True
                if self._waits_too_long(errands):
                    self._late = True
                    return False
                alive()
        finally:
            self._waiting = False

    def _waits_too_long(self, errands: list[Errand[Any, Any]]) -> bool:
        """Return whether the time limit has passed; otherwise wait a moment for the reads under way."""
        with self._news:
            running = [at for errand in errands if (at := errand.running_since) is not None]
            limit = self._patience.asked if self._is_asked() else self._patience.usual
            if running and self._clock.now() - min(running) >= limit:
                return True
            if running:
                self._news.wait(_POLL_S)
        return False

    def _came(self, news: bool) -> None:
        """Wake the waiting turn; if no turn waits, ring for news and for a late answer."""
        with self._news:
            self._news.notify_all()
            if not self._waiting and (news or self._late):
                self._ring()

    def _freshness(self) -> Freshness:
        """Return the freshness after a good read: FRESH if the last sweeps succeeded, too."""
        is_good = all(not book.sweep.failed and book.page.times.swept > 0.0 for book in self._books)
        return Freshness.FRESH if is_good else self._freshness_after_failure()

    def _freshness_after_failure(self) -> Freshness:
        """Return the freshness after a failed read: OLD, or ABSENT if a book was never read."""
        has_all = all(book.page.times.swept > 0.0 for book in self._books)
        return Freshness.OLD if has_all else Freshness.ABSENT

    def _forget_touched(self) -> None:
        """Forget changed records that were read again since the change."""
        with self._lock:
            self._touched_nodes = _not_read_since(self._touched_nodes, self.nodes)
            self._touched_jobs = _not_read_since(self._touched_jobs, self.jobs)


def _as_needed(keys: Collection[K], since: float, touched: Mapping[K, float]) -> dict[K, float]:
    """Return since when each record must have been read."""
    return {key: max(since, touched.get(key, 0.0)) for key in keys}


def _not_read_since(touched: dict[K, float], book: Book[K, Any]) -> dict[K, float]:
    """Return the changed records that were not read again since the change."""
    stale = book.page.stale(touched)
    return {key: at for key, at in touched.items() if key in stale}


def _most(size: int) -> int:
    """Return how many records of a book of this size may be read by name."""
    return min(max(_FEW, size // _PART), _MANY)


def _by_name_or_all(wanted: Mapping[K, float], size: int, since: float) -> Wanted[K]:
    """Return a wish for the records by name if they are few; otherwise for the whole book read since `since`."""
    return Wanted(records=wanted) if len(wanted) <= _most(size) else Wanted(swept=since)


def _also(wanted: Wanted[K], swept: float | None) -> Wanted[K]:
    """Return the wish, with the whole book read at `swept` or later."""
    times = [at for at in (wanted.swept, swept) if at is not None]
    return Wanted(swept=max(times, default=None), records=wanted.records)
