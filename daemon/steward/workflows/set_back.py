"""A clock that was set back: times of before are in the future now, and whatever waits for them would wait as long."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

from steward.model.memory import Memory

T = TypeVar("T")

NOTICED_S = 1.0
"""A smaller step back (NTP makes them) is let pass."""
_UNIX_TIMES = 1e9
"""Numbers larger than this are Unix times; no duration or count is."""


def earlier(value: T, by: float, above: float = _UNIX_TIMES, latest: float = math.inf) -> T:
    """The same value with every Unix time in it that is later than `above` `by` seconds earlier, at most `latest`."""

    def moved(one: Any) -> Any:
        if isinstance(one, float):
            return min(one - by, latest) if one > above else one
        if isinstance(one, Mapping):
            return MappingProxyType({key: moved(part) for key, part in one.items()})
        if isinstance(one, tuple):
            return tuple(moved(part) for part in one)
        if is_dataclass(one) and not isinstance(one, type):
            return replace(one, **{f.name: moved(getattr(one, f.name)) for f in fields(one) if f.init})
        return one

    return moved(value)  # type: ignore[no-any-return]


def last_stamp(memory: Memory) -> float:
    """When something was last remembered, by the clock of then (Unix s); 0 when nothing is. Only what was stamped on
    this host counts: agents' clocks may be ahead."""
    looks = (memory.looked, memory.head.marks or 0.0, memory.head.ends or 0.0)
    notes = (*memory.asked.values(), *memory.noted.values(), *looks, *(ask.at for ask in memory.asks.values()))
    steps = [case.entered for case in memory.cases.values()] + [slot.entered for slot in memory.slots.values()]
    jobs = (job.started or 0.0 for job in memory.jobs.values())
    return max(*notes, *steps, *jobs, *(incident.since for incident in memory.incidents.values()), 0.0)


class SetBacks:
    """Told the time again and again, it knows by how much the clock was set back since it was made, at `now`."""

    def __init__(self, now: float) -> None:
        self._last, self._noticed = now, 0.0
        self.by = 0.0
        """In all, seconds; less than it was by what passed from look to look."""

    def remember(self, at: float) -> None:
        """Note a time, `at`, that was reached before this object was made."""
        self._last = max(self._last, at)

    def note(self, now: float) -> float:
        """By how much it was set back since the last time; 0 for not at all."""
        step = self._last - now
        self._last = now
        if step <= NOTICED_S:
            return 0.0
        self.by += step
        self._noticed = now
        return step

    def in_time(self, value: T, now: float) -> T:
        """`value`, which tells of the past, with what was stamped before the clock was set back in today's time."""
        return earlier(value, self.by, max(now + NOTICED_S, _UNIX_TIMES), self._noticed) if self.by else value
