"""The clock of a daemon."""

import time
from collections.abc import Callable

STANDS_STILL_S = 10.0
"""A clock that was set back by up to this much stands still until the system's clock has caught up."""


class SystemClock:
    """The system's clock, which stands still for a while when it was set back a little, as time servers do.

    Only a clock that was set back by more than `STANDS_STILL_S` shows an earlier time than before.
    """

    def __init__(self, read: Callable[[], float] = time.time) -> None:
        self._read, self._last = read, 0.0

    def now(self) -> float:
        at = self._read()
        if not 0.0 < self._last - at <= STANDS_STILL_S:
            self._last = at
        return self._last
