"""A clock that a test moves."""

from dataclasses import dataclass


@dataclass
class FakeClock:
    at: float = 1000.0

    def now(self) -> float:
        return self.at
