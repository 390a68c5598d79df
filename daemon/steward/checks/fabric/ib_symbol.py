"""Symbol errors: a few are what every link has, a steady trickle is a cable or a transceiver that dies."""

from collections.abc import Mapping
from dataclasses import replace

from steward.checks.check import Facts, Verdict, failed, passed
from steward.checks.fabric.counters import Growth, counter_check, judge_counters
from steward.checks.fabric.ib import named
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity

_HOUR_S = 3600.0
PER_HOUR = Threshold(
    name="ib.symbol.per_hour", default=120, unit="/h", text="More, all the hour, is outside of 1e-12.", high=1e9
)
PER_S = Threshold(
    name="ib.symbol.per_s", default=10, unit="/s", text="A burst, as of a cable that was touched.", high=1e9
)


def _judge(found: Mapping[str, float], facts: Facts, past: Past) -> Verdict:
    steady = [reading for reading in found if _is_steady(reading, facts, past)]
    if steady:
        text = f"outside of the specified error rate for an hour: {named(steady)}"
        return failed(text, Severity.DEGRADED, Advice.REPLACE, hardware=min(steady).partition(" ")[0])
    bursts = [reading for reading in found if past.per_second(reading, 120.0) > facts.limit(PER_S)]
    if bursts:
        return failed(
            f"a burst: {named(bursts)}", Severity.SUSPECT, Advice.NONE, hardware=min(bursts).partition(" ")[0]
        )
    return passed(f"{len(found)} ports within the specified error rate")


def _is_steady(reading: str, facts: Facts, past: Past) -> bool:
    """In both halves of the hour: one burst is no dying cable."""
    half = facts.limit(PER_HOUR) / 2
    late = past.growth(reading, _HOUR_S / 2)
    return late > half and past.growth(reading, _HOUR_S) - late > half


CHECK = replace(
    counter_check(
        "ib.symbol",
        Growth(counter="symbol_error", limit=PER_HOUR, window_s=_HOUR_S),
        title="Symbol errors beyond the specified rate",
        severity=Severity.DEGRADED,
        mode="drain",
    ),
    judge=judge_counters(("symbol_error",), _judge),
    thresholds=(PER_HOUR, PER_S),
)
