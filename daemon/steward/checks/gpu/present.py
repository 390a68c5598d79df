"""Every GPU is there and answers through NVML."""

from dataclasses import replace

from steward.checks.check import Facts, Verdict, failed, passed, skipped, unknown
from steward.checks.gpu.look import NO_GPU, nvml_check
from steward.checks.past import Notes, Past
from steward.model.gpu import Gpu
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

_RESET_REQUIRED = 16
"""NVML_ERROR_RESET_REQUIRED; any other error of a GPU asks for a reboot."""
_SEEN = "gpus"


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    if raws[0].hung:
        return unknown(raws[0].hung)
    gpus = raws[0].gpus or ()
    expected = facts.limits.gpu.expected_count
    wanted = int(max(past.notes.get(_SEEN, (0.0,)))) if expected is None else expected
    if not gpus and not wanted:
        return skipped(NO_GPU)
    silent = [gpu for gpu in gpus if gpu.error]
    if silent:
        return failed("; ".join(map(_told, silent)), Severity.FATAL, _advice(silent), hardware=silent[0].uuid)
    if len(gpus) < wanted:
        why = "there were in this boot" if expected is None else "expected"
        # None at all may be a driver that a person unloaded: no reason to end jobs, which then have no GPU anyway.
        severity = Severity.FATAL if gpus or expected is not None else Severity.DEGRADED
        return failed(f"{len(gpus)} GPUs, {wanted} {why}", severity, Advice.REBOOT)
    return passed(f"{len(gpus)} GPUs answer")


def note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    """How many GPUs there were at best in this boot."""
    return {_SEEN: (max(float(len(raws[0].gpus or ())), *past.notes.get(_SEEN, (0.0,))),)}


def _told(gpu: Gpu) -> str:
    return f"GPU {gpu.index} {gpu.uuid or gpu.name}".rstrip() + f": {gpu.error}"


def _advice(silent: list[Gpu]) -> Advice:
    return Advice.RESET_GPU if all(gpu.code == _RESET_REQUIRED for gpu in silent) else Advice.REBOOT


CHECK = replace(
    nvml_check("gpu", judge, title="GPU missing, lost, or silent", note=note), mode=lambda limits: limits.gpu.mode
)
