"""Links over time: which were up once in this boot, since when each is up or down, and which bounce."""

from collections.abc import Mapping
from dataclasses import dataclass

from steward.checks.check import Facts, Notes, Past, Verdict, failed
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity

_UP, _DOWN = 1.0, 0.0


def follow(up: Mapping[str, bool], past: Past) -> Notes:
    """The notes after this look: link -> (1 up or 0 down, since when). A link that was never up is not noted; one that
    is not there any more stays as it was."""
    notes = {name: values for name, values in past.notes.items() if is_link(values)}
    for name, is_up in up.items():
        state = _UP if is_up else _DOWN
        known = notes.get(name)
        if (known is None and is_up) or (known is not None and known[0] != state):
            notes[name] = (state, past.now)
    return notes


def is_link(values: tuple[float, ...]) -> bool:
    return len(values) == 2 and values[0] in (_UP, _DOWN)


def down_for(name: str, past: Past) -> float | None:
    """Seconds that a link has been down which was up before; None for any other."""
    values = past.notes.get(name)
    return past.now - values[1] if values is not None and is_link(values) and values[0] == _DOWN else None


def fell(name: str, after: Notes, before: Notes) -> bool:
    """Whether the link went from up to down at this look."""
    return before.get(name, (_DOWN,))[0] == _UP and after.get(name, (_UP,))[0] == _DOWN


_HOUR_S = 3600.0
_DAY_S = 86400.0
_MOST = 32
_FALLS, _TRIPS, _LOCKED = " downs", " trips", " locked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strikes:
    """`downs` are borne in an hour, more is a trip; trip number `trips` in a day locks."""

    downs: Threshold
    trips: Threshold

    def note(self, fresh: Mapping[str, int], facts: Facts, past: Past) -> Notes:
        """The notes after this look, in which each link went down `fresh` times."""
        notes: dict[str, tuple[float, ...]] = {}
        for name in sorted({*fresh, *_struck(past.notes)}):
            notes |= self._noted(name, fresh.get(name, 0), facts, past)
        return notes

    def _noted(self, name: str, fresh: int, facts: Facts, past: Past) -> dict[str, tuple[float, ...]]:
        trips = _since(past.now - _DAY_S, past.notes.get(name + _TRIPS, ()))
        downs = _since(past.now - _HOUR_S, past.notes.get(name + _FALLS, ())) + (past.now,) * min(fresh, _MOST)
        if len(downs) > facts.limit(self.downs):
            downs, trips = (), (*trips, past.now)
        locked = past.notes.get(name + _LOCKED, ())
        if not locked and len(trips) >= facts.limit(self.trips):
            locked = (past.now,)
        found = {name + _FALLS: downs[-_MOST:], name + _TRIPS: trips[-_MOST:], name + _LOCKED: locked}
        return {key: times for key, times in found.items() if times}

    def judge(self, past: Past, severity: Severity) -> Verdict | None:
        """None while no link bounces."""
        locked = sorted(key.removesuffix(_LOCKED) for key in past.notes if key.endswith(_LOCKED))
        if locked:
            why = "locked until the next boot, it bounced too often in 24 h (docs/checks.md: Fabric)"
            return failed(f"{why}: {', '.join(locked[:8])}", severity, Advice.REPLACE, hardware=locked[0])
        tripped = sorted(
            key.removesuffix(_TRIPS)
            for key, times in past.notes.items()
            if key.endswith(_TRIPS) and times[-1] > past.now - _HOUR_S
        )
        if tripped:
            text = f"went down too often within an hour: {', '.join(tripped[:8])}"
            return failed(text, severity, Advice.REBOOT, hardware=tripped[0])
        return None


def _struck(notes: Notes) -> set[str]:
    return {key.removesuffix(end) for key in notes for end in (_FALLS, _TRIPS, _LOCKED) if key.endswith(end)}


def _since(first: float, times: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(time for time in times if time > first)
