"""Seconds that a part of a deep check may take."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """`until` is on the monotonic clock of this machine."""

    until: float

    @classmethod
    def of(cls, seconds: float) -> "Budget":
        return cls(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """0 at least."""
        return max(0.0, self.until - time.monotonic())

    def part(self, share: float, *, most_s: float = float("inf")) -> "Budget":
        """`share` of what is left, `most_s` seconds at most."""
        return Budget.of(min(self.left_s * share, most_s))
