"""The machine's memory against what Slurm was told: a module that failed at boot is not there any more."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, unknown
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, ReadFiles, RunProgram

_MEMINFO = "/proc/meminfo"
_TOTAL = re.compile(r"^MemTotal:\s+([0-9]{1,15}) kB$", re.MULTILINE)
_REAL = re.compile(r"\bRealMemory=([0-9]{1,12})\b")
_EVERY_S = 3600.0
"""It asks slurmctld, and memory does not come and go."""


def probes(facts: Facts) -> tuple[Probe, ...]:
    env = (("SLURM_CONF", facts.slurm_conf),) if facts.slurm_conf else ()
    show_node = RunProgram(argv=("scontrol", "--oneliner", "show", "node", facts.node), env=env, timeout_s=8.0)
    return (ReadFiles(paths=(_MEMINFO,)), show_node)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    files, shown = raws
    total = _TOTAL.search(files.files.get(_MEMINFO) or "")
    real = _REAL.search(shown.output) if shown.returncode == 0 else None
    if total is None:
        return unknown(f"{_MEMINFO} has no MemTotal")
    if real is None:
        return unknown(f"scontrol show node {facts.node}: rc={shown.returncode} {shown.output[:200]}")
    there, wanted = int(total[1]) // 1024, int(real[1])
    text = f"{there} MB, Slurm's RealMemory is {wanted} MB"
    if there < wanted * (1 - facts.limits.memory.tolerance_percent / 100):
        return failed(text, Severity.DEGRADED, Advice.REPLACE)
    return passed(text)


CHECK = Check(
    id="memory",
    probes=probes,
    judge=judge,
    mode=lambda limits: limits.memory.mode,
    every_s=_EVERY_S,
    is_quick=False,
)
