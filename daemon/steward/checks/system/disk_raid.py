"""Linux software RAID: an array that lost a disk."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles

ID = "disk.raid"
_STATUS = "/proc/mdstat"
_ARRAY = re.compile(r"^(?P<name>md[\w-]{1,32}) : active (?P<rest>.*(?:\n[ \t].*)*)", re.MULTILINE)
_LOST = re.compile(r"\(F\)|\[U*_[U_]*\]")
_REBUILDS = re.compile(r"\b(?:recovery|reshape)\s*=\s*[0-9.]+%")


def probes(facts: Facts) -> tuple[ReadFiles, ...]:
    return (ReadFiles(paths=(_STATUS,)),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """An array that rebuilds itself onto a spare needs nobody."""
    arrays = {found["name"]: found["rest"] for found in _ARRAY.finditer(raws[0].files.get(_STATUS) or "")}
    if not arrays:
        return skipped("no software RAID on this node")
    lost = sorted(name for name, rest in arrays.items() if _LOST.search(rest))
    alone = [name for name in lost if not _REBUILDS.search(arrays[name])]
    if alone:
        return failed(f"lost a disk: {', '.join(alone)}", Severity.DEGRADED, Advice.REPLACE, hardware=alone[0])
    if lost:
        return failed(f"lost a disk and rebuilds: {', '.join(lost)}", Severity.INFO, Advice.NONE, hardware=lost[0])
    return passed(f"{len(arrays)} arrays are whole")


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "drain"),
    every_s=60.0,
    title="a RAID array lost a disk",
    source="procfs",
    cost_ms=0.1,
)
