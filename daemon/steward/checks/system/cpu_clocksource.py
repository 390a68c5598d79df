"""The clock that the kernel counts time with: a machine whose TSC was found unstable has a slow one."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles
from steward.model.text import printable

ID = "cpu.clocksource"
_CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_SLOW = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"})


def probes(facts: Facts) -> tuple[ReadFiles, ...]:
    return (ReadFiles(paths=(_CURRENT,)),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """Every call for the time of day costs a hundred times as much."""
    current = printable((raws[0].files.get(_CURRENT) or "").strip(), 32)
    if not current:
        return skipped("the kernel does not name its clock source")
    if current in _SLOW:
        return failed(f"the clock source is {current}: the TSC was lost", Severity.SUSPECT, Advice.REBOOT)
    return passed(f"the clock source is {current}")


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=3600.0,
    is_quick=False,
    title="the kernel fell back to a slow clock",
    source="sysfs",
    cost_ms=0.1,
)
