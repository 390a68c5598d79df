"""The table of the scale bench: every figure by size, and how many times that of the first size it is. Pure."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from rich.table import Table

from tests.bench.summary import percentile
from tests.bench.way import Way


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What was measured at one size. Seconds; None in `recoveries` is a run that did not come back in time; `new_jobs`
    came a minute meanwhile."""

    nodes: int
    jobs: int
    new_jobs: int = 0
    recoveries: tuple[float | None, ...]
    idle_percent: float
    rss_mib: float
    rpcs: Mapping[str, float]
    status_s: tuple[float, ...]
    pages_s: Mapping[str, tuple[float, ...]]
    drain_s: float | None
    step_s: tuple[float, ...] = ()
    ways: tuple[Way, ...] = ()

    @property
    def name(self) -> str:
        come = f", {self.new_jobs} new a minute" if self.new_jobs else ""
        return f"{self.nodes:,} nodes, {self.jobs:,} jobs{come}"

    @property
    def came_back(self) -> list[float]:
        return [each for each in self.recoveries if each is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table. `goal`: the most that is good; `times`: that many times the first size's is good."""

    of: Callable[[Size], float]
    form: str
    goal: float | None = None
    times: float | None = None
    has_ratio: bool = True


def _slowest_page(size: Size) -> float:
    return max((statistics.median(took) for took in size.pages_s.values()), default=math.nan)


FIGURES: Mapping[str, Figure] = MappingProxyType(
    {
        "kill to tasks, p50, s": Figure(of=lambda size: percentile(size.came_back, 50), form=".2f"),
        "kill to tasks, p95, s": Figure(of=lambda size: percentile(size.came_back, 95), form=".2f", times=1.2),
        "runs that did not come back": Figure(
            of=lambda size: len(size.recoveries) - len(size.came_back), form=".0f", goal=0, has_ratio=False
        ),
        "a step of plain Slurm, s": Figure(
            of=lambda size: statistics.median(size.step_s) if size.step_s else math.nan, form=".2f"
        ),
        "idle head, % of a core": Figure(of=lambda size: size.idle_percent, form=".1f", goal=1.0),
        "memory of the head, MiB": Figure(of=lambda size: size.rss_mib, form=".0f", goal=120.0),
        "calls to slurmctld, a second": Figure(of=lambda size: sum(size.rpcs.values()), form=".2f", goal=1.0),
        "steward status, s": Figure(of=lambda size: statistics.median(size.status_s), form=".2f", goal=0.3),
        "slowest page of the API, s": Figure(of=_slowest_page, form=".3f", goal=0.3),
        "drain of 750 nodes, s": Figure(
            of=lambda size: math.nan if size.drain_s is None else size.drain_s, form=".2f", goal=0.1, has_ratio=False
        ),
    }
)


def misses(sizes: Sequence[Size]) -> list[str]:
    """Which goals were not reached, a line each."""
    found = []
    for size in sizes:
        for name, figure in FIGURES.items():
            value, first = figure.of(size), figure.of(sizes[0])
            limit = figure.goal if figure.times is None else figure.times * first
            if limit is not None and value > limit:
                found.append(f"{size.name}: {name} {value:{figure.form}}, goal {limit:.3g}")
    return found


def as_table(sizes: Sequence[Size]) -> Table:
    table = Table(title=f"times as much as with {sizes[0].name} in parentheses", title_justify="left")
    table.add_column("")
    for size in sizes:
        table.add_column(size.name.replace(", ", "\n"), justify="right")
    table.add_column("goal", justify="right")
    for name, figure in FIGURES.items():
        goal = f"{figure.times:g} times" if figure.times else "-" if figure.goal is None else f"{figure.goal:g}"
        table.add_row(name, *(_cell(figure, size, sizes[0]) for size in sizes), goal)
    return table


def as_json(sizes: Sequence[Size]) -> dict[str, Any]:
    figures = {size.name: {name: _known(figure.of(size)) for name, figure in FIGURES.items()} for size in sizes}
    return {"figures": figures, "missed": misses(sizes), "sizes": [_plain(size) for size in sizes]}


def _cell(figure: Figure, size: Size, first: Size) -> str:
    value, base = figure.of(size), figure.of(first)
    if math.isnan(value):
        return "-"
    told = f"{value:{figure.form}}"
    return f"{told} ({value / base:.1f})" if figure.has_ratio and size is not first and base > 0 else told


def _plain(size: Size) -> dict[str, Any]:
    told = {name: getattr(size, name) for name in Size.__dataclass_fields__}
    return {name: _known(value) if isinstance(value, float) else _unfrozen(value) for name, value in told.items()}


def _unfrozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _unfrozen(each) for name, each in value.items()}
    return [_unfrozen(each) for each in value] if isinstance(value, tuple) else value


def _known(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)
