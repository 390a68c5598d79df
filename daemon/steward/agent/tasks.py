"""Tasks of the agent's loop: parts that live and end together, work that is done once at a time, and what is worth
doing after each change, but not at the pace of those who make changes."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

K = TypeVar("K")


async def together(*parts: Coroutine[Any, Any, None]) -> None:
    """Run all; when the first one ends, or we are cancelled, end the others and raise its error, if it had one."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class OneEach(Generic[K]):
    """Work that is done once at a time for each key."""

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[None]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, key: K, work: Coroutine[Any, Any, None]) -> None:
        """Never blocks."""
        self._tasks[key] = asyncio.get_running_loop().create_task(work)
        self._tasks[key].add_done_callback(lambda _: self._tasks.pop(key, None))

    async def rest(self) -> None:
        """Until nothing is being done."""
        await asyncio.gather(*self._tasks.values())


class Debounced:
    """`what` is done at once, and after that at most every `every_s` seconds: then for all that was wished since.
    Without a running loop it is always done at once."""

    def __init__(self, what: Callable[[], None], every_s: float) -> None:
        self._what, self._every_s = what, every_s
        self._rest: asyncio.TimerHandle | None = None
        self._is_wished = False

    def wish(self) -> None:
        """Do it now, or when it is time again."""
        if self._rest is not None:
            self._is_wished = True
            return
        self._do()

    def now(self) -> None:
        """Do what is wished and not done yet: the process is about to end."""
        if self._rest is not None:
            self._rest.cancel()
            self._again()

    def _do(self) -> None:
        self._what()
        try:
            self._rest = asyncio.get_running_loop().call_later(self._every_s, self._again)
        except RuntimeError:
            self._rest = None

    def _again(self) -> None:
        self._rest = None
        if self._is_wished:
            self._is_wished = False
            self._do()
