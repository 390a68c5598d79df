"""Processes of users who have no job here, outside of any job."""

from collections.abc import Iterable

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.system.rhythm import PROCESSES_S
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import ListProcesses, Process, Raw

ID = "proc.rogue"
FIRST_UID = Threshold(
    name="proc.rogue.first_uid",
    default=1000.0,
    unit="uid",
    text="Users from this one on are people.",
    high=4294967295.0,
)
AGE_S = Threshold(
    name="proc.rogue.age_s", default=300.0, unit="s", text="Younger processes are not looked at.", high=604800.0
)
_NOBODY = frozenset({65534, 4294967294})
_SESSION = frozenset({"systemd", "(sd-pam)", "dbus-daemon", "dbus-broker"})
"""What a login leaves behind on a well-kept machine."""
_STEPD = "slurmstepd"
_DEPTH = 64
_SHOWN = 6


def probes(facts: Facts) -> tuple[ListProcesses, ...]:
    return (ListProcesses(),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """Told only: Slurm's own plugins and the site's rules for logins decide who may be here."""
    by_pid = {process.pid: process for process in raws[0].processes}
    if not by_pid:
        return skipped("/proc lists no process here")
    people = [process for process in by_pid.values() if _is_persons(process, facts)]
    in_job = {process.pid for process in people if _is_of_a_job(process, by_pid)}
    users = {by_pid[pid].uid for pid in in_job}
    alone = [process for process in people if process.pid not in in_job and process.uid not in users]
    rogue = [process for process in alone if _counts(process, facts, past.now)]
    if rogue:
        return failed(f"{len(rogue)} processes without a job: {_told(rogue)}", Severity.INFO, Advice.NONE)
    return passed("no process of a user without a job")


def _is_persons(process: Process, facts: Facts) -> bool:
    return process.uid >= facts.limit(FIRST_UID) and process.uid not in _NOBODY


def _counts(process: Process, facts: Facts, now: float) -> bool:
    is_old = now - process.started >= facts.limit(AGE_S)
    return is_old and process.name not in _SESSION and process.state != "Z"


def _is_of_a_job(process: Process, by_pid: dict[int, Process]) -> bool:
    """A slurmstepd, which is root's, is among its ancestors."""
    here: Process | None = process
    for _ in range(_DEPTH):
        here = by_pid.get(here.parent) if here else None
        if here is None:
            return False
        if here.name == _STEPD and here.uid == 0:
            return True
    return False


def _told(rogue: Iterable[Process]) -> str:
    first = sorted(rogue, key=lambda process: process.pid)[:_SHOWN]
    return ", ".join(f"{process.name} ({process.pid}, uid {process.uid})" for process in first)


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=PROCESSES_S,
    is_quick=False,
    title="processes of users without a job",
    source="procfs",
    cost_ms=1.0,
    thresholds=(FIRST_UID, AGE_S),
)
