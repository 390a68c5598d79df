"""Blocking calls for asyncio, in daemon threads: a hung one is left behind and never waited for, not even at exit."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from steward.adapters.crew import Crew
from steward.ports import Retryable

T = TypeVar("T")
_CREW = Crew()
"""Of this process."""


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


class _Call(Generic[T]):
    """One call: runs in a thread, reports to its loop, and frees its place when it has really ended."""

    def __init__(self, what: Callable[[], T], release: Callable[[], None]) -> None:
        self._what = what
        self._release = release
        self._loop = asyncio.get_running_loop()
        self._outcome: asyncio.Future[T] = self._loop.create_future()

    def start(self, name: str) -> "asyncio.Future[T]":
        try:
            _CREW.submit(self._run, name)
        except RuntimeError as error:
            self._release()
            raise Retryable(f"{name}: {error}") from None
        return self._outcome

    def _run(self) -> None:
        try:
            result = self._what()
        except BaseException as error:  # the waiting task gets it, whatever it is
            failure = error
            self._tell(lambda: self._fail(failure))
        else:
            self._tell(lambda: self._finish(result))

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
        self._release()
        if not self._outcome.done():
            self._outcome.set_exception(error)
