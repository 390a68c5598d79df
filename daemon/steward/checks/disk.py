"""Space and inodes of local file systems."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Disk, DiskUsage, Raw


def probes(facts: Facts) -> tuple[DiskUsage, ...]:
    return (DiskUsage(paths=facts.limits.disk.paths),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """Bad from `full_percent` on, and then until less than `clear_percent` is in use."""
    (raw,) = raws
    if not raw.disks:
        return skipped(f"none of {', '.join(facts.limits.disk.paths)} exists")
    limits = facts.limits.disk
    limit = limits.clear_percent if past.was_bad else limits.full_percent
    used = {path: used_percent(disk) for path, disk in raw.disks.items()}
    full = sorted((percent, path) for path, percent in used.items() if percent >= limit)
    if full:
        told = ", ".join(f"{path} {percent:.1f} %" for percent, path in reversed(full))
        return failed(f"in use: {told} (limit {limit:g} %)", Severity.DEGRADED, Advice.REPLACE)
    fullest = max(used, key=lambda path: used[path])
    return passed(f"fullest: {fullest} {used[fullest]:.0f} %")


def used_percent(disk: Disk) -> float:
    """Share of space or of inodes in use, whichever is higher; 0 for a file system that counts neither."""
    parts = ((disk.total, disk.free), (disk.inodes, disk.inodes_free))
    return max((100.0 * (total - free) / total for total, free in parts if total > 0), default=0.0)


CHECK = Check(
    id="disk",
    probes=probes,
    judge=judge,
    mode=lambda limits: limits.disk.mode,
    title="a local file system is full",
    source="statvfs",
    cost_ms=0.1,
)
