"""Which links were up once in this boot, and since when each is up or down: a port without a cable is no fault."""

from collections.abc import Mapping

from steward.checks.past import Notes, Past

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
