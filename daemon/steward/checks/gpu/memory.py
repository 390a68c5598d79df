"""GPU memory: errors that ECC found, rows remapped, pages retired, and what a job left behind in it."""

from steward.checks.check import Check, Facts, Judgement, Past, failed, passed, skipped
from steward.checks.gpu.look import (
    ANSWERS_S,
    judge_by_limits,
    judge_by_values,
    nothing_to_judge,
    nvml_check,
    probes,
    readable_gpus,
)
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Gpu, ListProcesses, Probe, Process, Raw

SRAM = Threshold(
    name="gpu.ecc.sram_ue.lifetime",
    default=4,
    unit="errors",
    text="More uncorrectable SRAM errors in a GPU's life than this ask for a new machine; fewer are reported.",
)
DRAM_CE = Threshold(
    name="gpu.ecc.ce.dram",
    default=20e6,
    unit="errors",
    text="Bad above this many corrected DRAM errors since the driver's start.",
)
SRAM_CE = Threshold(
    name="gpu.ecc.ce.sram",
    default=10e3,
    unit="errors",
    text="Bad above this many corrected SRAM errors since the driver's start.",
)


def _uncorrected(gpu: Gpu) -> Judgement | None:
    if gpu.ecc_uncorrected is None:
        return None
    text = f"{gpu.ecc_uncorrected} uncorrectable ECC errors since the driver's start"
    return failed(text, Severity.DEGRADED, Advice.RESET_GPU) if gpu.ecc_uncorrected else passed(text)


def _sram(gpu: Gpu, facts: Facts, past: Past) -> Judgement | None:
    if gpu.sram_uncorrected is None:
        return None
    text = f"{gpu.sram_uncorrected} uncorrectable SRAM errors in its life"
    if gpu.sram_limit_exceeded:
        return failed(f"{text}, over NVIDIA's own limit", Severity.DEGRADED, Advice.REPLACE)
    if gpu.sram_uncorrected > facts.limit(SRAM):
        return failed(text, Severity.DEGRADED, Advice.REPLACE)
    return failed(text, Severity.INFO, Advice.NONE) if gpu.sram_uncorrected else passed(text)


def _corrected(gpu: Gpu, facts: Facts, past: Past) -> Judgement | None:
    if gpu.ecc_corrected_dram is None and gpu.ecc_corrected_sram is None:
        return None
    dram, sram = gpu.ecc_corrected_dram or 0, gpu.ecc_corrected_sram or 0
    text = f"{dram} corrected DRAM and {sram} corrected SRAM errors since the driver's start"
    is_storm = dram > facts.limit(DRAM_CE) or sram > facts.limit(SRAM_CE)
    return failed(text, Severity.SUSPECT, Advice.NONE) if is_storm else passed(text)


DBE_VOL = nvml_check(
    "gpu.ecc.dbe_vol", judge_by_values(_uncorrected), title="Uncorrectable ECC error since the driver's start"
)
SRAM_UE = nvml_check(
    "gpu.ecc.sram_ue", judge_by_limits(_sram), title="Uncorrectable error of a GPU's SRAM", settings=(SRAM,)
)
CE = nvml_check(
    "gpu.ecc.ce",
    judge_by_limits(_corrected),
    mode="report",
    title="Storm of corrected ECC errors",
    settings=(DRAM_CE, SRAM_CE),
)

WORN = Threshold(
    name="gpu.remap.count.suspect",
    default=10,
    unit="rows",
    text="More rows remapped for uncorrectable errors ask for a deep check: most such GPUs were slow.",
)
WORN_OUT = Threshold(
    name="gpu.remap.count.most", default=512, unit="rows", text="More remapped rows than this ask for a new machine."
)
PAGES = Threshold(
    name="gpu.retired.pages", default=10, unit="pages", text="Bad above this many retired pages (GPUs before Ampere)."
)


def _pending(gpu: Gpu) -> Judgement | None:
    if gpu.remap_pending is None:
        return None
    if gpu.remap_pending:
        return failed("a row is remapped at the next reset", Severity.SUSPECT, Advice.RESET_GPU)
    return passed("no row waits for a reset")


def _failed(gpu: Gpu) -> Judgement | None:
    if gpu.remap_failed is None:
        return None
    if gpu.remap_failed:
        return failed("a row could not be remapped, no spare is left", Severity.DEGRADED, Advice.REPLACE)
    return passed("spare rows are left")


