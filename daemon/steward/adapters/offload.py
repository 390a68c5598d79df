"""Blocking calls for asyncio, in daemon threads: a hung one is left behind, even at exit.

The threads are reused, because starting one costs more CPU time than most calls.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

from steward.ports import Retryable

PATIENCE_S = 0.01
"""Work that waited this long gets a new thread, since the existing ones may hang."""
KEPT = 2
"""The number of threads that wait for more work; the others end when there is none."""

Told = Callable[[], None]
"""A callback in the loop with the outcome of a piece of work."""
Work = Callable[[], Told | None]


class Crew:
    """Threads that share one queue of work, as few as keep it moving; no work waits behind work that hangs.

    Pieces of work that come together are handed over together: one thread is woken for all of them, and the loop once
    for their outcomes.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._lock = threading.Condition()
        self._waiting: deque[tuple[str, asyncio.AbstractEventLoop, Work]] = deque()
        self._untold: list[tuple[asyncio.AbstractEventLoop, Told]] = []
        """The outcomes that were not reported yet."""
        self._threads = self._idle = self._given = self._taken = 0
        """The numbers of threads, of those that wait for work, and of pieces of work given and taken so far."""
        self._handing: asyncio.AbstractEventLoop | None = None
        """The loop that hands its work over at the end of its present turn."""
        self._relief_by: asyncio.AbstractEventLoop | None = None
        self._relief: asyncio.TimerHandle | None = None
        """The timer after which another thread helps, and its loop."""

    def submit(self, work: Work, name: str) -> None:
        """Hand work to the crew from a running loop.

        Raises RuntimeError if there is no thread and none can be started.
        """
        with self._lock:
            if not self._threads:
                self._start()
            self._given += 1
            loop = asyncio.get_running_loop()
            self._waiting.append((name, loop, work))
            if self._handing is not loop:
                self._handing = loop
                loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        """Wake a thread for all work given in this turn of the loop."""
        # An earlier wake-up would make the thread compete with the loop for the interpreter.
        with self._lock:
            self._handing = None
            if len(self._waiting) > self._idle or len(self._waiting) > 1:
                self._relieve_later()
            if self._waiting:
                self._lock.notify()

    def _relieve_later(self, known: int = 0) -> None:
        """Start the relief timer if this loop has none; `known` is how many pieces of work were given before."""
        loop = asyncio.get_running_loop()
        if self._relief_by is not loop:
            self._relief_by = loop
            self._relief = loop.call_later(self._patience_s, self._relieve, self._taken, known)

    def _relieve(self, taken: int, known: int) -> None:
        """Wake or start one more thread if no work was taken, or some of the first `known` pieces still wait.

        Then report the outcomes that wait to be reported.
        """
        with self._lock:
            self._relief_by = self._relief = None
            untold, self._untold = self._untold, []
            if self._waiting:
                if self._taken == taken or self._taken < known:
                    self._add_thread()
                self._relieve_later(self._given)
        _report_all(untold)

    def _add_thread(self) -> None:
        if self._idle:
            self._lock.notify()
            return
        with contextlib.suppress(RuntimeError):  # no thread can be started now: tried again as long as work waits
            self._start()

    def _start(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()
        self._threads += 1

    def _work(self) -> None:
        own = threading.current_thread()
        while (turn := self._next()) is not None:
            own.name, loop, work = turn
            self._report(loop, work())
            del turn, loop, work  # an idle thread must not keep what finished work refers to

    def _report(self, loop: asyncio.AbstractEventLoop, told: Told | None) -> None:
        """Report an outcome and the unreported ones before it; later, if work waits and the relief timer runs."""
        with self._lock:
            self._untold += [] if told is None else [(loop, told)]
            if self._waiting and self._relief_by is loop:
                return
            untold, self._untold = self._untold, []
        _report_all(untold, self._cancel_relief)

    def _cancel_relief(self) -> None:
        """Cancel the relief timer if no work or outcome is left, so that it does not wake the loop."""
        with self._lock:
            is_left = self._waiting or self._untold
            if self._relief is not None and not is_left and self._relief_by is asyncio.get_running_loop():
                self._relief.cancel()
                self._relief_by = self._relief = None

    def _next(self) -> tuple[str, asyncio.AbstractEventLoop, Work] | None:
        """Wait for the next piece of work and return it, or None if enough threads wait already."""
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


def _report_all(untold: Iterable[tuple[asyncio.AbstractEventLoop, Told]], then: Told = lambda: None) -> None:
    of_loop: dict[asyncio.AbstractEventLoop, list[Told]] = {}
    for loop, told in untold:
        of_loop.setdefault(loop, []).append(told)
    for loop, its in of_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: the daemon ends, and no task waits
            loop.call_soon_threadsafe(_call_each, (*its, then))


def _call_each(what: Iterable[Told]) -> None:
    for one in what:
        one()


T = TypeVar("T")
_CREW = Crew()
"""The threads of this process."""


class Threads:
    """A limit on calls in threads: at most `limit` at once.

    A hung call keeps its place until it ends, so that threads never pile up.
    """

    def __init__(self, limit: int, crew: Crew = _CREW) -> None:
        self._free, self._crew = asyncio.Semaphore(limit), crew

    async def call(self, what: Callable[[], T], *, name: str, timeout_s: float) -> T:
        """Return the outcome of `what()`. Raises Retryable after `timeout_s` seconds, else what `what` raises."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._free.acquire()
                return await _Call(what, self._free.release).start(name, self._crew)
        except TimeoutError:
            raise Retryable(f"{name}: no answer within {timeout_s:g} s") from None


class PerUser:
    """Threads for each user, so that one user's hung calls do not delay others.

    A user's threads are kept for good, since a hung call keeps its place.
    """

    def __init__(self, threads: Callable[[], Threads]) -> None:
        self._threads = threads
        self._of: dict[int, Threads] = {}

    def of(self, uid: int) -> Threads:
        if uid not in self._of:
            self._of[uid] = self._threads()
        return self._of[uid]


class _Call(Generic[T]):
    """One call: it runs in a thread, reports to its loop, and frees its place when it has really ended."""

    def __init__(self, what: Callable[[], T], release: Callable[[], None]) -> None:
        self._what = what
        self._release = release
        self._loop = asyncio.get_running_loop()
        self._outcome: asyncio.Future[T] = self._loop.create_future()

    def start(self, name: str, crew: Crew) -> "asyncio.Future[T]":
        outcome = self._outcome
        try:
            crew.submit(self._run, name)
        except RuntimeError as error:
            self._release()
            raise Retryable(f"{name}: {error}") from None
        return outcome

    def _run(self) -> Told:
        try:
            result = self._what()
        except BaseException as error:  # the waiting task gets it, whatever it is
            return partial(self._fail, error)
        return partial(self._finish, result)

    def _finish(self, result: T) -> None:
        self._release()
        if not self._outcome.done():
            self._outcome.set_result(result)

    def _fail(self, error: BaseException) -> None:
        """Report the error, as the last step."""
        self._release()
        outcome = self._outcome
        # The error's traceback refers to this object, and the outcome to the error. Without a reference back to the
        # outcome there is no cycle, and all of them are freed with the caller's reference.
        del self._outcome
        if not outcome.done():
            outcome.set_exception(error)
