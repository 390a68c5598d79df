"""Do slow work beside the cycle: worker threads, and background reads whose last good result is kept."""

import logging
import queue
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from steward.ports import Clock

log = logging.getLogger(__name__)
T = TypeVar("T")
_Calls = queue.SimpleQueue[Callable[[], None] | None]
"""A queue of calls; None ends the thread that gets it."""


class Workers(Protocol):
    """A runner of calls, now or later."""

    def submit(self, call: Callable[[], None]) -> None: ...


class WorkerPool:
    """Threads that run calls in the given order, `size` at a time. A call that raises is logged and ends no thread.

    The threads end when the pool is no longer referenced and its calls are done.
    """

    def __init__(self, size: int, name: str) -> None:
        self._calls = _Calls()
        for number in range(size):
            threading.Thread(target=_run, args=(self._calls,), name=f"{name}-{number}", daemon=True).start()
        weakref.finalize(self, _end, self._calls, size).atexit = False

    def submit(self, call: Callable[[], None]) -> None:
        """Queue a call."""
        self._calls.put(call)


def _run(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        try:
            call()
        except Exception:
            log.exception("a call in a worker thread failed")
        del call  # free the picture that the call holds: otherwise each idle thread would keep one


def _end(calls: _Calls, threads: int) -> None:
    for _ in range(threads):
        calls.put(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResult(Generic[T]):
    """The result of a read, with the time when the read began (Unix s)."""

    value: T
    began: float


class BackgroundRead(Generic[T]):
    """A read beside the cycle. `start` begins one unless one is under way; `last` is the newest good result."""

    def __init__(self, name: str, read: Callable[[], T], pool: Workers, clock: Clock, done: Callable[[], None]) -> None:
        """Take the read. `done` is called after every read, by the pool's thread."""
        self._name, self._read, self._pool, self._clock, self._done = name, read, pool, clock, done
        self._lock = threading.Lock()
        self._running: float | None = None
        self._ended: float | None = None
        self.last: ReadResult[T] | None = None
        self.failed: str = ""
        """Why the newest read failed; empty if it succeeded."""

    @property
    def running_since(self) -> float | None:
        """Return since when a read is under way; None if none is."""
        with self._lock:
            return self._running

    def start(self) -> None:
        """Begin a read unless one is under way."""
        with self._lock:
            if self._running is not None:
                return
            self._running = self._clock.now()
        self._pool.submit(self._look)

    def tried(self, since: float) -> bool:
        """Return whether a read that began at or after `since` has ended, well or not."""
        with self._lock:
            ended = self._ended
        return ended is not None and since <= ended

    def fresh(self, since: float) -> ReadResult[T] | None:
        """Return the last good result, if its read began at or after `since` and no later one failed; else None."""
        with self._lock:
            last = None if self.failed else self.last
        return last if last is not None and since <= last.began else None

    def _look(self) -> None:
        """Read, and keep the result or the error."""
        began = self._running or self._clock.now()
        try:
            value = self._read()
        except Exception as error:
            self._end(self.last, began, str(error) or type(error).__name__)
        else:
            self._end(ReadResult(value=value, began=began), began, "")
        self._done()

    def _end(self, last: ReadResult[T] | None, began: float, failed: str) -> None:
        """Note the end of a read, all at once: a visible result must not look as if its read were still under way."""
        if failed and failed != self.failed:
            log.warning("cannot read %s: %s", self._name, failed)
        with self._lock:
            self.last, self.failed, self._running, self._ended = last, failed, None, began


class NewsLook(BackgroundRead[T]):
    """A background read that rings only for news: a bell after every read would never let the cycle rest."""

    def __init__(
        self,
        name: str,
        read: Callable[[], T],
        pool: Workers,
        clock: Clock,
        ring: Callable[[], None],
        news: Callable[[ReadResult[T]], object] = lambda seen: seen.value,
    ) -> None:
        """Take the read. `news` returns the part of a result whose change is news."""
        super().__init__(name, read, pool, clock, self._came)
        self._ring, self._news = ring, news
        self._told: object = None

    def _came(self) -> None:
        """Ring if the result differs from the last one."""
        news = self._news(self.last) if self.last is not None else None
        if news is not None and news != self._told:
            self._told = news
            self._ring()
