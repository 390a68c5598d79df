"""The machine's memory against what Slurm was told: a module that failed at boot is not there any more."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, unknown
from steward.checks.past import Past
from steward.checks.slurm_node import EVERY_S, no_answer, number, show_node
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, ReadFiles

_MEMINFO = "/proc/meminfo"
_TOTAL = re.compile(r"^MemTotal:\s+([0-9]{1,15}) kB$", re.MULTILINE)


def probes(facts: Facts) -> tuple[Probe, ...]:
    return (ReadFiles(paths=(_MEMINFO,)), show_node(facts))


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    files, shown = raws
    total = _TOTAL.search(files.files.get(_MEMINFO) or "")
    wanted = number(shown, "RealMemory")
    if total is None:
        return unknown(f"{_MEMINFO} has no MemTotal")
    if wanted is None:
        return unknown(no_answer(shown, facts))
    there = int(total[1]) // 1024
    text = f"{there} MB, Slurm's RealMemory is {wanted} MB"
    if there < wanted * (1 - facts.limits.memory.tolerance_percent / 100):
        return failed(text, Severity.DEGRADED, Advice.REPLACE)
    return passed(text)


CHECK = Check(
    id="memory",
    probes=probes,
    judge=judge,
    mode=lambda limits: limits.memory.mode,
    every_s=EVERY_S,
    is_quick=False,
    title="less memory than Slurm gives to jobs",
    source="procfs",
    cost_ms=8.0,
)
