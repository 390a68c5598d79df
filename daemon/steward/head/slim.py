"""Return memory that a flood of requests took to the system when it is over.

With `suit_many_nodes`, Python hardly ever collects the oldest cyclic garbage, and glibc keeps free memory between
pieces in use.
"""

import ctypes
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

GREW = 64 << 20
"""A growth by this many bytes is worth a collection, which stops the process for a moment.

On a busy machine it takes seconds in which no agent is answered. So first what is free already is returned, without
stopping anything.
"""
EVERY_S = 300.0


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def trim() -> None:
    """Have the C library return what is free; other threads continue meanwhile."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def give_back() -> None:
    """Collect all garbage and return its memory."""
    gc.collect()
    trim()


class Slim:
    """Returns memory now and then. What the process needs normally is learnt from what is left each time."""

    def __init__(
        self,
        *,
        size: Callable[[], int] = resident,
        trim: Callable[[], None] = trim,
        give_back: Callable[[], None] = give_back,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._size, self._trim, self._give_back, self._monotonic = size, trim, give_back, monotonic
        self._usual, self._at = size(), monotonic()

    def look(self) -> bool:
        """Return memory to the system if it grew much since the last time. Return whether that was done."""
        now, size = self._monotonic(), self._size()
        if size < self._usual + GREW or now < self._at + EVERY_S:
            return False
        self._trim()
        if self._size() >= self._usual + GREW:
            self._give_back()
        self._usual, self._at = self._size(), now
        return True
