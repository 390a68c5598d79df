"""A loop whose clock leaps to its next timer, for stories without sockets and threads: they take no time, and each time
the same."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any


class _Leaping(selectors.SelectSelector):
    now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found:
            assert timeout is not None, "the story waits for what cannot come"
            self.now += timeout
        return found


def instantly(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `story` to its end."""

    def loop() -> asyncio.AbstractEventLoop:
        leaping = _Leaping()
        made = asyncio.SelectorEventLoop(leaping)
        made.time = lambda: leaping.now  # type: ignore[method-assign]
        return made

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(story())
