"""A study: a scenario with each way to deal with faults, over several seeds, and a sweep of its options."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from steward.simulate.closed_form import expected_ettr
from steward.simulate.options import Axis, at
from steward.simulate.run import Scenario, SimResult, Way, simulate
from steward.simulate.training import Use

# Quantiles of Student's t at 90 %, by degrees of freedom: 80 % of single results lie within.
_T90 = (3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372)
_T90_MANY = 1.2816
_ENOUGH = 0.001
"""Fewer spares are as good if they cost less than this share of the time."""

Job = tuple[Scenario, Way, int]
Run = Callable[[Sequence[Job]], Iterable[SimResult]]


def one_by_one(jobs: Sequence[Job]) -> Iterable[SimResult]:
    """Run simulations one after the other."""
    return [simulate(*job) for job in jobs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A mean over seeds, and the range in which 80 % of single runs lie; None with one seed."""

    mean: float
    low: float | None = None
    high: float | None = None

    @staticmethod
    def of(values: Sequence[float], most: float = math.inf) -> "Figure":
        """Return the figure of some runs."""
        mean = fmean(values)
        if len(values) < 2:
            return Figure(mean=mean)
        free = len(values) - 1
        wide = (_T90[free - 1] if free <= len(_T90) else _T90_MANY) * stdev(values) * math.sqrt(1 + 1 / len(values))
        return Figure(mean=mean, low=max(0.0, mean - wide), high=min(most, mean + wide))

    def as_json(self) -> Mapping[str, float | None]:
        """Return the figure for programs."""
        return {"mean": self.mean, "low": self.low, "high": self.high}


def study(
    scenario: Scenario, says: str, seeds: Sequence[int], axes: Sequence[Axis] = (), run: Run = one_by_one
) -> Mapping[str, Any]:
    """Return all that a report shows."""
    jobs = [(scenario, way, seed) for way in Way for seed in seeds]
    done = list(run(jobs))
    of_way = {way: done[i * len(seeds) : (i + 1) * len(seeds)] for i, way in enumerate(Way)}
    mine = of_way[Way.STEWARD]
    return {
        "says": says,
        "source": scenario.source.name,
        "days": scenario.days,
        "nodes": scenario.nodes,
        "jobs": _jobs(scenario),
        "spares": scenario.spares,
        "seeds": list(seeds),
        "faults": fmean(len(scenario.faults(seed)) for seed in seeds),
        "ways": {way.value: _summary(outcomes) for way, outcomes in of_way.items()},
        "formula": expected_ettr(scenario),
        "spares_needed": {
            "half": max(each.spares_for(0.5) for each in mine),
            "most_of_the_time": max(each.spares_for(0.95) for each in mine),
            "always": max(max(each.out, default=0) for each in mine),
        },
        "plans": sum(each.plans for each in mine),
        "not_simulated": sorted({name for each in mine for name in each.undone}),
        "sweep": [_swept(scenario, axis, seeds, run) for axis in axes],
        "assumptions": [
            {"name": name, "value": value, "text": text, "source": source}
            for name, value, text, source in scenario.numbers.rows()
        ],
    }


def _jobs(scenario: Scenario) -> list[Mapping[str, float]]:
    sizes = sorted({job.nodes for job in scenario.jobs}, reverse=True)
    of_size = {size: [job for job in scenario.jobs if job.nodes == size] for size in sizes}
    return [
        {
            "count": len(alike),
            "nodes": size,
            "interval_s": alike[0].interval_s,
            "save_s": alike[0].save_s,
            "durable_s": alike[0].durable_s,
            "start_s": alike[0].start_s,
        }
        for size, alike in of_size.items()
    ]


def _summary(outcomes: Sequence[SimResult]) -> Mapping[str, Any]:
    causes = sorted({cause for each in outcomes for cause in each.lost_by_cause})
    return {
        "ettr": Figure.of([each.ettr for each in outcomes], 1.0).as_json(),
        "goodput": Figure.of([each.goodput for each in outcomes], 1.0).as_json(),
        "lost_node_hours": Figure.of([sum(each.lost_by_cause.values()) / 3600 for each in outcomes]).as_json(),
        "lost_by_cause": {
            cause: fmean(each.lost_by_cause.get(cause, 0) / 3600 for each in outcomes) for cause in causes
        },
        "node_hours": {use.value: fmean(each.of(use) / 3600 for each in outcomes) for use in Use},
        "stops": fmean(sum(each.hits.values()) for each in outcomes),
        "submitted_again": fmean(each.submitted_again for each in outcomes),
    }


def _swept(scenario: Scenario, axis: Axis, seeds: Sequence[int], run: Run) -> Mapping[str, Any]:
    """Return the ETTR for each value of an axis, and the best value; of spares the fewest that are as good."""
    jobs = [(at(scenario, axis, value), Way.STEWARD, seed) for value in axis.values for seed in seeds]
    done = list(run(jobs))
    figures = [
        Figure.of([each.ettr for each in done[i * len(seeds) : (i + 1) * len(seeds)]], 1.0)
        for i in range(len(axis.values))
    ]
    top = max(figure.mean for figure in figures)
    slack = _ENOUGH if axis.name == "spares" else 0.0
    best = next(value for value, figure in zip(axis.values, figures, strict=True) if figure.mean >= top - slack)
    return {
        "axis": axis.name,
        "points": [
            {"value": value, "text": axis.said(value), "ettr": figure.as_json()}
            for value, figure in zip(axis.values, figures, strict=True)
        ],
        "best": axis.said(best),
    }
