"""Memory: its size against Slurm's, how much is free and how fragmented, its errors."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath

from steward.checks.check import Check, Facts, Judgement, Past, failed, on_every_node, passed, skipped, unknown
from steward.checks.limits import Threshold
from steward.checks.slurm_node import EVERY_S, no_answer, number, show_node
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, ReadFiles, ReadTree

_MEMINFO = "/proc/meminfo"
_TOTAL = re.compile(r"^MemTotal:\s+([0-9]{1,15}) kB$", re.MULTILINE)


TOLERANCE = Threshold(
    name="memory.tolerance_percent",
    default=5.0,
    unit="%",
    text="Bad when the memory is more than this below RealMemory.",
    high=100.0,
)


def _memory_probes(facts: Facts) -> tuple[Probe, ...]:
    return (ReadFiles(paths=(_MEMINFO,)), show_node(facts))


def _judge_memory(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    files, shown = raws
    total = _TOTAL.search(files.files.get(_MEMINFO) or "")
    wanted = number(shown, "RealMemory")
    if total is None:
        return unknown(f"{_MEMINFO} has no MemTotal")
    if wanted is None:
        return unknown(no_answer(shown, facts))
    there = int(total[1]) // 1024
    text = f"{there} MB, Slurm's RealMemory is {wanted} MB"
    if there < wanted * (1 - facts.limit(TOLERANCE) / 100):
        return failed(text, Severity.DEGRADED, Advice.REPLACE)
    return passed(text)


MEMORY = Check(
    id="memory",
    probes=_memory_probes,
    judge=_judge_memory,
    every_s=EVERY_S,
    is_quick=False,
    title="less memory than Slurm gives to jobs",
    source="procfs",
    cost_ms=8.0,
    settings=(TOLERANCE,),
)
"""The check of the machine's memory against Slurm's RealMemory: a module that failed at boot is missing."""

_AVAILABLE = re.compile(r"^MemAvailable:\s+([0-9]{1,15}) kB$", re.MULTILINE)
MIN_MB = 100.0
"""Less available memory than this (MiB) is reported."""


def _judge_free(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge how much memory is available; a job may use it up, so this is only reported."""
    found = _AVAILABLE.search(raws[0].files.get(_MEMINFO) or "")
    if found is None:
        return unknown(f"{_MEMINFO} has no MemAvailable")
    free = int(found[1]) // 1024
    text = f"{free} MiB available"
    return failed(text, Severity.INFO, Advice.NONE) if free < MIN_MB else passed(text)


FREE = Check(
    id="mem.free",
    probes=on_every_node(ReadFiles(paths=(_MEMINFO,))),
    judge=_judge_free,
    default_mode="report",
    every_s=60.0,
    title="memory is used up",
    source="procfs",
    cost_ms=0.3,
)
"""The check of the available memory."""

HUGE_ORDER = 9
"""Blocks of 2^9 pages are the 2 MiB of a huge page."""
_BUDDYINFO = "/proc/buddyinfo"
_ROW = re.compile(r"^Node\s+([0-9]{1,4}), zone\s+Normal((?:\s+[0-9]{1,12}){10,20})\s*$", re.MULTILINE)


def _judge_frag(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge the largest free blocks; a full page cache looks the same, so this is only reported."""
    text = raws[0].files.get(_BUDDYINFO)
    if text is None:
        return skipped(f"no {_BUDDYINFO} here")
    free = {node: sum(int(count) for count in counts.split()[HUGE_ORDER:]) for node, counts in _ROW.findall(text)}
    if not free:
        return unknown(f"cannot understand {_BUDDYINFO}")
    if none := [node for node, blocks in free.items() if not blocks]:
        return failed(f"no free block of 2 MiB on NUMA node {', '.join(none)}", Severity.INFO, Advice.NONE)
    return passed(f"{sum(free.values())} free blocks of 2 MiB and more")


FRAG = Check(
    id="mem.frag",
    probes=on_every_node(ReadFiles(paths=(_BUDDYINFO,))),
    judge=_judge_frag,
    default_mode="report",
    every_s=300.0,
    bad_for_s=900.0,
    is_quick=False,
    title="no memory in large pieces",
    source="procfs",
    cost_ms=0.1,
)
"""The check for large free blocks: without any, huge pages and drivers that need contiguous memory fail or wait."""

_DAY_S = 86400.0
_CONTROLLERS = "/sys/devices/system/edac/mc/mc*"
CE_PER_DAY = Threshold(
    name="mem.edac.ce_per_day",
    default=100.0,
    unit="errors",
    text="More corrected errors of one controller within 24 h make its memory suspect.",
    low=1.0,
)


def _edac_readings(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    """Return the error counts by controller and kind, such as `mc0/ce_count`."""
    found = ((PurePosixPath(path), (text or "").strip()) for path, text in raws[0].files.items())
    return {f"{path.parent.name}/{path.name}": float(text) for path, text in found if text.isdecimal()}


def _judge_edac(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge the error counts: any uncorrected error is bad; many corrected errors announce one."""
    now = _edac_readings(raws)
    if not now:
        return skipped("the kernel counts no memory errors here (no EDAC driver)")
    lost = {name: value for name, value in now.items() if name.endswith("/ue_count") and value > 0}
    if lost:
        return _failed_by(lost, "errors that could not be corrected since boot", Severity.DEGRADED, Advice.REPLACE)
    grown = partial(past.growth, within_s=_DAY_S)
    limit = facts.limit(CE_PER_DAY)
    many = {name: grown(name) for name in now if name.endswith("/ce_count") and grown(name) > limit}
    if many:
        return _failed_by(many, f"corrected errors in 24 h (limit {limit:g})", Severity.SUSPECT, Advice.NONE)
    return passed(f"{len(now) // 2} memory controllers, {sum(now.values()):.0f} corrected errors since boot")


def _failed_by(counts: Mapping[str, float], what: str, severity: Severity, advice: Advice) -> Judgement:
    worst = max(counts, key=lambda name: (counts[name], name))
    listed = ", ".join(f"{name.partition('/')[0]} {count:.0f}" for name, count in sorted(counts.items()))
    return failed(f"{what}: {listed}", severity, advice, hardware=worst.partition("/")[0])


EDAC = Check(
    id="mem.edac",
    probes=on_every_node(ReadTree(patterns=(f"{_CONTROLLERS}/ce_count", f"{_CONTROLLERS}/ue_count"))),
    judge=_judge_edac,
    default_mode="drain",
    every_s=600.0,
    is_quick=False,
    title="memory errors (EDAC)",
    source="sysfs",
    cost_ms=0.3,
    settings=(CE_PER_DAY,),
    readings=_edac_readings,
    keep_s=_DAY_S,
)
"""The check of the errors that the memory controllers have counted since boot."""

CHECKS: tuple[Check, ...] = (
    MEMORY,
    FREE,
    FRAG,
    EDAC,
)
