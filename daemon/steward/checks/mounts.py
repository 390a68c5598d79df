"""File systems that must be mounted, writable, or answer from a server."""

import re
from collections.abc import Mapping

from steward.checks.check import Check, Facts, Judgement, Past, failed, passed, skipped, unknown
from steward.checks.limits import Names, Threshold
from steward.model.health import Advice, Scope, Severity
from steward.model.probe import DiskUsage, Probe, Raw, ReadFiles, TouchMounts

_TABLE = "/proc/mounts"
_WHOLE = 60_000
"""The length (characters) from which the read of /proc/mounts may be cut."""
_OCTAL = re.compile(r"\\([0-7]{3})")


WRITABLE = Names(name="mounts.writable", text="Mount points that must not be read-only.", default=("/",))
PRESENT = Names(name="mounts.present", text="Paths that must be mount points.")


def _mounts_probes(facts: Facts) -> tuple[Probe, ...]:
    table = (ReadFiles(paths=(_TABLE,)),) if facts.names(PRESENT) else ()
    return (DiskUsage(paths=facts.names(WRITABLE)), *table)


def _judge_mounts(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    raw, *tables = raws
    writable, present = facts.names(WRITABLE), facts.names(PRESENT)
    if not writable and not present:
        return skipped("no mount point is named (set `writable` or `present` in [checks.mounts])")
    table = tables[0].files.get(_TABLE) if tables else ""
    if table is None:
        return unknown(f"{_TABLE} is not there")
    points = {point for point, _ in mounted(table)}
    absent = [path for path in writable if path not in raw.disks]
    read_only = [path for path in writable if path in raw.disks and raw.disks[path].read_only]
    unmounted = [path for path in present if path not in points]
    if read_only:
        return failed(f"read-only: {', '.join(read_only)}", Severity.DEGRADED, Advice.REBOOT)
    if absent:
        return failed(f"not there: {', '.join(absent)}", Severity.DEGRADED, Advice.REBOOT)
    if unmounted and len(table) > _WHOLE:
        return unknown(f"{_TABLE} is too long to say whether {unmounted[0]} is mounted")
    if unmounted:
        return failed(f"not mounted: {', '.join(unmounted)}", Severity.DEGRADED, Advice.REBOOT)
    return passed(_passed_text(writable, present))


def _passed_text(writable: tuple[str, ...], present: tuple[str, ...]) -> str:
    parts = (("writable", writable), ("mounted", present))
    return "; ".join(f"{word}: {', '.join(paths)}" for word, paths in parts if paths)


def mounted(table: str) -> tuple[tuple[str, str], ...]:
    """Return mount point and type of each line of /proc/mounts."""
    # In /proc/mounts white space and backslashes of a path are octal, as in `\\040`.
    fields = (line.split(" ") for line in table.splitlines())
    return tuple((_OCTAL.sub(lambda match: chr(int(match[1], 8)), words[1]), words[2]) for words in fields if words[2:])


MOUNTS = Check(
    id="mounts",
    probes=_mounts_probes,
    judge=_judge_mounts,
    title="a file system is read-only or not mounted",
    source="statvfs",
    cost_ms=0.1,
    settings=(WRITABLE, PRESENT),
)
"""The check of file systems that must be mounted or writable: when a disk fails, the kernel makes its file system
read-only."""

TYPES = (
    *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "wekafs", "panfs", "pvfs2", "cifs", "smb3", "9p", "afs"),
    *("fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs", "fuse.juicefs", "fuse.daos", "fuse.dfuse"),
)
_EVERY_S = 60.0
_SHOWN = 6
SHARED_PATHS = Names(
    name="fs.shared.paths",
    text="Shared file systems that must be mounted and answer; empty: all that are mounted of a shared type (NFS, "
    "Lustre, ...).",
)
MISSES = Threshold(
    name="fs.shared.misses",
    default=5.0,
    unit="looks",
    text="A file system that did not answer in this many looks in a row, a minute apart, is reported as failed.",
    low=1.0,
    high=100.0,
)


def _shared_probes(facts: Facts) -> tuple[TouchMounts, ...]:
    """Return the probe of the file systems that the site names, or else of all mounted ones of a shared type."""
    named = facts.names(SHARED_PATHS)
    return (TouchMounts(paths=named, types=() if named else TYPES),)


def _shared_readings(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    return {path: float(bool(what)) for path, what in raws[0].mounts.items()}


def _judge_shared(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    mounts = raws[0].mounts
    if not mounts:
        return skipped("no shared file system on this node")
    bad = {path: what for path, what in sorted(mounts.items()) if what}
    if not bad:
        return passed(f"{len(mounts)} shared file systems answer")
    text = ", ".join(f"{path}: {what}" for path, what in list(bad.items())[:_SHOWN])
    misses = max(_misses_in_a_row(path, past) for path in bad)
    if misses < facts.limit(MISSES):
        return unknown(f"no answer in {misses} looks, {facts.limit(MISSES):g} are needed: {text}")
    return failed(text, Severity.DEGRADED, Advice.NONE, scope=Scope.CLUSTER)


def _misses_in_a_row(path: str, past: Past) -> int:
    """Return how many looks in a row, up to this one, got no answer from `path`."""
    misses = 0
    for reading in reversed(past.readings):
        if not reading.values.get(path):
            break
        misses += 1
    return misses


SHARED = Check(
    id="fs.shared",
    probes=_shared_probes,
    judge=_judge_shared,
    default_mode="report",
    every_s=_EVERY_S,
    is_quick=False,
    title="a shared file system does not answer",
    source="command",
    cost_ms=1.0,
    settings=(SHARED_PATHS, MISSES),
    readings=_shared_readings,
    keep_s=101 * _EVERY_S,
)
"""The check that shared file systems are mounted and answer. No node is drained for a failure, which is the server's or
the network's fault."""

CHECKS: tuple[Check, ...] = (MOUNTS, SHARED)
