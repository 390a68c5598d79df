"""Memory that programs can still get."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, unknown
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles

ID = "mem.free"
_MEMINFO = "/proc/meminfo"
_AVAILABLE = re.compile(r"^MemAvailable:\s+([0-9]{1,15}) kB$", re.MULTILINE)
MIN_MB = Threshold(
    name="mem.free.min_mb", default=100.0, unit="MiB", text="Less than this available is told.", high=1e9
)


def probes(facts: Facts) -> tuple[ReadFiles, ...]:
    return (ReadFiles(paths=(_MEMINFO,)),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """A job may use up its node: told, and no reason to act."""
    found = _AVAILABLE.search(raws[0].files.get(_MEMINFO) or "")
    if found is None:
        return unknown(f"{_MEMINFO} has no MemAvailable")
    free = int(found[1]) // 1024
    text = f"{free} MiB available"
    return failed(text, Severity.INFO, Advice.NONE) if free < facts.limit(MIN_MB) else passed(text)


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=60.0,
    title="memory is used up",
    source="procfs",
    cost_ms=0.3,
    thresholds=(MIN_MB,),
)
