"""Errors that the memory controllers have counted since boot."""

from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadTree

ID = "mem.edac"
_DAY_S = 86400.0
_CONTROLLERS = "/sys/devices/system/edac/mc/mc*"
CE_PER_DAY = Threshold(
    name="mem.edac.ce_per_day",
    default=100.0,
    unit="errors",
    text="More corrected errors of one controller within 24 h make its memory suspect.",
    low=1.0,
)


def probes(facts: Facts) -> tuple[ReadTree, ...]:
    return (ReadTree(patterns=(f"{_CONTROLLERS}/ce_count", f"{_CONTROLLERS}/ue_count")),)


def readings(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    """`mc0/ce_count` -> number."""
    found = ((PurePosixPath(path), (text or "").strip()) for path, text in raws[0].files.items())
    return {f"{path.parent.name}/{path.name}": float(text) for path, text in found if text.isdecimal()}


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """An error that was not corrected has destroyed data; many corrected ones announce it."""
    now = readings(raws)
    if not now:
        return skipped("the kernel counts no memory errors here (no EDAC driver)")
    lost = {name: value for name, value in now.items() if name.endswith("/ue_count") and value > 0}
    if lost:
        return _bad(lost, "errors that could not be corrected since boot", Severity.DEGRADED, Advice.REPLACE)
    grown = partial(past.growth, within_s=_DAY_S)
    limit = facts.limit(CE_PER_DAY)
    many = {name: grown(name) for name in now if name.endswith("/ce_count") and grown(name) > limit}
    if many:
        return _bad(many, f"corrected errors in 24 h (limit {limit:g})", Severity.SUSPECT, Advice.NONE)
    return passed(f"{len(now) // 2} memory controllers, {sum(now.values()):.0f} corrected errors since boot")


def _bad(counts: Mapping[str, float], what: str, severity: Severity, advice: Advice) -> Verdict:
    worst = max(counts, key=lambda name: (counts[name], name))
    told = ", ".join(f"{name.partition('/')[0]} {count:.0f}" for name, count in sorted(counts.items()))
    return failed(f"{what}: {told}", severity, advice, hardware=worst.partition("/")[0])


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "drain"),
    every_s=600.0,
    is_quick=False,
    title="memory errors (EDAC)",
    source="sysfs",
    cost_ms=0.3,
    thresholds=(CE_PER_DAY,),
    readings=readings,
    keep_s=_DAY_S,
)
