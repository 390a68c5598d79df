"""What the data do not say: assumptions with their ranges, and 80 % intervals of what follows from them."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

DRAWS = 1000
_GRID = 16
_NORMAL = NormalDist()
_Z = _NORMAL.inv_cdf(0.9)
"""80 % of a normal distribution lie within so many standard deviations of its middle."""


class Assumption(NamedTuple):
    """A number that the data do not say. It lies between `low` and `high` with a probability of 80 %."""

    key: str
    low: float
    high: float
    unit: str
    meaning: str

    def at(self, z: float) -> float:
        """Return the value so many standard deviations from the middle; a share is within 0 and 1, a time above 0."""
        if self.unit == "share":
            return min(0.99, max(0.01, (self.low + self.high) / 2 + z * (self.high - self.low) / (2 * _Z)))
        low, high = math.log(self.low), math.log(self.high)
        return math.exp((low + high) / 2 + z * (high - low) / (2 * _Z))


ASSUMPTIONS = (
    Assumption("saves", 0.4, 0.9, "share", "of programs save checkpoints and load the newest one when they start"),
    Assumption("save_every", 0.4, 4.0, "h", "between two checkpoints of such a program"),
    Assumption("slurm_notices", 1.0, 1.4, "SlurmdTimeout", "from a node's fault until Slurm sets it DOWN"),
    Assumption("steward_notices", 5.0, 30.0, "s", "from a node's fault until Steward sets it DOWN"),
    Assumption("is_hang", 0.35, 0.95, "share", "of the suspected hangs are hangs"),
    Assumption("hang_found", 6.0, 60.0, "min", "until Steward finds a hang (resume.hang_least_s, hang_quiet_s)"),
    Assumption("cured_rebooted", 0.75, 0.97, "share", "of nodes that rebooted by themselves are sound"),
    Assumption("cured_silent", 0.35, 0.85, "share", "of silent nodes serve again after a reboot or with a spare"),
    Assumption("cured_clean_up", 0.6, 0.95, "share", "of nodes that a failed script took out are sound"),
    Assumption("repair", 5.0, 40.0, "min", "that Steward takes until such a node has passed its checks and serves"),
    Assumption("heeded", 0.4, 0.9, "share", "of nodes proposed as lemons are taken out by their admins"),
    Assumption("wanted", 0.5, 0.95, "share", "of jobs that were submitted again would have been resumed as they were"),
)
"""Ours, from public reports and our own measurements (docs/assess.md); a site that knows better says so by --assume."""

Draw = Mapping[str, float]
Moments = Callable[[Draw], "tuple[float, float, float]"]
"""Mean, variance and upper end of a sum, where the assumptions are as drawn."""


class Interval(NamedTuple):
    """What lies with a probability of 80 % between `low` and `high`."""

    low: float
    middle: float
    high: float


def medians(assumptions: Mapping[str, Assumption]) -> Draw:
    """Return the middle of each assumption."""
    return {key: one.at(0.0) for key, one in assumptions.items()}


def draws(assumptions: Mapping[str, Assumption], seed: int = 44) -> list[Draw]:
    """Return values of all assumptions, each drawn from a grid of equally probable ones; the same each time."""
    source = random.Random(seed)
    grids = {
        key: [one.at(_NORMAL.inv_cdf((place + 0.5) / _GRID)) for place in range(_GRID)]
        for key, one in assumptions.items()
    }
    return [{key: source.choice(grid) for key, grid in grids.items()} for _ in range(DRAWS)]


def samples(moments: Moments, drawn: Iterable[Draw], seed: int = 0) -> list[float]:
    """Return a value for each draw, of a sum that has this mean and variance, and is not negative."""
    source = random.Random(seed)
    found = []
    for draw in drawn:
        mean, variance, most = moments(draw)
        if mean > 0 and variance > 1e-9 * mean * mean:
            mean = source.gammavariate(mean * mean / variance, variance / mean)
        found.append(min(max(0.0, mean), most))
    return found


def interval(values: Sequence[float]) -> Interval:
    """Return the middle of the values, and between what 80 % of them lie."""
    ranked = sorted(values)
    low, middle, high = (ranked[int(share * (len(ranked) - 1))] for share in (0.1, 0.5, 0.9))
    return Interval(low, middle, high)


def plus(*parts: Moments) -> Moments:
    """Return the sum of independent parts."""

    def moments(draw: Draw) -> tuple[float, float, float]:
        means, variances, most = zip(*(part(draw) for part in parts))
        return sum(means), sum(variances), sum(most)

    return moments


class LostWork:
    """The work of many runs since the last checkpoint of each.

    How many programs save, and how often, is drawn once for all of them. Whether one program (a family of jobs) saves
    is one draw for all its runs.
    """

    def __init__(self, runs: Iterable[tuple[object, float, float]]) -> None:
        """Take family, weight and seconds of each run."""
        self._families: dict[object, list[tuple[float, float]]] = defaultdict(list)
        for family, weight, seconds in runs:
            self._families[family].append((weight, max(0.0, seconds)))
        self._sums: dict[float, tuple[float, float, float, float]] = {}

    def moments(self, draw: Draw) -> tuple[float, float, float]:
        """Return mean, variance and upper end of the node-seconds."""
        every, saves = 3600 * draw["save_every"], draw["saves"]
        if every not in self._sums:
            self._sums[every] = self._sum(every)
        with_saves, without, between, within = self._sums[every]
        mean = saves * with_saves + (1 - saves) * without
        return mean, saves * (1 - saves) * between + saves * within, without

    def _sum(self, every: float) -> tuple[float, float, float, float]:
        """Return the sums if all programs save, and if none does; and the variances between and within families."""
        with_saves = without = between = within = 0.0
        for runs in self._families.values():
            mine = [(weight, seconds, *since_checkpoint(seconds, every)) for weight, seconds in runs]
            saving = sum(weight * mean for weight, _, mean, _ in mine)
            losing = sum(weight * seconds for weight, seconds, _, _ in mine)
            with_saves, without = with_saves + saving, without + losing
            between += (losing - saving) ** 2
            within += sum(weight * weight * (square - mean * mean) for weight, _, mean, square in mine)
        return with_saves, without, between, within


def since_checkpoint(seconds: float, every: float) -> tuple[float, float]:
    """Return mean and mean square of the time since the last checkpoint, of a run that saved each `every` seconds."""
    if seconds >= every:
        return every / 2, every * every / 3
    return seconds - seconds**2 / (2 * every), seconds**2 - 2 * seconds**3 / (3 * every)
