"""GPU memory or processes that a job left behind: the next job finds the GPU busy."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.gpu.look import ANSWERS_S, answering, nothing_to_judge, probes
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.gpu import Gpu
from steward.model.health import Advice, Severity
from steward.model.probe import ListProcesses, Probe, Process, Raw

MEMORY = Threshold(
    name="gpu.mem_in_use.mib",
    default=64,
    unit="MiB",
    text="More GPU memory in use than this, with no job and no process that uses the GPU, was left behind.",
)
_STEPD = "slurmstepd"
_LASTS_S = 60.0
_SHOWN = 4


def leftover_probes(facts: Facts) -> tuple[Probe, ...]:
    return (*probes(facts), ListProcesses())


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """Only of a node without any job: whose process it is need not be guessed then. What runs as root is a service."""
    gpus, listed = raws
    if (none := nothing_to_judge(gpus)) is not None:
        return none
    if not listed.processes:
        return skipped("the node's processes cannot be seen")
    if _has_job(listed.processes):
        return passed("a job is on the node")
    by_pid = {process.pid: process for process in listed.processes}
    for gpu in answering(gpus):
        if text := _left_on(gpu, by_pid, facts.limit(MEMORY)):
            return failed(
                f"no job is here, but GPU {gpu.index} has {text}", Severity.SUSPECT, Advice.NONE, hardware=gpu.uuid
            )
    return passed("nothing is left on the GPUs")


def _has_job(processes: tuple[Process, ...]) -> bool:
    """A slurmstepd with children. The one that only holds the cgroup of all steps has none."""
    stepds = {process.pid for process in processes if process.name == _STEPD}
    return any(process.parent in stepds for process in processes)


def _left_on(gpu: Gpu, by_pid: dict[int, Process], most_mib: float) -> str:
    users = [by_pid.get(user.pid) for user in gpu.processes or ()]
    left = [process for process in users if process is not None and process.uid != 0]
    if left:
        return "processes " + ", ".join(f"{one.pid} ({one.name}, uid {one.uid})" for one in left[:_SHOWN])
    if not users and (gpu.memory_used_mib or 0) > most_mib:
        return f"{gpu.memory_used_mib} MiB of memory in use that no process holds"
    return ""


CHECK = Check(
    id="gpu.mem_in_use",
    probes=leftover_probes,
    judge=judge,
    mode=by_id("gpu.mem_in_use", "report"),
    every_s=60.0,
    bad_for_s=_LASTS_S,
    timeout_s=ANSWERS_S.high + 30.0,
    is_quick=False,
    title="GPU memory or processes left behind by a job",
    source="nvml",
    thresholds=(MEMORY,),
)
