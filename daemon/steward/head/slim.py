"""Return memory to the system after a flood of requests.

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
"""A growth by this many bytes is worth a full collection of garbage.

A full collection stops the process, on a busy machine for seconds in which no agent is answered. So memory that is free
already is returned first, which stops nothing.
"""
EVERY_S = 300.0


def resident_bytes() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def trim() -> None:
    """Have the C library return free memory; other threads run on meanwhile."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def give_back() -> None:
    """Collect all garbage and return its memory."""
    gc.collect()
    trim()


class Slim:
    """The return of memory now and then. The size that is left each time counts as the usual size."""

    def __init__(
        self,
        *,
        size: Callable[[], int] = resident_bytes,
        trim: Callable[[], None] = trim,
        give_back: Callable[[], None] = give_back,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._size, self._trim, self._give_back, self._monotonic = size, trim, give_back, monotonic
        self._usual, self._at = size(), monotonic()

    def look(self) -> bool:
        """Return memory to the system if the process grew much beyond its usual size; return whether it did."""
        now, size = self._monotonic(), self._size()
        if size < self._usual + GREW or now < self._at + EVERY_S:
            return False
        self._trim()
        if self._size() >= self._usual + GREW:
            self._give_back()
        self._usual, self._at = self._size(), now
        return True
