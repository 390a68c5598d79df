"""The values that a deep check's measures are compared with, and the baselines learnt from good measures. Pure."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from types import MappingProxyType

from steward.model.deep import Baseline, DeepResult, Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName

KEPT_VALUES = 50

_LOOSE = MappingProxyType({"disk.write": 0.5, "disk.read": 0.5})
"""Factors that lower the bars of disks: shared and burstable ones differ that much without a fault."""
NO_PROOF = frozenset(_LOOSE)
"""Checks in which slowness is reported and measured again, and is no fault by itself."""
NOT_COMPARED = frozenset({"tcp.latency", "memory.keep", "cpu.stress_ng"})
"""Checks whose numbers are for people only: a duration, an amount, or a value that depends on other programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """The shares of the usual value below which a measure is too slow (docs/deep-measures.md).

    From `min_samples` known values on, the bar is `learnt_share` of the median learnt for the profile. Before that the
    bar is `own_share` of the run's own median, if at least `min_nodes` nodes took part.
    """

    learnt_share: float = 0.85
    own_share: float = 0.5
    min_samples: int = 20
    min_nodes: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The bound that one value must reach; `text` says how the bound was found."""

    least: float
    text: str
    is_learnt: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """The usual values for the nodes of one run."""

    profiles: Mapping[NodeName, str]
    baselines: Mapping[str, Baseline]
    bars: Bars = field(default_factory=Bars)
    own: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    """The run's own median and its number of nodes, by baseline key."""

    def bar(self, measure: Measure) -> Bar | None:
        """Return the bar that a measure must reach; None if there is nothing to compare it with."""
        if measure.check in NOT_COMPARED or math.isnan(measure.value):
            return None
        loose = _LOOSE.get(measure.check, 1.0)
        profile = self.profile(measure)
        learnt = self.baselines.get(baseline_key(measure.check, profile))
        if learnt is not None and len(learnt.values) >= self.bars.min_samples:
            middle = median(learnt.values)
            share = self.bars.learnt_share * loose
            text = f"{share:.0%} of the usual {number(middle)} {measure.unit} ({len(learnt.values)} good runs)"
            return Bar(least=share * middle, text=text, is_learnt=True)
        return self._own_bar(measure, profile, self.bars.own_share * loose)

    def with_run(self, measures: Iterable[Measure]) -> "Usual":
        """Return these usual values with the medians of the run itself."""
        groups: dict[str, list[Measure]] = {}
        for one in measures:
            if one.outcome is Outcome.PASSED and not math.isnan(one.value):
                groups.setdefault(baseline_key(one.check, self.profile(one)), []).append(one)
        own = {key: (median(one.value for one in those), len(_nodes(those))) for key, those in groups.items()}
        return replace(self, own=own)

    def profile(self, measure: Measure) -> str:
        """Return the profile of a measure; for a pair, the profiles of both ends."""
        ends = {measure.node, measure.partner} - {None}
        return "+".join(sorted({self.profiles.get(end, "") for end in ends if end is not None}))

    def _own_bar(self, measure: Measure, profile: str, share: float) -> Bar | None:
        middle, nodes = self.own.get(baseline_key(measure.check, profile), (0.0, 0))
        if nodes < self.bars.min_nodes:
            return None
        text = f"{share:.0%} of this run's median of {number(middle)} {measure.unit} ({nodes} nodes)"
        return Bar(least=share * middle, text=text, is_learnt=False)


def _nodes(measures: Iterable[Measure]) -> set[NodeName]:
    return {end for one in measures for end in (one.node, one.partner) if end is not None}


def baseline_key(check: str, profile: str) -> str:
    return f"{check}:{profile}"


def number(value: float) -> str:
    """Return the value with three significant digits and no exponent, for people."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def with_new_values(
    baselines: Mapping[str, Baseline],
    measures: Iterable[Measure],
    results: Mapping[NodeName, DeepResult],
    profiles: Mapping[NodeName, str],
) -> dict[str, Baseline]:
    """Return `baselines` with the good values of nodes that passed added, the newest `KEPT_VALUES` of each."""
    learnt = dict(baselines)
    usual = Usual(profiles=profiles, baselines={})
    for measure in good_once(measures, results):
        profile = usual.profile(measure)
        key = baseline_key(measure.check, profile)
        before = learnt.get(key, Baseline(check=measure.check, profile=profile))
        values = (*before.values, measure.value)[-KEPT_VALUES:]
        learnt[key] = Baseline(check=measure.check, profile=profile, values=values)
    return learnt


def good_once(measures: Iterable[Measure], results: Mapping[NodeName, DeepResult]) -> list[Measure]:
    """Return the measures to learn from, sorted: each pair once, by its lowest value, and only if both ends passed."""
    good: dict[tuple[str, str, str], Measure] = {}
    for measure in measures:
        ends = sorted({measure.node} | ({measure.partner} if measure.partner is not None else set()))
        passed = all(results.get(end) is DeepResult.PASSED for end in ends)
        is_usable = measure.check not in NOT_COMPARED and measure.outcome is Outcome.PASSED
        if passed and is_usable and math.isfinite(measure.value) and measure.value > 0:
            key = (measure.check, ends[0], ends[-1])
            if key not in good or measure.value < good[key].value:
                good[key] = measure
    return [good[key] for key in sorted(good)]
