"""How Python runs the head, whose memory is pictures of thousands of nodes that are made anew all the time.

Measured with 1,200 nodes on two busy cores (`make bench-capacity`): one read of the API in a hundred took 300 to 390 ms
with Python's defaults, 90 ms so. The difference were collections of cyclic garbage, up to 440 ms each. A head makes
little of that: a picture is freed when the next one takes its place.
"""

import ctypes
import gc
import sys

_TURN_S = 0.001
"""A thread that computes keeps the others waiting for this long (Python's default: 5 ms)."""
_GARBAGE = (50_000, 50, 100)
"""New objects before a collection of the young, and how many of these before older ones are looked at."""

_MALLOC = ((-8, 2), (-3, 1 << 17), (-1, 1 << 18))
"""glibc's M_ARENA_MAX, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD: heaps, and bytes."""


def suit_many_nodes() -> None:
    """For the rest of the process. What exists already is taken to stay."""
    sys.setswitchinterval(_TURN_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    _return_memory()


def _return_memory() -> None:
    """What is large, as Slurm's answers and pages of the API are, goes back to the system when it is freed: glibc would
    keep room for it in a heap of each thread. Another C library may do as it likes."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        for what, value in _MALLOC:
            library.mallopt(what, value)
