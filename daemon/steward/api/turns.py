"""How many pages are made at once: who asks for many leaves time for the cycle, for agents and for orders."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Turns:
    """`at_once` are made, `waiting` wait for at most `wait_s`; whoever comes then is to come again (503)."""

    def __init__(self, *, at_once: int, waiting: int, wait_s: float = 20.0) -> None:
        self._turn, self._wait_s = asyncio.Semaphore(at_once), wait_s
        self._most, self._here = at_once + waiting, 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Raises HTTPException where too many are before."""
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
        """The page in its turn, in a thread."""

        async def in_turn(request: Request) -> Response:
            async with self.turn():
                return await run_in_threadpool(page, request)

        return Route(path, in_turn)


def _later() -> HTTPException:
    return HTTPException(503, "too many requests for such pages now: try again later")
