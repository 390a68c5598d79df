"""Processes that are stuck in the kernel, zombies, or of users without a job."""

from collections import Counter
from collections.abc import Iterable, Mapping

from steward.checks.check import Check, Facts, Judgement, Past, failed, on_every_node, passed, skipped
from steward.checks.cpu import ONLINE, count_cpus
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import ListProcesses, Process, Raw, ReadFiles

PROCESSES_S = 120.0
"""Seconds between looks at all processes: each costs milliseconds of CPU on a large node."""
STUCK_S = 300.0
"""A process that has been in state D this long, without using CPU time, is stuck."""
_KEEP_S = 1800.0
_MAX = 512
_SHOWN = 6
_KTHREADD = 2
_GPU_THREADS = ("nvidia", "nv_", "UVM ")


def _dstate_readings(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    """Return the CPU time, plus one, of each process in state D."""
    # Plus one, so that a process without any CPU time differs from an absent process.
    return {_key(process): process.ticks + 1.0 for process in _blocked(raws)}


def _judge_dstate(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge the processes stuck in state D; only those of the GPU driver prove that the node is broken."""
    if not raws[0].processes:
        return skipped("/proc lists no process here")
    limit = STUCK_S
    stuck = [process for process in _blocked(raws) if _since(process, past) <= past.now - limit]
    # A user can choose a process's name, but only kernel threads have kthreadd as parent.
    driver = [process for process in stuck if process.parent == _KTHREADD and process.name.startswith(_GPU_THREADS)]
    if driver:
        return failed(f"the GPU driver hangs: {_named(driver)}", Severity.DEGRADED, Advice.REBOOT)
    if stuck:  # mostly a wait for a file server, which no repair of a node ends
        return failed(f"stuck in state D for {limit:g} s: {_named(stuck)}", Severity.INFO, Advice.NONE)
    return passed("no process is stuck")


def _blocked(raws: tuple[Raw, ...]) -> list[Process]:
    return [process for process in raws[0].processes if process.state == "D"][:_MAX]


def _key(process: Process) -> str:
    return f"{process.pid}@{process.started:.2f}"


def _since(process: Process, past: Past) -> float:
    """Return since when every look found the process in state D with this CPU time."""
    key, since = _key(process), past.now
    for reading in reversed(past.readings):
        if reading.values.get(key) != process.ticks + 1.0:
            break
        since = reading.at
    return since


def _named(processes: list[Process]) -> str:
    more = f" and {len(processes) - _SHOWN} more" if len(processes) > _SHOWN else ""
    return ", ".join(f"{process.name} ({process.pid})" for process in processes[:_SHOWN]) + more


DSTATE = Check(
    id="os.dstate",
    probes=on_every_node(ListProcesses()),
    judge=_judge_dstate,
    default_mode="drain",
    every_s=PROCESSES_S,
    is_quick=False,
    title="processes stuck in the kernel",
    source="procfs",
    cost_ms=4.0,
    readings=_dstate_readings,
    keep_s=_KEEP_S,
)
"""The check for processes stuck in the kernel: in state D for minutes, without a tick of CPU time."""

PER_CPU = 50
"""More zombies than this for each CPU are reported."""


def _judge_zombie(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    listed, files = raws
    if not listed.processes:
        return skipped("/proc lists no process here")
    limit = PER_CPU * (count_cpus(files.files.get(ONLINE)) or 1)
    parents = Counter(process.parent for process in listed.processes if process.state == "Z")
    text = f"{parents.total()} zombies"
    if parents.total() <= limit:
        return passed(text)
    parent, most = parents.most_common(1)[0]
    return failed(f"{text}, {most} of them of process {parent} (limit {limit:g})", Severity.INFO, Advice.NONE)


ZOMBIE = Check(
    id="os.zombie",
    probes=on_every_node(ListProcesses(), ReadFiles(paths=(ONLINE,))),
    judge=_judge_zombie,
    default_mode="report",
    every_s=PROCESSES_S,
    is_quick=False,
    title="zombie processes",
    source="procfs",
    cost_ms=0.3,
)
"""The check for zombies: processes that have ended and that their parents do not collect."""

FIRST_UID = Threshold(
    name="proc.rogue.first_uid",
    default=1000.0,
    unit="uid",
    text="The lowest user id of a person.",
    high=4294967295.0,
)
AGE_S = Threshold(
    name="proc.rogue.age_s", default=300.0, unit="s", text="Younger processes are ignored.", high=604800.0
)
_NOBODY = frozenset({65534, 4294967294})
_SESSION = frozenset({"systemd", "(sd-pam)", "dbus-daemon", "dbus-broker"})
"""The names of processes that any login leaves behind."""
_STEPD = "slurmstepd"
_DEPTH = 64


def _judge_rogue(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge processes of users who have no job here; only reported, as the site decides who may log in."""
    by_pid = {process.pid: process for process in raws[0].processes}
    if not by_pid:
        return skipped("/proc lists no process here")
    people = [process for process in by_pid.values() if _is_persons(process, facts)]
    in_job = {process.pid for process in people if _is_of_a_job(process, by_pid)}
    users = {by_pid[pid].uid for pid in in_job}
    alone = [process for process in people if process.pid not in in_job and process.uid not in users]
    rogue = [process for process in alone if _is_leftover(process, facts, past.now)]
    if rogue:
        return failed(f"{len(rogue)} processes without a job: {_named_with_uid(rogue)}", Severity.INFO, Advice.NONE)
    return passed("no process of a user without a job")


def _is_persons(process: Process, facts: Facts) -> bool:
    return process.uid >= facts.limit(FIRST_UID) and process.uid not in _NOBODY


def _is_leftover(process: Process, facts: Facts, now: float) -> bool:
    is_old = now - process.started >= facts.limit(AGE_S)
    return is_old and process.name not in _SESSION and process.state != "Z"


def _is_of_a_job(process: Process, by_pid: dict[int, Process]) -> bool:
    """Return whether a slurmstepd of root is among the ancestors of the process."""
    here: Process | None = process
    for _ in range(_DEPTH):
        here = by_pid.get(here.parent) if here else None
        if here is None:
            return False
        if here.name == _STEPD and here.uid == 0:
            return True
    return False


def _named_with_uid(rogue: Iterable[Process]) -> str:
    first = sorted(rogue, key=lambda process: process.pid)[:_SHOWN]
    return ", ".join(f"{process.name} ({process.pid}, uid {process.uid})" for process in first)


ROGUE = Check(
    id="proc.rogue",
    probes=on_every_node(ListProcesses()),
    judge=_judge_rogue,
    default_mode="report",
    every_s=PROCESSES_S,
    is_quick=False,
    title="processes of users without a job",
    source="procfs",
    cost_ms=1.0,
    settings=(FIRST_UID, AGE_S),
)
"""The check for processes outside of any job, of users who have no job here."""

CHECKS: tuple[Check, ...] = (
    DSTATE,
    ZOMBIE,
    ROGUE,
)
