"""Does a time daemon hold the clock? The kernel knows when it was set last."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped, unknown
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.system.rhythm import PROCESSES_S
from steward.model.health import Advice, Severity
from steward.model.probe import KernelClock, ListProcesses, Probe, Raw

ID = "clock.sync"
_DAEMONS = frozenset({"chronyd", "ntpd", "ntpd-rs", "openntpd", "systemd-timesyn", "ptp4l", "phc2sys"})
"""As the kernel names processes: 15 characters."""


def probes(facts: Facts) -> tuple[Probe, ...]:
    return KernelClock(), ListProcesses()


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """A machine whose host sets its clock has no daemon, and its kernel always says "not synchronised"."""
    clock, listed = raws
    running = sorted(_DAEMONS & {process.name for process in listed.processes})
    if clock.synchronised is None:
        return unknown("the kernel did not say")
    if clock.synchronised:
        return passed("the clock is synchronised")
    if not running:
        return skipped("no time daemon runs here; the check `clock` compares with the head")
    return failed(f"{running[0]} runs, but the clock is not synchronised", Severity.INFO, Advice.NONE)


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=PROCESSES_S,
    bad_for_s=900.0,  # a daemon that has just been started takes minutes
    is_quick=False,
    title="the clock is not held by NTP",
    source="procfs",
    cost_ms=0.1,
)
