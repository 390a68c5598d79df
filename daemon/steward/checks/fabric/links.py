"""Links over time: which were up in this boot, since when each is up or down, and which flap."""

from collections.abc import Mapping
from dataclasses import dataclass

from steward.checks.check import Facts, Judgement, Notes, Past, failed
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity
from steward.model.text import count_noun

_UP, _DOWN = 1.0, 0.0


def notes_after_look(up: Mapping[str, bool], past: Past) -> Notes:
    """Return the notes after this look: for each link, 1 (up) or 0 (down), and since when.

    A link that was never up has no note; a link that vanished keeps its note.
    """
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
    """Return for how many seconds a link that was up before has been down; None for any other link."""
    values = past.notes.get(name)
    return past.now - values[1] if values is not None and is_link(values) and values[0] == _DOWN else None


def went_down(name: str, after: Notes, before: Notes) -> bool:
    """Return whether the link went from up to down at this look."""
    return before.get(name, (_DOWN,))[0] == _UP and after.get(name, (_UP,))[0] == _DOWN


_HOUR_S = 3600.0
_DAY_S = 86400.0
_MAX_TIMES = 32
_FALLS, _TRIPS = " downs", " trips"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strikes:
    """The rule for flapping links: more than `downs` in an hour are a trip; a link with `trips` in 24 h is bad.

    A link that had its trips while the fabric came up is free again once they are 24 h old.
    """

    downs: Threshold
    trips: Threshold

    def note(self, fresh: Mapping[str, int], facts: Facts, past: Past) -> Notes:
        """Return the notes after this look; `fresh` is how often each link went down since the look before."""
        notes: dict[str, tuple[float, ...]] = {}
        for name in sorted({*fresh, *_links_with_strikes(past.notes)}):
            notes |= self._note_link(name, fresh.get(name, 0), facts, past)
        return notes

    def _note_link(self, name: str, fresh: int, facts: Facts, past: Past) -> dict[str, tuple[float, ...]]:
        trips = _since(past.now - _DAY_S, past.notes.get(name + _TRIPS, ()))
        downs = _since(past.now - _HOUR_S, past.notes.get(name + _FALLS, ())) + (past.now,) * min(fresh, _MAX_TIMES)
        if len(downs) > facts.limit(self.downs):
            downs, trips = (), (*trips, past.now)
        found = {name + _FALLS: downs[-_MAX_TIMES:], name + _TRIPS: trips[-_MAX_TIMES:]}
        return {key: times for key, times in found.items() if times}

    def judge(self, facts: Facts, past: Past, severity: Severity) -> Judgement | None:
        """Return the verdict on links that trip now or did too often; None if there is none."""
        trips = {key.removesuffix(_TRIPS): times for key, times in sorted(past.notes.items()) if key.endswith(_TRIPS)}
        most = facts.limit(self.trips)
        if bad := [name for name, times in trips.items() if len(_since(past.now - _DAY_S, times)) >= most]:
            text = f"went down too often, {count_noun(int(most), 'time')} or more in 24 h: {', '.join(bad[:8])}"
            return failed(text, severity, Advice.REPLACE, hardware=bad[0])
        if tripped := [name for name, times in trips.items() if times[-1] > past.now - _HOUR_S]:
            text = f"went down too often within an hour: {', '.join(tripped[:8])}"
            return failed(text, severity, Advice.REBOOT, hardware=tripped[0])
        return None


def _links_with_strikes(notes: Notes) -> set[str]:
    return {key.removesuffix(end) for key in notes for end in (_FALLS, _TRIPS) if key.endswith(end)}


def _since(first: float, times: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(time for time in times if time > first)
