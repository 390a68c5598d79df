"""Figures, goals and the table of the capacity bench. Pure."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rich.table import Table

from steward.workflows.snapshot import Phases

PLAN_GOAL_S = 0.050
READ_GOAL_S = 0.100


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What happened between an order and its end. Times in seconds; `needed` is how many more workers were wanted.

    `ends` are machines that went, `end_calls` how often that was asked for: again where it took longer than the retry.
    """

    name: str
    began: float
    ended: float
    turns: tuple[Phases, ...]
    orders: tuple[float, ...]
    commands: "Counter[str]"
    launches: int
    ends: int
    end_calls: int
    needed: int
    reads: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def writes(self) -> int:
        return sum(many for name, many in self.commands.items() if not name.startswith("read"))

    @property
    def looks(self) -> int:
        return sum(many for name, many in self.commands.items() if name.startswith("read"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """CPU seconds of a plan in which nothing is to be done."""

    slots: int
    plans: tuple[float, ...]


def share(values: Sequence[float], part: float) -> float:
    """The value below which `part` of all lie (nearest rank); NaN of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else math.nan


def misses(phases: Sequence[Phase], quiet: Quiet) -> list[str]:
    """Which goals were not reached, a line each."""
    found = []
    if (median := share(quiet.plans, 0.5)) > PLAN_GOAL_S:
        found.append(f"a quiet plan of {quiet.slots} slots took {median * 1e3:.0f} ms, goal {PLAN_GOAL_S * 1e3:.0f}")
    for phase in phases:
        found += [
            f"{phase.name}: {name} p99 {share(took, 0.99) * 1e3:.0f} ms, goal {READ_GOAL_S * 1e3:.0f}"
            for name, took in phase.reads.items()
            if took and share(took, 0.99) > READ_GOAL_S
        ]
        if phase.launches != max(0, phase.needed) or phase.ends != max(0, -phase.needed):
            found.append(f"{phase.name}: {phase.launches} launches and {phase.ends} ends for {phase.needed:+d} workers")
    return found


def as_table(phases: Sequence[Phase], quiet: Quiet) -> Table:
    table = Table(
        title=f"quiet plan of {quiet.slots} slots: median {_ms(quiet.plans, 0.5)} ms of CPU", title_justify="left"
    )
    table.add_column("")
    for phase in phases:
        table.add_column(phase.name, justify="right")
    for label, figure in _ROWS.items():
        table.add_row(label, *(figure(phase) for phase in phases))
    return table


def as_json(phases: Sequence[Phase], quiet: Quiet) -> dict[str, Any]:
    return {
        "quiet_plan_ms": float(_ms(quiet.plans, 0.5)),
        "phases": {p.name: {label: figure(p) for label, figure in _ROWS.items()} for p in phases},
        "commands": {p.name: dict(p.commands) for p in phases},
        "missed": misses(phases, quiet),
    }


def _ms(values: Sequence[float], part: float) -> str:
    value = share(values, part)
    return "-" if math.isnan(value) else f"{value * 1e3:.1f}"


def _three(values: Sequence[float]) -> str:
    return " / ".join(_ms(values, part) for part in (0.5, 0.99, 1.0))


_ROWS: Mapping[str, Callable[[Phase], str]] = {
    "wall, s": lambda p: f"{p.ended - p.began:.1f}",
    "cycles": lambda p: str(len(p.turns)),
    "plan, ms (median / p99 / worst)": lambda p: _three([turn.plan_s for turn in p.turns]),
    "commit, ms": lambda p: _three([turn.commit_s for turn in p.turns]),
    "observe, ms": lambda p: _three([turn.observe_s for turn in p.turns]),
    "apply, ms": lambda p: _three([turn.apply_s for turn in p.turns]),
    "DescribeCluster, ms": lambda p: _three(p.reads.get("DescribeCluster", ())),
    "ListClusterNodes, ms": lambda p: _three(p.reads.get("ListClusterNodes", ())),
    "reads answered": lambda p: str(sum(map(len, p.reads.values()))),
    "Create/UpdateCluster, ms": lambda p: _three(p.orders),
    "Slurm reads": lambda p: str(p.looks),
    "Slurm writes": lambda p: str(p.writes),
    "launches / ends (calls)": lambda p: f"{p.launches} / {p.ends} ({p.end_calls})",
}
