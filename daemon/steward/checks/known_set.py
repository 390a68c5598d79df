"""Judgement of a set of devices: a device that was seen in this boot, or that the site expects, must be there."""

from collections.abc import Callable, Iterable

from steward.checks.check import Facts, Judge, Judgement, Notes, Past, failed, passed, skipped
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

_SHOWN = 8

Devices = Callable[[Raw], Iterable[str]]
"""A look -> the devices that it found, each by a name that never changes within a boot."""


def note_first_seen(there: Iterable[str], past: Past) -> Notes:
    """Return the notes after this look: when each device was first seen."""
    return {**dict.fromkeys(there, (past.now,)), **past.notes}


def judge_set(
    there: Iterable[str], past: Past, *, expected: int, what: str, severity: Severity, advice: Advice
) -> Judgement:
    """Judge the set: bad if a noted device is missing, or if fewer than `expected` (0: any number) are there."""
    found = set(there)
    gone = sorted(set(past.notes) - found)
    if not found and not gone and not expected:
        return skipped(f"no {what} on this node")
    if gone:
        named = ", ".join(gone[:_SHOWN])
        return failed(f"{len(gone)} of {len(past.notes)} {what}s vanished: {named}", severity, advice, hardware=gone[0])
    if len(found) < expected:
        return failed(f"{len(found)} {what}s, {expected} expected", severity, advice)
    return passed(f"{len(found)} {what}s")


def note_of(devices: Devices) -> Callable[[tuple[Raw, ...], Facts, Past], Notes]:
    """Return the `note` function of a check of these devices."""
    return lambda raws, facts, past: note_first_seen(devices(raws[0]), past)


def judge_of(devices: Devices, expected: Threshold, what: str, severity: Severity, advice: Advice) -> Judge:
    """Return the judge of a check of these devices; `expected` is the setting for their number."""

    def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
        wanted = int(facts.limit(expected))
        return judge_set(devices(raws[0]), past, expected=wanted, what=what, severity=severity, advice=advice)

    return judge
