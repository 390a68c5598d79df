"""File systems that must be there, and those that must be writable: the kernel turns one read-only when its disk
fails."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped, unknown
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import DiskUsage, Probe, Raw, ReadFiles

_TABLE = "/proc/mounts"
_WHOLE = 60_000
"""A longer table may be cut."""
_OCTAL = re.compile(r"\\([0-7]{3})")


def probes(facts: Facts) -> tuple[Probe, ...]:
    table = (ReadFiles(paths=(_TABLE,)),) if facts.limits.mounts.present else ()
    return (DiskUsage(paths=facts.limits.mounts.writable), *table)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    raw, *tables = raws
    writable, present = facts.limits.mounts.writable, facts.limits.mounts.present
    if not writable and not present:
        return skipped("checks.mounts.writable and .present are empty")
    table = tables[0].files.get(_TABLE) if tables else ""
    if table is None:
        return unknown(f"{_TABLE} is not there")
    points = _points(table)
    absent = [path for path in writable if path not in raw.disks]
    read_only = [path for path in writable if path in raw.disks and raw.disks[path].read_only]
    unmounted = [path for path in present if path not in points]
    if read_only:
        return failed(f"read-only: {', '.join(read_only)}", Severity.DEGRADED, Advice.REBOOT)
    if absent:
        return failed(f"not there: {', '.join(absent)}", Severity.DEGRADED, Advice.REBOOT)
    if unmounted and len(table) > _WHOLE:
        return unknown(f"{_TABLE} is too long to say whether {unmounted[0]} is mounted")
    if unmounted:
        return failed(f"not mounted: {', '.join(unmounted)}", Severity.DEGRADED, Advice.REBOOT)
    return passed(_well(writable, present))


def _well(writable: tuple[str, ...], present: tuple[str, ...]) -> str:
    told = (("writable", writable), ("mounted", present))
    return "; ".join(f"{word}: {', '.join(paths)}" for word, paths in told if paths)


def _points(table: str) -> frozenset[str]:
    """The kernel writes white space of a path as `\\040`."""
    fields = (line.split(" ") for line in table.splitlines())
    return frozenset(_OCTAL.sub(lambda match: chr(int(match[1], 8)), words[1]) for words in fields if len(words) > 2)


CHECK = Check(
    id="mounts",
    probes=probes,
    judge=judge,
    mode=lambda limits: limits.mounts.mode,
    title="a file system is read-only or not mounted",
    source="statvfs",
    cost_ms=0.1,
)
