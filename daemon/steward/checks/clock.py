"""The node's clock against the head's: MUNGE refuses credentials when they are minutes apart."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import HeadClock, Raw


def probes(facts: Facts) -> tuple[HeadClock, ...]:
    return (HeadClock(),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    skew = raws[0].skew_s
    if skew is None:
        return skipped("no head to compare with")
    if abs(skew) > facts.limits.clock.max_skew_s:
        word = "behind" if skew > 0 else "ahead of"
        return failed(f"the clock is {abs(skew):.1f} s {word} the head's", Severity.SUSPECT, Advice.NONE)
    return passed(f"{abs(skew):.3f} s from the head's clock")


CHECK = Check(
    id="clock",
    probes=probes,
    judge=judge,
    mode=lambda limits: limits.clock.mode,
    title="the clock differs from the head's",
    source="connection",
    cost_ms=0.1,
)
