"""An event loop whose clock a test moves: a time limit runs out when the test says so, however busy the machine is."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from tests.fakes.until import FACT_S


class StillLoop(asyncio.SelectorEventLoop):
    """An event loop that is told the time. Sockets and threads are real; what is due waits for `advance`."""

    def __init__(self) -> None:
        self._now = 1000.0
        super().__init__()

    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds


def run_still(story: Callable[[StillLoop], Coroutine[Any, Any, None]]) -> None:
    """Run a story in a loop whose clock stands still. AssertionError if the story is not over after `FACT_S` real s."""
    with asyncio.Runner(loop_factory=StillLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, StillLoop)

        async def told() -> None:
            task, overdue = asyncio.current_task(), threading.Event()

            def end() -> None:
                overdue.set()
                loop.call_soon_threadsafe(task.cancel if task is not None else loop.stop)

            alarm = threading.Timer(FACT_S, end)
            alarm.daemon = True
            alarm.start()
            try:
                await story(loop)
            except asyncio.CancelledError:
                assert not overdue.is_set(), f"not over within {FACT_S:g} s"
                raise
            finally:
                alarm.cancel()

        runner.run(told())


async def turns(number: int) -> None:
    """Let the loop turn: what is due by its clock is done."""
    for _ in range(number):
        await asyncio.sleep(0)
