"""Checks of CPUs: all CPUs that Slurm gives to jobs are online, and they run at full speed."""

import re
from collections import Counter
from pathlib import PurePosixPath

from steward.checks.check import Check, Facts, Judgement, Past, failed, on_every_node, passed, skipped, unknown
from steward.checks.slurm_node import EVERY_S, is_pretended, no_answer, number, show_node
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, ReadFiles, ReadTree
from steward.model.text import printable

ONLINE = "/sys/devices/system/cpu/online"
_LIST = re.compile(r"^[0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?){0,4096}$")


def count_cpus(text: str | None) -> int | None:
    """Return how many CPUs the kernel's list names (`0-3,8`); None if the text is no such list."""
    plain = (text or "").strip()
    if not _LIST.match(plain):
        return None
    return sum(_span(part) for part in plain.split(","))


def _span(part: str) -> int:
    first, _, last = part.partition("-")
    return max(0, int(last or first) - int(first) + 1)


_PRESENT = "/sys/devices/system/cpu/present"


def _topology_probes(facts: Facts) -> tuple[Probe, ...]:
    return ReadFiles(paths=(ONLINE, _PRESENT), slurm_conf=facts.slurm_conf), show_node(facts)


def _judge_topology(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge whether at least as many CPUs are online as Slurm gives to jobs."""
    # Slurm's CPUs are cores or threads, as the site schedules: neither can exceed the CPUs online. Fewer are the
    # site's choice.
    files, shown = raws
    if is_pretended(files.files.get(facts.slurm_conf)):
        return skipped("slurm.conf says config_overrides: its CPUs need not be there")
    online, wanted = count_cpus(files.files.get(ONLINE)), number(shown, "CPUTot")
    if online is None:
        return unknown(f"{ONLINE} is not a list of CPUs")
    if wanted is None:
        return unknown(no_answer(shown, facts))
    present = count_cpus(files.files.get(_PRESENT)) or online
    text = f"{online} CPUs online of {present}, Slurm's CPUTot is {wanted}"
    return failed(text, Severity.DEGRADED, Advice.REBOOT) if online < wanted else passed(text)


TOPOLOGY = Check(
    id="cpu.topology",
    probes=_topology_probes,
    judge=_judge_topology,
    default_mode="drain",
    every_s=EVERY_S,
    is_quick=False,
    title="CPU cores that are not there any more",
    source="sysfs",
    cost_ms=8.0,
)
"""The check of the CPUs online against Slurm's: the firmware or the kernel may take out a core or a socket."""

_CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_SLOW = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"})


def _judge_clocksource(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge whether the kernel counts time with a slow clock source."""
    # With a slow clock source every call for the time of day costs a hundred times as much.
    current = printable((raws[0].files.get(_CURRENT) or "").strip(), 32)
    if not current:
        return skipped("the kernel does not name its clock source")
    if current in _SLOW:
        return failed(f"the clock source is {current}: the TSC was lost", Severity.SUSPECT, Advice.REBOOT)
    return passed(f"the clock source is {current}")


CLOCKSOURCE = Check(
    id="cpu.clocksource",
    probes=on_every_node(ReadFiles(paths=(_CURRENT,))),
    judge=_judge_clocksource,
    default_mode="report",
    every_s=3600.0,
    is_quick=False,
    title="the kernel fell back to a slow clock",
    source="sysfs",
    cost_ms=0.1,
)
"""The check of the kernel's clock source, which is a slow one if the TSC was found unstable."""

_CPUS = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq"
_FIRST_DRIVER = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"
_ADAPTS = frozenset({"intel_pstate", "amd-pstate", "amd-pstate-epp"})
"""Drivers whose `powersave` governor goes to full speed under load; with other drivers it stays at the lowest."""


def _judge_governor(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    files = {PurePosixPath(path): printable((text or "").strip(), 32) for path, text in raws[0].files.items()}
    governors = Counter(word for path, word in files.items() if path.name == "scaling_governor" and word)
    if not governors:
        return skipped("no CPU here changes its speed")
    driver = files.get(PurePosixPath(_FIRST_DRIVER), "")
    told = ", ".join(f"{word} on {number}" for word, number in governors.most_common(4))
    if len(governors) > 1:
        return failed(f"CPUs differ: {told}", Severity.INFO, Advice.NONE)
    if "powersave" in governors and driver not in _ADAPTS:
        return failed(f"CPUs stay at their lowest speed: {told} ({driver})", Severity.INFO, Advice.NONE)
    return passed(f"{told} ({driver})")


GOVERNOR = Check(
    id="cpu.governor",
    probes=on_every_node(ReadTree(patterns=(f"{_CPUS}/scaling_governor", _FIRST_DRIVER), max_files=4096)),
    judge=_judge_governor,
    default_mode="report",
    every_s=3600.0,
    is_quick=False,
    title="CPUs may not run at full speed",
    source="sysfs",
    cost_ms=5.0,
)
"""The check for CPUs that may not run at full speed."""

CHECKS: tuple[Check, ...] = (
    TOPOLOGY,
    CLOCKSOURCE,
    GOVERNOR,
)
