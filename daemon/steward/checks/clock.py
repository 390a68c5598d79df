"""The node's clock: against the head's, and held by a time daemon."""

from steward.checks.check import Check, Facts, Judgement, Past, failed, on_every_node, passed, skipped, unknown
from steward.checks.limits import Threshold
from steward.checks.processes import PROCESSES_S
from steward.model.health import Advice, Severity
from steward.model.probe import HeadClock, KernelClock, ListProcesses, Raw

MAX_SKEW_S = Threshold(
    name="clock.max_skew_s",
    default=30.0,
    unit="s",
    text="Bad when the node's clock differs from the head's by this much.",
    low=0.001,
    high=300.0,
)


def _judge_clock(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    skew = raws[0].skew_s
    if skew is None:
        return skipped("no head to compare with")
    if abs(skew) > facts.limit(MAX_SKEW_S):
        word = "behind" if skew > 0 else "ahead of"
        return failed(f"the clock is {abs(skew):.1f} s {word} the head's", Severity.SUSPECT, Advice.NONE)
    return passed(f"{abs(skew):.3f} s from the head's clock")


CLOCK = Check(
    id="clock",
    probes=on_every_node(HeadClock()),
    judge=_judge_clock,
    default_mode="report",
    title="the clock differs from the head's",
    source="connection",
    cost_ms=0.1,
    settings=(MAX_SKEW_S,),
)
"""The check of the node's clock against the head's: MUNGE refuses credentials if the clocks are minutes apart."""

_DAEMONS = frozenset({"chronyd", "ntpd", "ntpd-rs", "openntpd", "systemd-timesyn", "ptp4l", "phc2sys"})
"""The process names of time daemons, cut to 15 characters as the kernel does."""


def _judge_sync(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge whether the kernel calls the clock synchronised, on a node that runs a time daemon."""
    clock, listed = raws
    running = sorted(_DAEMONS & {process.name for process in listed.processes})
    if clock.synchronised is None:
        return unknown("the kernel did not say")
    if clock.synchronised:
        return passed("the clock is synchronised")
    if not running:
        # A virtual machine whose host sets its clock has no daemon, and its kernel always says "not synchronised".
        return skipped("no time daemon runs here; the check `clock` compares with the head")
    return failed(f"{running[0]} runs, but the clock is not synchronised", Severity.INFO, Advice.NONE)


SYNC = Check(
    id="clock.sync",
    probes=on_every_node(KernelClock(), ListProcesses()),
    judge=_judge_sync,
    default_mode="report",
    every_s=PROCESSES_S,
    bad_for_s=900.0,  # a daemon that has just been started takes minutes
    is_quick=False,
    title="the clock is not held by NTP",
    source="procfs",
    cost_ms=0.1,
)
"""The check that a time daemon keeps the clock synchronised, by the kernel's own flag."""

CHECKS: tuple[Check, ...] = (CLOCK, SYNC)
