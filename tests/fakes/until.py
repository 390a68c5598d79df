"""Waiting for another thread, with a limit."""

import time
from collections.abc import Callable


def until(sentence: str, true: Callable[[], object], limit_s: float = 30.0) -> None:
    """Returns when `true()` is; AssertionError naming `sentence` when that takes too long."""
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, f"not within {limit_s:g} s: {sentence}"
        time.sleep(0.002)
