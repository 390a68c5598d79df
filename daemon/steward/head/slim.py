"""Memory that a flood took goes back to the system when it is over.

Python collects the oldest cyclic garbage next to never where `suit_many_nodes` set it so, and glibc keeps what lies
between pieces that are in use.
"""

import ctypes
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

GREW = 64 << 20
"""So many bytes more than after the last time are worth a collection, which stops the process for a moment: on a busy
machine for seconds, in which it answers no agent. So first what is free already is returned, beside all else."""
EVERY_S = 300.0


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def trim() -> None:
    """Have the C library return what is free; other threads go on meanwhile."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def give_back() -> None:
    """Collect all garbage, and return it."""
    gc.collect()
    trim()


class Slim:
    """`look` now and then. What the process needs in peace is learnt from what is left each time."""

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
        """Give memory back if it grew much since the last time; return whether that was done."""
        now, size = self._monotonic(), self._size()
        if size < self._usual + GREW or now < self._at + EVERY_S:
            return False
        self._trim()
        if self._size() >= self._usual + GREW:
            self._give_back()
        self._usual, self._at = self._size(), now
        return True
