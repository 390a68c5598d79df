"""Space and inodes of local file systems."""

import re
from collections.abc import Collection, Mapping

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.past import Past
from steward.model.health import Advice, Outcome, Severity
from steward.model.probe import Disk, DiskUsage, Raw

_SAYS_FULL = re.compile(r"\b(?:full|free|used|usage|space|inodes?)\b|check_fs_i?(?:free|used)|\d ?%", re.IGNORECASE)


def probes(facts: Facts) -> tuple[DiskUsage, ...]:
    disk = facts.limits.disk
    return (DiskUsage(paths=tuple(dict.fromkeys((*disk.paths, *disk.users)))),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """Bad from `full_percent` on, and then until less than `clear_percent` is in use. What users can fill is told: no
    user gets a node taken out, and a full disk of theirs says nothing about the machine."""
    (raw,) = raws
    limits = facts.limits.disk
    if not raw.disks:
        return skipped(f"none of {', '.join(limits.paths)} exists")
    limit = limits.clear_percent if past.was_bad else limits.full_percent
    used = {path: used_percent(disk) for path, disk in raw.disks.items()}
    full = sorted((path for path in used if used[path] >= limit), key=lambda path: (-used[path], path))
    if full:
        told = f"in use: {', '.join(f'{path} {used[path]:.1f} %' for path in full)} (limit {limit:g} %)"
        if any(path not in users_can_fill(raw.disks, limits.users) for path in full):
            return failed(told, Severity.DEGRADED, Advice.REPLACE)
        return failed(f"{told}; users can fill that, so it is only told", Severity.INFO, Advice.NONE)
    fullest = max(used, key=lambda path: used[path])
    return passed(f"fullest: {fullest} {used[fullest]:.0f} %")


def users_can_fill(disks: Mapping[str, Disk], users: Collection[str]) -> frozenset[str]:
    """Those with a folder on their file system in which all may write. Subvolumes of one (btrfs) differ in the device
    and have their size in common."""
    theirs = [disk for path, disk in disks.items() if path in users or disk.is_open]
    devices, sizes = {disk.device for disk in theirs}, {disk.total for disk in theirs}
    return frozenset(path for path, disk in disks.items() if disk.device in devices or disk.total in sizes)


def only_told(verdict: Verdict, users: Collection[str]) -> Verdict:
    """The verdict of a program of the site's. One that says that a folder is full which users can fill is told, as ours
    is: else any user gets a node taken out and replaced."""
    if verdict.outcome is not Outcome.FAILED or not _SAYS_FULL.search(verdict.text):
        return verdict
    if not any(re.search(rf"(?<![\w/.-]){re.escape(path)}(?![\w/-])", verdict.text) for path in users):
        return verdict
    return failed(f"{verdict.text}; users can fill that, so it is only told", Severity.INFO, Advice.NONE)


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
