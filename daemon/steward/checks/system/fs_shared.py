"""Shared file systems are mounted and answer. One that does not is the server's fault or the network's: it never
touches a node."""

from collections.abc import Mapping

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped, unknown
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Scope, Severity
from steward.model.probe import Raw, TouchMounts

ID = "fs.shared"
TYPES = (
    *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "wekafs", "panfs", "pvfs2", "cifs", "smb3", "9p", "afs"),
    *("fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs", "fuse.juicefs", "fuse.daos", "fuse.dfuse"),
)
_EVERY_S = 60.0
_SHOWN = 6
MISSES = Threshold(
    name="fs.shared.misses",
    default=5.0,
    unit="looks",
    text="A file system that did not answer in this many looks in a row, a minute apart, is told as failed.",
    low=1.0,
    high=100.0,
)


def probes(facts: Facts) -> tuple[TouchMounts, ...]:
    """Those that the site named, or else what is mounted of a shared type."""
    named = facts.limits.mounts.shared
    return (TouchMounts(paths=named, types=() if named else TYPES),)


def readings(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    return {path: float(bool(what)) for path, what in raws[0].mounts.items()}


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    mounts = raws[0].mounts
    if not mounts:
        return skipped("no shared file system on this node")
    bad = {path: what for path, what in sorted(mounts.items()) if what}
    if not bad:
        return passed(f"{len(mounts)} shared file systems answer")
    told = ", ".join(f"{path}: {what}" for path, what in list(bad.items())[:_SHOWN])
    misses = max(_in_a_row(path, past) for path in bad)
    if misses < facts.limit(MISSES):
        return unknown(f"no answer in {misses} looks, {facts.limit(MISSES):g} are needed: {told}")
    return failed(told, Severity.DEGRADED, Advice.NONE, scope=Scope.CLUSTER)


def _in_a_row(path: str, past: Past) -> int:
    """How many looks up to this one missed it."""
    misses = 0
    for reading in reversed(past.readings):
        if not reading.values.get(path):
            break
        misses += 1
    return misses


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=_EVERY_S,
    is_quick=False,
    title="a shared file system does not answer",
    source="command",
    cost_ms=1.0,
    thresholds=(MISSES,),
    readings=readings,
    keep_s=101 * _EVERY_S,
)
