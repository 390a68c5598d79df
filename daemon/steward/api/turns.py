"""Let readers wait: for their turn at a costly page, for the one running examination, for the end of a cycle."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from steward.workflows.doctor import DoctorLine
from steward.workflows.snapshot import Snapshot


class Turns:
    """A limit on concurrent requests for costly pages.

    `at_once` requests run, and `waiting` more wait for at most `wait_s`; any further one is answered with 503.
    """

    def __init__(self, *, at_once: int, waiting: int, wait_s: float = 20.0) -> None:
        self._turn, self._wait_s = asyncio.Semaphore(at_once), wait_s
        self._most, self._here = at_once + waiting, 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it. Raises HTTPException if too many requests are ahead."""
        if self._here >= self._most:
            raise _later()
        self._here += 1
        try:
            await self._come()
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._here -= 1

    async def _come(self) -> None:
        try:
            async with asyncio.timeout(self._wait_s):
                await self._turn.acquire()
        except TimeoutError as error:
            raise _later() from error

    def route(self, path: str, page: Callable[[Request], Response]) -> Route:
        """Return a route that serves the page in a thread, after waiting for a turn."""

        async def in_turn(request: Request) -> Response:
            async with self.turn():
                return await run_in_threadpool(page, request)

        return Route(path, in_turn)


def _later() -> HTTPException:
    return HTTPException(503, "too many requests for such pages now: try again later")


_FRESH_S = 5.0


class Examination:
    """The doctor's examination: one at a time, in a thread.

    A request that comes meanwhile, or within `fresh_s` after the end, gets the same lines.
    """

    def __init__(self, examine: Callable[[], Sequence[DoctorLine]], *, fresh_s: float = _FRESH_S) -> None:
        self._examine, self._fresh_s = examine, fresh_s
        self._turn = asyncio.Lock()
        self._lines: Sequence[DoctorLine] = ()
        self._fresh_until = 0.0

    async def lines(self) -> Sequence[DoctorLine]:
        loop = asyncio.get_running_loop()
        async with self._turn:
            if loop.time() >= self._fresh_until:
                self._lines = await run_in_threadpool(self._examine)
                self._fresh_until = loop.time() + self._fresh_s
            return self._lines


class News:
    """A signal to waiting readers that a cycle ended. Awaited in the event loop, sent from the cycle's thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event = asyncio.Event()
        self.waiters = 0

    def came(self, _snapshot: Snapshot) -> None:
        if self._loop is not None and self.waiters:
            self._loop.call_soon_threadsafe(self._wake)

    async def wait(self, timeout_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.waiters += 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._event.wait()
        finally:
            self.waiters -= 1

    def _wake(self) -> None:
        self._event.set()
        self._event = asyncio.Event()
