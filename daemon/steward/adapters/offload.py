"""Blocking calls for asyncio, in daemon threads: a hung one is left behind and never waited for, not even at exit.

The threads are used again, because to start one costs more CPU time than most of what it is started for.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from steward.ports import Retryable

PATIENCE_S = 0.01
"""Work that nobody has taken for so long gets a thread of its own: those there may hang."""
KEPT = 2
"""So many wait for more; the others end when there is nothing left to do."""

Work = Callable[[], None]


class Crew:
    """Does what it is given, in turn, with as few threads as go on with it; never waits for one that hangs."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._lock = threading.Condition()
        self._waiting: deque[tuple[str, Work]] = deque()
        self._threads = self._idle = self._taken = 0
        self._relief_by: asyncio.AbstractEventLoop | None = None

    def submit(self, work: Work, name: str) -> None:
        """From a running loop. Raises RuntimeError when there is no thread and none can be started."""
        with self._lock:
            if not self._threads:
                self._start()
            self._waiting.append((name, work))
            if len(self._waiting) <= self._idle:
                self._lock.notify()
            else:
                self._relieve_later()

    def _relieve_later(self) -> None:
        loop = asyncio.get_running_loop()
        if self._relief_by is not loop:
            self._relief_by = loop
            loop.call_later(self._patience_s, self._relieve, self._taken)

    def _relieve(self, taken: int) -> None:
        """Start one more where nothing was taken meanwhile."""
        with self._lock:
            self._relief_by = None
            if not self._waiting:
                return
            if self._taken == taken:
                with contextlib.suppress(RuntimeError):  # none to be had now: tried again as long as work waits
                    self._start()
            self._relieve_later()

    def _start(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()
        self._threads += 1

    def _work(self) -> None:
        own = threading.current_thread()
        while (turn := self._next()) is not None:
            own.name, work = turn
            work()
            del turn, work  # what they hold is not kept while nothing is to be done

    def _next(self) -> tuple[str, Work] | None:
        """The next piece of work, waited for; None when there are enough that wait."""
        with self._lock:
            while not self._waiting:
                if self._idle >= KEPT:
                    self._threads -= 1
                    return None
                self._idle += 1
                self._lock.wait()
                self._idle -= 1
            self._taken += 1
            return self._waiting.popleft()


T = TypeVar("T")
_CREW = Crew()
"""The threads of this process."""


class Threads:
    """At most `limit` calls at once. A hung call keeps its place until it ends, so that threads never pile up."""

    def __init__(self, limit: int) -> None:
        self._free = asyncio.Semaphore(limit)

    async def call(self, what: Callable[[], T], *, name: str, timeout_s: float) -> T:
        """The outcome of `what()`. Raises Retryable after `timeout_s` seconds, whatever `what` raises otherwise."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._free.acquire()
                return await _Call(what, self._free.release).start(name)
        except TimeoutError:
            raise Retryable(f"{name}: no answer within {timeout_s:g} s") from None


class PerUser:
    """Threads for each user: what he makes hang holds up nobody else. Kept for good, as a hung call keeps its place."""

    def __init__(self, threads: Callable[[], Threads]) -> None:
        self._threads = threads
        self._of: dict[int, Threads] = {}

    def of(self, uid: int) -> Threads:
        if uid not in self._of:
            self._of[uid] = self._threads()
        return self._of[uid]


class _Call(Generic[T]):
    """One call: runs in a thread, reports to its loop, and frees its place when it has really ended."""

    def __init__(self, what: Callable[[], T], release: Callable[[], None]) -> None:
        self._what = what
        self._release = release
        self._loop = asyncio.get_running_loop()
        self._outcome: asyncio.Future[T] = self._loop.create_future()

    def start(self, name: str) -> "asyncio.Future[T]":
        outcome = self._outcome
        try:
            _CREW.submit(self._run, name)
        except RuntimeError as error:
            self._release()
            raise Retryable(f"{name}: {error}") from None
        return outcome

    def _run(self) -> None:
        try:
            result = self._what()
        except BaseException as error:  # the waiting task gets it, whatever it is
            self._tell(partial(self._fail, error))
        else:
            self._tell(partial(self._finish, result))

    def _tell(self, what: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:
            return  # the loop is closed: the daemon is going down and nobody waits any more

    def _finish(self, result: T) -> None:
        self._release()
        if not self._outcome.done():
            self._outcome.set_result(result)

    def _fail(self, error: BaseException) -> None:
        """Told last: the error knows our frames, and is freed with whoever asked because we do not know it any more."""
        self._release()
        outcome = self._outcome
        del self._outcome
        if not outcome.done():
            outcome.set_exception(error)
