"""Processes that are stuck in the kernel: in state D for minutes, without a tick of CPU time."""

from collections.abc import Mapping

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.system.rhythm import PROCESSES_S
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import ListProcesses, Process, Raw

ID = "os.dstate"
STUCK_S = Threshold(
    name="os.dstate.stuck_s",
    default=300.0,
    unit="s",
    text="A process that has been in state D this long, without using CPU time, is stuck.",
    low=60.0,
    high=1500.0,
)
_KEEP_S = 1800.0
_MAX = 512
_SHOWN = 6
_KTHREADD = 2
_GPU_THREADS = ("nvidia", "nv_", "UVM ")


def probes(facts: Facts) -> tuple[ListProcesses, ...]:
    return (ListProcesses(),)


def readings(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    """CPU time of each process in state D, plus one."""
    return {_key(process): process.ticks + 1.0 for process in _blocked(raws)}


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """Only the GPU driver's own kernel threads are proof of a broken node: nobody else can have that parent. What is
    stuck otherwise mostly waits for a file server, which no repair of a node mends."""
    if not raws[0].processes:
        return skipped("/proc lists no process here")
    limit = facts.limit(STUCK_S)
    stuck = [process for process in _blocked(raws) if _since(process, past) <= past.now - limit]
    driver = [process for process in stuck if process.parent == _KTHREADD and process.name.startswith(_GPU_THREADS)]
    if driver:
        return failed(f"the GPU driver hangs: {_told(driver)}", Severity.DEGRADED, Advice.REBOOT)
    if stuck:
        return failed(f"stuck in state D for {limit:g} s: {_told(stuck)}", Severity.INFO, Advice.NONE)
    return passed("no process is stuck")


def _blocked(raws: tuple[Raw, ...]) -> list[Process]:
    return [process for process in raws[0].processes if process.state == "D"][:_MAX]


def _key(process: Process) -> str:
    return f"{process.pid}@{process.started:.2f}"


def _since(process: Process, past: Past) -> float:
    """The first of the looks, up to now without a gap, that found it in state D with this CPU time."""
    key, since = _key(process), past.now
    for reading in reversed(past.readings):
        if reading.values.get(key) != process.ticks + 1.0:
            break
        since = reading.at
    return since


def _told(processes: list[Process]) -> str:
    more = f" and {len(processes) - _SHOWN} more" if len(processes) > _SHOWN else ""
    return ", ".join(f"{process.name} ({process.pid})" for process in processes[:_SHOWN]) + more


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "drain"),
    every_s=PROCESSES_S,
    is_quick=False,
    title="processes stuck in the kernel",
    source="procfs",
    cost_ms=4.0,
    thresholds=(STUCK_S,),
    readings=readings,
    keep_s=_KEEP_S,
)
