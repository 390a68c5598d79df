"""Median, 95th percentile and goals of a bench's samples. Pure."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table

RATIO_GOAL = 40.0
_RATIO_OF = "kill to batch, spare outside"
_PLAIN = "plain Slurm: kill to batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run; `seconds` None: it did not come back in time. A `goal_s` of None means that it is there to compare
    with."""

    scenario: str
    goal_s: float | None
    seconds: float | None
    way: Mapping[str, float] = field(default_factory=dict)
    """Name of a phase -> seconds after the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """`goal_s` None: it is there to compare with."""

    scenario: str
    runs: int
    missed: int
    median_s: float
    p95_s: float
    goal_s: float | None

    @property
    def is_good(self) -> bool:
        return self.goal_s is None or (self.missed == 0 and self.p95_s <= self.goal_s)


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest rank: the smallest value that `percent` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100.0) - 1)] if ordered else math.nan


def summarize(samples: Sequence[Sample], plain: Sequence[float]) -> list[Summary]:
    """A line for each scenario in the order of its first sample, and one for plain Slurm."""
    names = dict.fromkeys(sample.scenario for sample in samples)
    found = [_summary(name, [sample for sample in samples if sample.scenario == name]) for name in names]
    return [*found, _compared(plain)] if plain else found


def _compared(plain: Sequence[float]) -> Summary:
    return _summary(_PLAIN, [Sample(scenario=_PLAIN, goal_s=None, seconds=seconds) for seconds in plain])


def _summary(name: str, samples: Sequence[Sample]) -> Summary:
    known = [sample.seconds for sample in samples if sample.seconds is not None]
    return Summary(
        scenario=name,
        runs=len(samples),
        missed=len(samples) - len(known),
        median_s=statistics.median(known) if known else math.nan,
        p95_s=percentile(known, 95),
        goal_s=samples[0].goal_s,
    )


def ratio(summaries: Sequence[Summary]) -> float | None:
    """How many times faster than plain Slurm, by medians."""
    by_name = {summary.scenario: summary for summary in summaries}
    ours, plain = by_name.get(_RATIO_OF), by_name.get(_PLAIN)
    return plain.median_s / ours.median_s if ours and plain else None


def ratio_line(summaries: Sequence[Summary]) -> str:
    found = ratio(summaries)
    if found is None:
        return "no run under plain Slurm to compare with"
    return f"{found:.0f} times faster than plain Slurm (goal {RATIO_GOAL:g})"


def as_table(summaries: Sequence[Summary]) -> Table:
    table = Table(title="seconds", title_justify="left")
    table.add_column("scenario", no_wrap=True)
    for head in ("runs", "missed", "median", "p95", "goal (p95)", ""):
        table.add_column(head, justify="right")
    for each in summaries:
        goal = "-" if each.goal_s is None else f"{each.goal_s:g}"
        word = "" if each.goal_s is None else "met" if each.is_good else "NOT met"
        table.add_row(
            each.scenario, str(each.runs), str(each.missed), f"{each.median_s:.3f}", f"{each.p95_s:.3f}", goal, word
        )
    return table


def as_json(samples: Sequence[Sample], plain: Sequence[float], summaries: Sequence[Summary]) -> dict[str, Any]:
    return {
        "summaries": [{**asdict(summary), "met": summary.is_good} for summary in summaries],
        "ratio": ratio(summaries),
        "samples": [asdict(sample) for sample in samples],
        "plain_s": list(plain),
    }
