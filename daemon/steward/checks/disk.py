"""Local file systems and the drives under them."""

import json
import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from steward.checks.check import Check, Facts, Judgement, Past, always, failed, passed, skipped
from steward.checks.limits import Names, Threshold
from steward.model.health import Advice, Outcome, Severity
from steward.model.probe import Disk, DiskUsage, Probe, Raw, ReadFiles, ReadTree, RunOnEach

_SAYS_FULL = re.compile(r"\b(?:full|free|used|usage|space|inodes?)\b|check_fs_i?(?:free|used)|\d ?%", re.IGNORECASE)


PATHS = Names(
    name="disk.paths", text="Mount points to look at; an absent one is skipped.", default=("/", "/tmp", "/var")
)
USERS = Names(
    name="disk.users",
    text="Folders that users may fill, local scratch too. A full file system that holds one of them is only reported.",
    default=("/tmp", "/var/tmp", "/dev/shm"),
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
        told = f"in use: {', '.join(f'{path} {used[path]:.1f} %' for path in full)} (limit {limit:g} %)"
        if any(path not in users_can_fill(raw.disks, facts.names(USERS)) for path in full):
            return failed(told, Severity.DEGRADED, Advice.REPLACE)
        # No user may get a node drained, and a disk that users filled shows no fault of the machine.
        return failed(f"{told}; users can fill that, so this is only reported", Severity.INFO, Advice.NONE)
    fullest = max(used, key=lambda path: used[path])
    return passed(f"fullest: {fullest} {used[fullest]:.0f} %")


def users_can_fill(disks: Mapping[str, Disk], users: Collection[str]) -> frozenset[str]:
    """Return the paths whose file system holds a folder that every user may write to."""
    # Subvolumes of one btrfs differ in the device and share their size.
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
"""Space and inodes of local file systems."""

_STATUS = "/proc/mdstat"
_ARRAY = re.compile(r"^(?P<name>md[\w-]{1,32}) : active (?P<rest>.*(?:\n[ \t].*)*)", re.MULTILINE)
_LOST = re.compile(r"\(F\)|\[U*_[U_]*\]")
_REBUILDS = re.compile(r"\b(?:recovery|reshape)\s*=\s*[0-9.]+%")


def _judge_raid(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge the software RAID arrays: an array that lost a disk and is not rebuilding is bad."""
    arrays = {found["name"]: found["rest"] for found in _ARRAY.finditer(raws[0].files.get(_STATUS) or "")}
    if not arrays:
        return skipped("no software RAID on this node")
    lost = sorted(name for name, rest in arrays.items() if _LOST.search(rest))
    alone = [name for name in lost if not _REBUILDS.search(arrays[name])]
    if alone:
        return failed(f"lost a disk: {', '.join(alone)}", Severity.DEGRADED, Advice.REPLACE, hardware=alone[0])
    if lost:  # a spare takes over: nothing to repair
        return failed(f"lost a disk and rebuilds: {', '.join(lost)}", Severity.INFO, Advice.NONE, hardware=lost[0])
    return passed(f"{len(arrays)} arrays are whole")


RAID = Check(
    id="disk.raid",
    probes=always(ReadFiles(paths=(_STATUS,))),
    judge=_judge_raid,
    default_mode="drain",
    every_s=60.0,
    title="a RAID array lost a disk",
    source="procfs",
    cost_ms=0.1,
)
"""The check of Linux software RAID for an array that lost a disk."""

_DEAD = frozenset({"dead", "deleting", "deleting (no IO)"})
_HOT = 0x02
_BROKEN = {0x01: "spare below its threshold", 0x04: "unreliable", 0x08: "read-only", 0x10: "backup of its cache failed"}
"""Bits of `critical_warning` that do not go away."""


def _nvme_probes(facts: Facts) -> tuple[Probe, ...]:
    smart = RunOnEach(
        patterns=("/dev/nvme[0-9]", "/dev/nvme[0-9][0-9]"), argv=("nvme", "smart-log", "--output-format=json")
    )
    return ReadTree(patterns=("/sys/class/nvme/nvme*/state",)), smart


def _judge_nvme(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    states = {PurePosixPath(path).parent.name: (text or "").strip() for path, text in raws[0].files.items()}
    warnings = {PurePosixPath(path).name: _warning(text or "") for path, text in raws[1].files.items()}
    if not states and not warnings:
        return skipped("no NVMe drive on this node")
    broken = {name: f"controller is {state}" for name, state in states.items() if state in _DEAD} | _broken(warnings)
    if broken:
        told = ", ".join(f"{name}: {what}" for name, what in sorted(broken.items()))
        return failed(told, Severity.DEGRADED, Advice.REPLACE, hardware=min(broken))
    hot = sorted(name for name, warning in warnings.items() if warning & _HOT)
    if hot:
        return failed(f"too hot: {', '.join(hot)}", Severity.INFO, Advice.NONE, hardware=hot[0])
    return passed(f"{len(states) or len(warnings)} drives live")


def _broken(warnings: Mapping[str, int]) -> dict[str, str]:
    told = {
        name: ", ".join(what for bit, what in _BROKEN.items() if warning & bit) for name, warning in warnings.items()
    }
    return {name: what for name, what in told.items() if what}


def _warning(text: str) -> int:
    """Return `critical_warning` of nvme-cli's JSON; 0 if there is none."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return 0
    value = answer.get("critical_warning") if isinstance(answer, dict) else None
    value = value.get("value") if isinstance(value, dict) else value  # newer versions of nvme-cli wrap the number
    return value if isinstance(value, int) else 0


NVME = Check(
    id="disk.nvme",
    probes=_nvme_probes,
    judge=_judge_nvme,
    default_mode="drain",
    every_s=3600.0,
    timeout_s=60.0,
    is_quick=False,
    title="an NVMe drive is dead or reports that it fails",
    source="sysfs",
    cost_ms=3.0,
)
"""The check of NVMe drives: their controllers' state, and their own health report where nvme-cli is installed."""


def _smart_probes(facts: Facts) -> tuple[RunOnEach, ...]:
    """Return the probe that asks each SATA or SAS disk for its own verdict."""
    argv = ("smartctl", "--health", "--nocheck=standby", "--json=c")  # standby: a sleeping disk is not woken
    return (RunOnEach(patterns=("/dev/sd[a-z]", "/dev/sd[a-z][a-z]"), argv=argv, max_paths=64),)


def _judge_smart(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    health = {PurePosixPath(path).name: _passes(text or "") for path, text in raws[0].files.items()}
    told = {name: passes for name, passes in health.items() if passes is not None}
    if not told:
        return skipped(raws[0].output or "no disk here reports its health")
    failing = sorted(name for name, passes in told.items() if not passes)
    if failing:
        text = f"the disk's own health report (SMART) says that it fails: {', '.join(failing)}"
        return failed(text, Severity.DEGRADED, Advice.REPLACE, hardware=failing[0])
    return passed(f"{len(told)} disks report good health")


def _passes(text: str) -> bool | None:
    """Return whether the disk calls itself healthy; None if it is virtual, asleep, or hidden by a controller."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    status = answer.get("smart_status") if isinstance(answer, dict) else None
    word = status.get("passed") if isinstance(status, dict) else None
    return word if isinstance(word, bool) else None


SMART = Check(
    id="disk.smart",
    probes=_smart_probes,
    judge=_judge_smart,
    default_mode="drain",
    every_s=6 * 3600.0,
    timeout_s=120.0,
    is_quick=False,
    title="a disk reports that it fails (SMART)",
    source="command",
    cost_ms=5.0,
)
"""The check of SATA and SAS disks by their own health report, where smartctl is installed."""

CHECKS: tuple[Check, ...] = (
    DISK,
    RAID,
    NVME,
    SMART,
)
