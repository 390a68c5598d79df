"""A clock that was set back: times of before are in the future now, and whatever waits for them would wait as long."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

T = TypeVar("T")

NOTICED_S = 1.0
"""A smaller step back (NTP makes them) is let pass."""
_UNIX_TIMES = 1e9
"""Numbers larger than this are Unix times; no duration or count is."""


def earlier(value: T, by: float, above: float = _UNIX_TIMES) -> T:
    """The same value with every Unix time in it that is later than `above` `by` seconds earlier."""
    return _earlier(value, by, above)  # type: ignore[no-any-return]


def _earlier(value: Any, by: float, above: float) -> Any:
    if isinstance(value, float):
        return value - by if value > above else value
    if isinstance(value, Mapping):
        return MappingProxyType({key: _earlier(one, by, above) for key, one in value.items()})
    if isinstance(value, tuple):
        return tuple(_earlier(one, by, above) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _earlier(getattr(value, f.name), by, above) for f in fields(value) if f.init})
    return value


class SetBacks:
    """Told the time again and again, it knows by how much the clock was set back since it was made."""

    def __init__(self) -> None:
        self._last = 0.0
        self.by = 0.0
        """In all, seconds."""

    def note(self, now: float) -> float:
        """By how much it was set back since the last time; 0 for not at all."""
        step = self._last - now
        self._last = now
        if step <= NOTICED_S:
            return 0.0
        self.by += step
        return step

    def in_time(self, value: T, now: float) -> T:
        """`value` with what was stamped before the clock was set back in today's time."""
        return earlier(value, self.by, max(now + NOTICED_S, _UNIX_TIMES)) if self.by else value
