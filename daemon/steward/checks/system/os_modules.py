"""Kernel modules that the site says must be loaded: one that failed to build or to load takes its devices with it."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.system.modules import MODULES, loaded
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles

ID = "os.modules"


def probes(facts: Facts) -> tuple[ReadFiles, ...]:
    return (ReadFiles(paths=(MODULES,)),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    wanted = [name.replace("-", "_") for name in facts.limits.modules.required]
    if not wanted:
        return skipped("checks.modules.required names none")
    there = loaded(raws[0])
    if there is None:
        return skipped(f"no {MODULES} here")
    if missing := [name for name in wanted if name not in there]:
        return failed(f"not loaded: {', '.join(missing[:8])}", Severity.DEGRADED, Advice.REBOOT)
    return passed(f"{len(wanted)} modules are loaded")


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "drain"),
    every_s=300.0,
    bad_for_s=60.0,
    is_quick=False,
    title="a kernel module is missing",
    source="procfs",
    cost_ms=0.2,
)