def _remapped(gpu: Gpu, facts: Facts, past: Past) -> Judgement | None:
    if gpu.remapped_uncorrected is None:
        return None
    text = f"{gpu.remapped_uncorrected} rows remapped for uncorrectable errors"
    if gpu.remapped_uncorrected > facts.limit(WORN_OUT):
        return failed(text, Severity.DEGRADED, Advice.REPLACE)
    is_worn = gpu.remapped_uncorrected > facts.limit(WORN)
    return failed(text, Severity.SUSPECT, Advice.NONE) if is_worn else passed(text)


def _retired(gpu: Gpu, facts: Facts, past: Past) -> Judgement | None:
    if gpu.retired_pages is None and gpu.retire_pending is None:
        return None
    text = f"{gpu.retired_pages or 0} retired pages"
    if gpu.retire_pending:
        return failed(f"{text}, one more at the next reboot", Severity.SUSPECT, Advice.REBOOT)
    is_worn = (gpu.retired_pages or 0) > facts.limit(PAGES)
    return failed(text, Severity.SUSPECT, Advice.NONE) if is_worn else passed(text)


PENDING = nvml_check(
    "gpu.remap.pending", judge_by_values(_pending), title="Row of GPU memory to be remapped at the next reset"
)
FAILED = nvml_check("gpu.remap.failed", judge_by_values(_failed), title="GPU memory out of spare rows")
COUNT = nvml_check("gpu.remap.count", judge_by_limits(_remapped), title="Many remapped rows", settings=(WORN, WORN_OUT))
RETIRED = nvml_check("gpu.retired", judge_by_limits(_retired), title="Retired pages of GPU memory", settings=(PAGES,))

MEMORY = Threshold(
    name="gpu.mem_in_use.mib",
    default=64,
    unit="MiB",
    text="More GPU memory in use than this, without a job or a process that uses the GPU, counts as left behind.",
)
_STEPD = "slurmstepd"
_LASTS_S = 60.0
_SHOWN = 4


def _leftover_probes(facts: Facts) -> tuple[Probe, ...]:
    return (*probes(facts), ListProcesses())


def _judge_leftover(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge the GPUs of a node without any job for memory and processes left behind."""
    # With a job on the node, a process may be the job's. A process of root is a service.
    gpus, listed = raws
    if (none := nothing_to_judge(gpus)) is not None:
        return none
    if not listed.processes:
        return skipped("the node's processes cannot be listed")
    if _has_job(listed.processes):
        return passed("a job is on the node")
    by_pid = {process.pid: process for process in listed.processes}
    for gpu in readable_gpus(gpus):
        if text := _left_on(gpu, by_pid, facts.limit(MEMORY)):
            return failed(
                f"no job is here, but GPU {gpu.index} has {text}", Severity.SUSPECT, Advice.NONE, hardware=gpu.uuid
            )
    return passed("nothing is left on the GPUs")


def _has_job(processes: tuple[Process, ...]) -> bool:
    """Return whether a slurmstepd of root's with children runs."""
    # The slurmstepd that only holds the cgroup of all steps has no children.
    stepds = {process.pid for process in processes if process.name == _STEPD and process.uid == 0}
    return any(process.parent in stepds for process in processes)


def _left_on(gpu: Gpu, by_pid: dict[int, Process], most_mib: float) -> str:
    users = [by_pid.get(user.pid) for user in gpu.processes or ()]
    left = [process for process in users if process is not None and process.uid != 0]
    if left:
        return "processes " + ", ".join(f"{one.pid} ({one.name}, uid {one.uid})" for one in left[:_SHOWN])
    if not users and (gpu.memory_used_mib or 0) > most_mib:
        return f"{gpu.memory_used_mib} MiB of memory in use that no process holds"
    return ""


LEFTOVER = Check(
    id="gpu.mem_in_use",
    probes=_leftover_probes,
    judge=_judge_leftover,
    default_mode="report",
    every_s=60.0,
    bad_for_s=_LASTS_S,
    timeout_s=ANSWERS_S.high + 30.0,
    is_quick=False,
    title="GPU memory or processes left behind by a job",
    source="nvml",
    settings=(MEMORY,),
)
"""The check for GPU memory or processes that a job left behind, with which the next job finds the GPU busy."""

CHECKS: tuple[Check, ...] = (
    DBE_VOL,
    SRAM_UE,
    CE,
    PENDING,
    FAILED,
    COUNT,
    RETIRED,
    LEFTOVER,
)
