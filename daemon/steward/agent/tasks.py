"""Task helpers for the agent's loop: work done once at a time, and debounced work."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

K = TypeVar("K")


class OneEach(Generic[K]):
    """Tasks, at most one for each key."""

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[None]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, key: K, work: Coroutine[Any, Any, None]) -> None:
        """Start the work of a key that has none under way, without blocking."""
        self._tasks[key] = asyncio.get_running_loop().create_task(work)
        self._tasks[key].add_done_callback(lambda _: self._tasks.pop(key, None))

    async def rest(self) -> None:
        """Wait for all tasks."""
        await asyncio.gather(*self._tasks.values())


class Debounced:
    """A call that happens at most every `every_s` seconds: at once on the first wish, then once for all later wishes.

    Without a running loop each wish calls at once.
    """

    def __init__(self, what: Callable[[], None], every_s: float) -> None:
        self._what, self._every_s = what, every_s
        self._rest: asyncio.TimerHandle | None = None
        self._is_wished = False

    def wish(self) -> None:
        """Call now, or when the interval is over."""
        if self._rest is not None:
            self._is_wished = True
            return
        self._call()

    def now(self) -> None:
        """Call now if a wish waits, because the process is about to end."""
        if self._rest is not None:
            self._rest.cancel()
            self._interval_over()

    def _call(self) -> None:
        self._what()
        try:
            self._rest = asyncio.get_running_loop().call_later(self._every_s, self._interval_over)
        except RuntimeError:
            self._rest = None

    def _interval_over(self) -> None:
        self._rest = None
        if self._is_wished:
            self._is_wished = False
            self._call()
