"""The bell that wakes the cycle. Any number of rings before it looks are one."""

import threading
import time


class Bell:
    """Rung by anybody, from any thread; waited for by the cycle alone."""

    def __init__(self) -> None:
        self._rung = threading.Event()
        self._since: float | None = None
        self._lock = threading.Lock()

    def ring(self) -> None:
        with self._lock:
            if self._since is None:
                self._since = time.monotonic()
            self._rung.set()

    def wait(self, timeout_s: float) -> float | None:
        """Wait at most `timeout_s`. The monotonic time of the first ring since the last wait, or None for lateness."""
        self._rung.wait(max(timeout_s, 0.0))
        with self._lock:
            since, self._since = self._since, None
            self._rung.clear()
        return since

    @property
    def is_rung(self) -> bool:
        return self._rung.is_set()
