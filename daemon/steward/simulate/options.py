"""The words of the command: durations, jobs, ranges of a sweep, assumptions. A wrong one is told in one line."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from steward.simulate.numbers import WorldNumbers
from steward.simulate.run import Scenario
from steward.simulate.training import Habits

MOST_NODES = 4096
_DURATION = re.compile(r"(\d{1,7}(?:\.\d{1,3})?)(s|m|h|d)?")
_UNIT_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, None: 1.0}
_JOBS = re.compile(r"(\d{1,4})x(\d{1,4})")
_GEOMETRIC_STEPS = 6
_DEFAULT_COUNTS = (0, 1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512)


def duration(text: str, what: str) -> float:
    """Return seconds. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{what} {text}: give a time such as 90s, 5m, 1.5h or 54d")
    return float(match[1]) * _UNIT_S[match[2]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The smallest and the largest time that an option takes, in seconds."""

    least: float
    most: float


BOUNDS: Mapping[str, Bound] = MappingProxyType(
    {
        "days": Bound(least=3600.0, most=366 * 86_400.0),
        "interval": Bound(least=1.0, most=7 * 86_400.0),
        "save": Bound(least=0.0, most=86_400.0),
        "durable": Bound(least=0.0, most=86_400.0),
        "start": Bound(least=0.0, most=86_400.0),
    }
)


def bounded(name: str, text: str) -> float:
    """Return the seconds of an option. Raises ValueError."""
    seconds, bound = duration(text, f"--{name}"), BOUNDS[name]
    if not bound.least <= seconds <= bound.most:
        raise ValueError(f"--{name} {text}: give {_said(bound.least)} to {_said(bound.most)}")
    return seconds


def _said(seconds: float) -> str:
    unit = next((unit for unit in "dhm" if seconds and seconds % (_UNIT_S[unit]) == 0), "s")
    return f"{seconds / _UNIT_S[unit]:g}{unit}"


def jobs_of(text: str, habits: Habits) -> tuple[Habits, ...]:
    """Return the jobs of `COUNTxNODES,...`, all with these habits. Raises ValueError."""
    found: list[Habits] = []
    for part in text.split(","):
        match = _JOBS.fullmatch(part)
        if match is None or not int(match[1]) or not int(match[2]):
            raise ValueError(f"--jobs {text}: give COUNTxNODES, such as 1x2048 or 4x128,32x8")
        found += [replace(habits, nodes=int(match[2]))] * int(match[1])
    if (nodes := sum(job.nodes for job in found)) > MOST_NODES or len(found) > MOST_NODES:
        raise ValueError(f"--jobs {text}: {nodes:,} nodes are more than {MOST_NODES:,}")
    return tuple(found)


def numbers_of(texts: Iterable[str]) -> WorldNumbers:
    """Return the numbers of the world, with those of `--assume`. Raises ValueError."""
    numbers = WorldNumbers()
    for text in texts:
        name, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            raise ValueError(f"--assume {text}: give NAME=NUMBER, such as reboot_s=900") from None
        try:
            numbers = numbers.but(name.strip(), number)
        except ValueError as error:
            raise ValueError(f"--assume {text}: {error}") from None
    return numbers


# A sweep: one axis at a time.


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Values of one option to try."""

    name: str
    values: tuple[float, ...]

    def said(self, value: float) -> str:
        """Return a value as the option takes it."""
        return f"{value:g}" if self.name == "spares" else _said(round(value))


def axis_of(text: str) -> Axis:
    """Return the axis of `spares=0..32` or `interval=5m..60m,90m`. Raises ValueError."""
    name, _, words = text.partition("=")
    if name not in _SWEPT:
        raise ValueError(f"--sweep {text}: give one of {', '.join(_SWEPT)}, such as spares=0..32 or interval=5m..60m")
    values: set[float] = set()
    for part in words.split(","):
        low, dots, high = part.partition("..")
        if not dots:
            values.add(_value(name, low, text))
            continue
        least, most = _value(name, low, text), _value(name, high, text)
        if not least < most:
            raise ValueError(f"--sweep {text}: {low} is not below {high}")
        values |= set(_between(name, least, most))
    return Axis(name=name, values=tuple(sorted(values)))


def _value(name: str, word: str, text: str) -> float:
    if name == "spares":
        if not (word.isascii() and word.isdigit() and int(word) <= MOST_NODES):
            raise ValueError(f"--sweep {text}: {word!r} is no number of spares")
        return float(word)
    return bounded(name, word)


def _between(name: str, least: float, most: float) -> list[float]:
    """Return some values from `least` to `most`, denser at the low end."""
    if name == "spares":
        return [least, *(float(count) for count in _DEFAULT_COUNTS if least < count < most), most]
    low = max(least, 1.0)
    return [round(low * (most / low) ** (step / (_GEOMETRIC_STEPS - 1))) for step in range(_GEOMETRIC_STEPS)]


def _with_spares(scenario: Scenario, value: float) -> Scenario:
    return replace(scenario, spares=int(value))


def _with_habit(field: str) -> Callable[[Scenario, float], Scenario]:
    def change(scenario: Scenario, value: float) -> Scenario:
        changed = {field: value}
        return replace(scenario, jobs=tuple(replace(job, **changed) for job in scenario.jobs))  # type: ignore[arg-type]

    return change


_SWEPT: Mapping[str, Callable[[Scenario, float], Scenario]] = MappingProxyType(
    {
        "spares": _with_spares,
        "interval": _with_habit("interval_s"),
        "save": _with_habit("save_s"),
        "start": _with_habit("start_s"),
    }
)


def at(scenario: Scenario, axis: Axis, value: float) -> Scenario:
    """Return the scenario with one value of an axis."""
    return _SWEPT[axis.name](scenario, value)
