"""Fans, power supplies and temperatures as the machine's controller sees them, where ipmitool is installed."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, RunProgram
from steward.model.text import printable

ID = "bmc.sensors"
_BAD = frozenset({"cr", "nr"})
"""Critical, non-recoverable."""
_STATES = frozenset({"ok", "ns", "nc", "us", *_BAD})
_SHOWN = 6


def probes(facts: Facts) -> tuple[RunProgram, ...]:
    argv = ("ipmitool", "-I", "open", "sdr", "list", "full")
    return (RunProgram(argv=argv, timeout_s=60.0, max_bytes=65536, may_be_absent=True),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """`name | reading | state` in each line. A controller that does not answer says nothing about the node."""
    (raw,) = raws
    rows = [[word.strip() for word in line.split("|")] for line in raw.output.splitlines()]
    states = {printable(row[0], 32): row[2] for row in rows if len(row) == 3 and row[2] in _STATES}
    if raw.returncode != 0 or not states:
        return skipped("no controller (BMC) can be asked here")
    bad = sorted(name for name, state in states.items() if state in _BAD)
    if bad:
        return failed(f"critical: {', '.join(bad[:_SHOWN])}", Severity.SUSPECT, Advice.NONE)
    return passed(f"{len(states)} sensors are well")


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=1800.0,
    timeout_s=65.0,
    is_quick=False,
    title="a fan, power supply or temperature is critical",
    source="command",
    cost_ms=20.0,
)
