"""A judge's knowledge of earlier looks: whether the check stands as failed, and its counters over time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

Notes = Mapping[str, tuple[float, ...]]
"""The notes that a check made for itself: by name, times (Unix s) or other numbers."""

NO_NOTES: Notes = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Counters as one look found them, at Unix seconds `at`."""

    at: float
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """`readings` are oldest first and end with the present look's; `now` is its time (Unix s). `notes` are what the
    check noted, the present look included; they outlive the agent, not the boot."""

    was_bad: bool = False
    now: float = 0.0
    readings: tuple[Reading, ...] = ()
    notes: Notes = field(default_factory=lambda: NO_NOTES)

    def growth(self, name: str, within_s: float) -> float:
        """How much a counter grew within the last `within_s` seconds. One that fell was reset: it grew from zero."""
        values = [r.values[name] for r in self._within(within_s) if name in r.values]
        pairs = pairwise(values)
        return sum(new - old if new >= old else new for old, new in pairs)

    def per_second(self, name: str, within_s: float) -> float:
        """The mean rate of `name` over the time that the readings of that window span; 0 with fewer than two."""
        times = [r.at for r in self._within(within_s) if name in r.values]
        span = times[-1] - times[0] if times else 0.0
        return self.growth(name, within_s) / span if span > 0 else 0.0

    def share(self, name: str, within_s: float) -> tuple[int, int]:
        """(looks in which it was not zero, looks that have it)."""
        values = [r.values[name] for r in self._within(within_s) if name in r.values]
        return sum(value != 0 for value in values), len(values)

    def _within(self, seconds: float) -> list[Reading]:
        """The window's readings, and the last one before it: growth since the window's begin needs it."""
        first = next((n for n, r in enumerate(self.readings) if r.at >= self.now - seconds), len(self.readings))
        return list(self.readings[max(first - 1, 0) :])
