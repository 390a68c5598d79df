"""Checks that look at the same thing at the same moment look once."""

import threading
import time
from collections.abc import Callable

from steward.model.probe import Probe, Raw

KEEP_S = 0.5
"""Shorter than every check's `confirm_s`: a look that confirms another must be a new one (a test compares)."""


class _Look:
    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.raw = Raw()
        self.at = float("-inf")
        """When it ended, on the monotonic clock."""


class SharedLooks:
    """Gives an answer that is younger than KEEP_S again. While one thread looks, others that ask the same wait for it,
    as long as it takes: they would hang as well."""

    def __init__(self, look: Callable[[Probe], Raw], now: Callable[[], float] = time.monotonic) -> None:
        self._look = look
        self._now = now
        self._looks: dict[Probe, _Look] = {}
        self._table = threading.Lock()

    def __call__(self, probe: Probe) -> Raw:
        one = self._one(probe)
        with one.turn:
            if self._now() - one.at > KEEP_S:
                one.raw = self._look(probe)
                one.at = self._now()
            return one.raw

    def _one(self, probe: Probe) -> _Look:
        """The entry of a probe; entries of old looks that are over are dropped."""
        with self._table:
            old = self._now() - KEEP_S
            for known in [key for key, one in self._looks.items() if one.at < old and not one.turn.locked()]:
                if known != probe:
                    del self._looks[known]
            return self._looks.setdefault(probe, _Look())
