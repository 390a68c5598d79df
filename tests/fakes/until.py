"""Waiting for a fact, with a limit that no machine needs: a test that passes does not wait for it."""

import asyncio
import time
from collections.abc import Callable

FACT_S = 60.0
LIMITS_S = (1.0, 10.0, FACT_S)
"""To run into: a longer one where what must begin before has not begun."""


def until(sentence: str, true: Callable[[], object], limit_s: float = FACT_S) -> None:
    """Returns when `true()` is, a fact of another thread; AssertionError naming `sentence` when that takes too long."""
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, f"not within {limit_s:g} s: {sentence}"
        time.sleep(0.002)


async def comes_true(sentence: str, true: Callable[[], object]) -> None:
    """The same for a fact of this thread's loop."""
    end = time.monotonic() + FACT_S
    while not true():
        assert time.monotonic() < end, f"not within {FACT_S:g} s: {sentence}"
        await asyncio.sleep(0.005)
