"""Memory in large pieces: without any, huge pages and drivers that want contiguous memory fail or wait."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped, unknown
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles

ID = "mem.frag"
HUGE_ORDER = 9
"""Blocks of 2^9 pages are the 2 MiB of a huge page."""
_BUDDYINFO = "/proc/buddyinfo"
_ROW = re.compile(r"^Node\s+([0-9]{1,4}), zone\s+Normal((?:\s+[0-9]{1,12}){10,20})\s*$", re.MULTILINE)


def probes(facts: Facts) -> tuple[ReadFiles, ...]:
    return (ReadFiles(paths=(_BUDDYINFO,)),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """A full page cache looks like this, too: told, and no reason to act."""
    text = raws[0].files.get(_BUDDYINFO)
    if text is None:
        return skipped(f"no {_BUDDYINFO} here")
    free = {node: sum(int(count) for count in counts.split()[HUGE_ORDER:]) for node, counts in _ROW.findall(text)}
    if not free:
        return unknown(f"{_BUDDYINFO} makes no sense")
    if none := [node for node, blocks in free.items() if not blocks]:
        return failed(f"no free block of 2 MiB on NUMA node {', '.join(none)}", Severity.INFO, Advice.NONE)
    return passed(f"{sum(free.values())} free blocks of 2 MiB and more")


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=300.0,
    bad_for_s=900.0,
    is_quick=False,
    title="no memory in large pieces",
    source="procfs",
    cost_ms=0.1,
)
