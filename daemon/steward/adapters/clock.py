"""The clock of a daemon."""

import time
from collections.abc import Callable

SLEWED_S = 10.0
"""A clock that was set back by up to this much goes at half speed until the system's clock has caught up."""


def steady_now() -> float:
    """Return the seconds since the boot, which go on while the machine sleeps and which no command can set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SystemClock:
    """The system's clock, which goes slower for a while when it was set back a little, as time servers do.

    Only a clock that was set back by more than `SLEWED_S` shows an earlier time than before.
    """

    def __init__(self, read: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._read, self._steady = read, steady
        self._last, self._steady_last = 0.0, steady()

    def now(self) -> float:
        at, steady = self._read(), self._steady()
        # a clock that stood still would keep what was read of Slurm fresh, and never reach a deadline
        slow = self._last + (steady - self._steady_last) / 2
        self._last = slow if at < slow and self._last - at <= SLEWED_S else at
        self._steady_last = steady
        return self._last
