"""Wake the cycle."""

import threading
import time


class Bell:
    """The bell that wakes the cycle, which alone waits for it.

    Any thread may ring it. Several rings before a wait count as one.
    """

    def __init__(self) -> None:
        self._rung = threading.Event()
        self._since: float | None = None
        self._lock = threading.Lock()

    def ring(self) -> None:
        """Ring the bell."""
        with self._lock:
            if self._since is None:
                self._since = time.monotonic()
            self._rung.set()

    def wait(self, timeout_s: float) -> float | None:
        """Wait at most `timeout_s`; return when the bell first rang since the last wait (monotonic), or None."""
        self._rung.wait(max(timeout_s, 0.0))
        with self._lock:
            since, self._since = self._since, None
            self._rung.clear()
        return since

    @property
    def is_rung(self) -> bool:
        """Return whether the bell was rung since the last wait."""
        return self._rung.is_set()
