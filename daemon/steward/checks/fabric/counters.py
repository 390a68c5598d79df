"""One check for each error counter of a port that has a limit: how fast it may grow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from steward.checks.check import Check, Facts, Judge, Verdict, failed, passed, skipped, unknown
from steward.checks.fabric.ib_counters import EVERY_S, counters, probes
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

_KEPT_BEYOND_S = 3 * EVERY_S
_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """More than `limit` of `counter` is bad: within `window_s`, or `per_s` seconds on average over the window."""

    counter: str
    limit: Threshold
    window_s: float
    per_s: float | None = None

    def of(self, reading: str, past: Past) -> float:
        """What is compared with the limit."""
        if self.per_s is None:
            return past.growth(reading, self.window_s)
        return past.per_second(reading, self.window_s) * self.per_s


def readings_of(names: tuple[str, ...]) -> Callable[[tuple[Raw, ...]], Mapping[str, float]]:
    return lambda raws: counters(raws[0], names)


def judge_counters(names: tuple[str, ...], judge: Callable[[Mapping[str, float], Facts, Past], Verdict]) -> Judge:
    """`judge`, where there are such counters and they say something."""

    def told(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
        files = [path for path in raws[0].files if path.rpartition("/")[2] in names]
        if not files:
            return skipped(f"no port counts {', '.join(names)}")
        found = counters(raws[0], names)
        return judge(found, facts, past) if found else unknown(f"not a number: {files[0]}")

    return told


def counter_check(
    check: str,
    *growths: Growth,
    title: str,
    severity: Severity,
    advice: Advice = Advice.NONE,
    mode: str = "report",
) -> Check:
    """The check that fails when one of the counters of one port grows too fast."""
    names = tuple(growth.counter for growth in growths)

    def judge(found: Mapping[str, float], facts: Facts, past: Past) -> Verdict:
        bad = [
            f"{reading} +{grown:g} {growth.limit.unit} (limit {facts.limit(growth.limit):g})"
            for growth in growths
            for reading in sorted(found)
            if reading.endswith(f" {growth.counter}")
            and (grown := growth.of(reading, past)) > facts.limit(growth.limit)
        ]
        if bad:
            return failed("; ".join(bad[:_SHOWN]), severity, advice, hardware=bad[0].partition(" ")[0])
        return passed(f"{len(found)} counters within their limits")

    return Check(
        id=check,
        probes=probes,
        judge=judge_counters(names, judge),
        readings=readings_of(names),
        mode=by_id(check, mode),
        every_s=EVERY_S,
        keep_s=max(growth.window_s for growth in growths) + _KEPT_BEYOND_S,
        is_quick=False,
        title=title,
        source="sysfs",
        cost_ms=3.0,
        thresholds=tuple({growth.limit.name: growth.limit for growth in growths}.values()),
    )
