"""The drives of a node: software RAID, NVMe, SATA and SAS."""

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from steward.checks.check import Check, Facts, Judgement, Past, failed, on_every_node, passed, skipped
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, ReadFiles, ReadTree, RunOnEach

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
    probes=on_every_node(ReadFiles(paths=(_STATUS,))),
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
    faults = {
        name: ", ".join(what for bit, what in _BROKEN.items() if warning & bit) for name, warning in warnings.items()
    }
    return {name: what for name, what in faults.items() if what}


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
    known = {name: passes for name, passes in health.items() if passes is not None}
    if not known:
        return skipped(raws[0].output or "no disk here reports its health")
    failing = sorted(name for name, passes in known.items() if not passes)
    if failing:
        text = f"the disk's own health report (SMART) says that it fails: {', '.join(failing)}"
        return failed(text, Severity.DEGRADED, Advice.REPLACE, hardware=failing[0])
    return passed(f"{len(known)} disks report good health")


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
    RAID,
    NVME,
    SMART,
)
