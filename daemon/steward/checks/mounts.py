"""File systems that must be writable: the kernel turns one read-only when its disk fails."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import DiskUsage, Raw


def probes(facts: Facts) -> tuple[DiskUsage, ...]:
    return (DiskUsage(paths=facts.limits.mounts.writable),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    (raw,) = raws
    wanted = facts.limits.mounts.writable
    if not wanted:
        return skipped("checks.mounts.writable is empty")
    absent = [path for path in wanted if path not in raw.disks]
    read_only = [path for path in wanted if path in raw.disks and raw.disks[path].read_only]
    if read_only:
        return failed(f"read-only: {', '.join(read_only)}", Severity.DEGRADED, Advice.REBOOT)
    if absent:
        return failed(f"not there: {', '.join(absent)}", Severity.DEGRADED, Advice.REBOOT)
    return passed(f"writable: {', '.join(wanted)}")


CHECK = Check(id="mounts", probes=probes, judge=judge, mode=lambda limits: limits.mounts.mode)
