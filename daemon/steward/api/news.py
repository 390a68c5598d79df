"""Word for readers who wait: a cycle ended."""

import asyncio
import contextlib

from steward.workflows.snapshot import Snapshot


class News:
    """Tells waiting readers that a cycle ended. Waited for in the loop, told from the cycle's thread."""

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
