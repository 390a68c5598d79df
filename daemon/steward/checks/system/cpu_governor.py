"""CPUs that may not run at full speed."""

from collections import Counter
from pathlib import PurePosixPath

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadTree
from steward.model.text import printable

ID = "cpu.governor"
_CPUS = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq"
_FIRST_DRIVER = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"
_ADAPTS = frozenset({"intel_pstate", "amd-pstate", "amd-pstate-epp"})
"""Their `powersave` goes to full speed under load; that of the others stays at the lowest."""


def probes(facts: Facts) -> tuple[ReadTree, ...]:
    return (ReadTree(patterns=(f"{_CPUS}/scaling_governor", _FIRST_DRIVER), max_files=4096),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
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


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=3600.0,
    is_quick=False,
    title="CPUs may not run at full speed",
    source="sysfs",
    cost_ms=5.0,
)
