"""A clock that a test moves."""

from dataclasses import dataclass


@dataclass
class FakeClock:
    at: float = 1000.0
    set_by: float = 0.0

    def now(self) -> float:
        return self.at

    def steady(self) -> float:
        return self.at - self.set_by

    def set(self, by: float) -> None:
        """Somebody sets the clock; no time passes."""
        self.at += by
        self.set_by += by
