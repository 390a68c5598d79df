"""A clock that was set back: times from before are in the future now, and waiting for them would take as long."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

from steward.model.memory import Memory

T = TypeVar("T")

NOTICED_S = 1.0
"""A smaller step back, as NTP makes them, is ignored."""
_UNIX_TIMES = 1e9
"""Numbers larger than this are Unix times; no duration or count is."""


def earlier(value: T, by: float, above: float = _UNIX_TIMES, latest: float = math.inf) -> T:
    """Return the value with every Unix time in it later than `above` moved by `by` seconds, to at most `latest`."""

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
    """Return when anything was last remembered, by the clock of that time (Unix s); 0 if nothing was."""
    # only times of this host count: agents' clocks may be ahead
    looks = (memory.looked, memory.head.marks or 0.0, memory.head.ends or 0.0)
    notes = (*memory.asked.values(), *memory.noted.values(), *looks, *(ask.at for ask in memory.asks.values()))
    steps = [case.entered for case in memory.cases.values()] + [slot.entered for slot in memory.slots.values()]
    jobs = (job.started or 0.0 for job in memory.jobs.values())
    return max(*notes, *steps, *jobs, *(incident.since for incident in memory.incidents.values()), 0.0)


class SetBacks:
    """Track how far the wall clock was set back; call `note()` every turn."""

    def __init__(self, now: float) -> None:
        self._last, self._noticed = now, 0.0
        self.by = 0.0
        """Seconds in all, less the time that passed between looks."""

    def remember(self, at: float) -> None:
        """Note a time that was reached before this object was made."""
        self._last = max(self._last, at)

    def note(self, now: float) -> float:
        """Return by how many seconds the clock was set back since the last call; 0 if it was not."""
        step = self._last - now
        self._last = now
        if step <= NOTICED_S:
            return 0.0
        self.by += step
        self._noticed = now
        return step

    def in_time(self, value: T, now: float) -> T:
        """Return a value about the past, with times from before the set-back moved to today's clock."""
        return earlier(value, self.by, max(now + NOTICED_S, _UNIX_TIMES), self._noticed) if self.by else value
