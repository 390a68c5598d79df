"""Space for what slurmd keeps of its jobs: without it no job starts here."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.disk import used_percent
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, SpoolUsage

ID = "slurm.spool"
PERCENT = Threshold(
    name="slurm.spool.percent",
    default=90.0,
    unit="%",
    text="A larger share of space or inodes in use is bad.",
    low=1.0,
    high=100.0,
)


def probes(facts: Facts) -> tuple[SpoolUsage, ...]:
    return (SpoolUsage(node=facts.node, slurm_conf=facts.slurm_conf),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    disks = raws[0].disks
    if not disks:
        return skipped("SlurmdSpoolDir is not there")
    path, disk = next(iter(disks.items()))
    used = used_percent(disk)
    text = f"SlurmdSpoolDir {path}: {used:.0f} % in use"
    return failed(text, Severity.DEGRADED, Advice.NONE) if used > facts.limit(PERCENT) else passed(text)


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=60.0,
    title="no space for slurmd's own files",
    source="procfs",
    cost_ms=0.2,
    thresholds=(PERCENT,),
)
