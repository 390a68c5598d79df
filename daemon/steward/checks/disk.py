"""Local file systems: their space and inodes."""

import re
from collections.abc import Collection, Mapping

from steward.checks.check import Check, Facts, Judgement, Past, failed, passed, skipped
from steward.checks.limits import Names, Threshold
from steward.model.health import Advice, Outcome, Severity
from steward.model.probe import Disk, DiskUsage, Raw

_SAYS_FULL = re.compile(r"\b(?:full|free|used|usage|space|inodes?)\b|check_fs_i?(?:free|used)|\d ?%", re.IGNORECASE)


PATHS = Names(
    name="disk.paths", text="Mount points to look at; an absent one is skipped.", default=("/", "/tmp", "/var")
)
USERS = Names(
    name="disk.users",
    text="Folders that users may fill, local scratch too. A full file system that holds one of them is only reported.",
    default=("/tmp", "/var/tmp", "/dev/shm", "/run/steward/jobs"),
)
FULL = Threshold(
    name="disk.full_percent",
    default=90.0,
    unit="%",
    text="Bad from this share of space or inodes in use ...",
    low=0.01,
    high=100.0,
)
CLEAR = Threshold(
    name="disk.clear_percent", default=80.0, unit="%", text="... until less than this is in use.", low=0.01, high=100.0
)


def _disk_probes(facts: Facts) -> tuple[DiskUsage, ...]:
    return (DiskUsage(paths=tuple(dict.fromkeys((*facts.names(PATHS), *facts.names(USERS))))),)


def _judge_disk(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge space and inodes: bad from `full_percent` on, and then until less than `clear_percent` is in use."""
    (raw,) = raws
    if not raw.disks:
        return skipped(f"none of {', '.join(facts.names(PATHS))} exists")
    limit = facts.limit(CLEAR if past.was_bad else FULL)
    used = {path: used_percent(disk) for path, disk in raw.disks.items()}
    full = sorted((path for path in used if used[path] >= limit), key=lambda path: (-used[path], path))
    if full:
        text = f"in use: {', '.join(f'{path} {used[path]:.1f} %' for path in full)} (limit {limit:g} %)"
        if any(path not in users_can_fill(raw.disks, facts.names(USERS)) for path in full):
            return failed(text, Severity.DEGRADED, Advice.REPLACE)
        # Users must not be able to get a node drained, and a disk that they filled is no fault of the machine.
        return failed(f"{text}; users can fill that, so this is only reported", Severity.INFO, Advice.NONE)
    fullest = max(used, key=lambda path: used[path])
    return passed(f"fullest: {fullest} {used[fullest]:.0f} %")


def users_can_fill(disks: Mapping[str, Disk], users: Collection[str]) -> frozenset[str]:
    """Return the paths whose file system holds a folder that every user may write to."""
    # Subvolumes of one btrfs have different devices and the same size.
    theirs = [disk for path, disk in disks.items() if path in users or disk.is_open]
    devices, sizes = {disk.device for disk in theirs}, {disk.total for disk in theirs}
    return frozenset(path for path, disk in disks.items() if disk.device in devices or disk.total in sizes)


def report_only_if_users_filled_it(verdict: Judgement, users: Collection[str]) -> Judgement:
    """Return the verdict of a site's program, lowered to a report if its text says that one of `users` is full."""
    # Otherwise any user could get a node drained and replaced.
    if verdict.outcome is not Outcome.FAILED or not _SAYS_FULL.search(verdict.text):
        return verdict
    if not any(re.search(rf"(?<![\w/.-]){re.escape(path)}(?![\w/-])", verdict.text) for path in users):
        return verdict
    return failed(f"{verdict.text}; users can fill that, so this is only reported", Severity.INFO, Advice.NONE)


def used_percent(disk: Disk) -> float:
    """Return the share of space or of inodes in use, whichever is higher; 0 for a file system that counts neither."""
    parts = ((disk.total, disk.free), (disk.inodes, disk.inodes_free))
    return max((100.0 * (total - free) / total for total, free in parts if total > 0), default=0.0)


DISK = Check(
    id="disk",
    probes=_disk_probes,
    judge=_judge_disk,
    title="a local file system is full",
    source="statvfs",
    cost_ms=0.1,
    settings=(PATHS, USERS, FULL, CLEAR),
)
"""The check of space and inodes of local file systems."""

CHECKS: tuple[Check, ...] = (DISK,)
