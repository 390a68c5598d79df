"""Every GPU is there and answers through NVML."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Gpu, QueryGpus, Raw

_EVERY_S = 60.0
_TIMEOUT_S = 10.0
_RESET_REQUIRED = 16
"""NVML_ERROR_RESET_REQUIRED; any other error of a GPU asks for a reboot."""


def probes(facts: Facts) -> tuple[QueryGpus, ...]:
    return (QueryGpus(timeout_s=_TIMEOUT_S),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    gpus = raws[0].gpus or ()
    expected = facts.limits.gpu.expected_count
    if not gpus and not expected:
        return skipped("no NVIDIA GPU on this node")
    silent = [gpu for gpu in gpus if gpu.error]
    if silent:
        return failed("; ".join(map(_told, silent)), Severity.FATAL, _advice(silent))
    if expected is not None and len(gpus) < expected:
        return failed(f"{len(gpus)} GPUs, {expected} expected", Severity.FATAL, Advice.REBOOT)
    return passed(f"{len(gpus)} GPUs answer")


def _told(gpu: Gpu) -> str:
    return f"GPU {gpu.index} {gpu.uuid or gpu.name}".rstrip() + f": {gpu.error}"


def _advice(silent: list[Gpu]) -> Advice:
    return Advice.RESET_GPU if all(gpu.code == _RESET_REQUIRED for gpu in silent) else Advice.REBOOT


CHECK = Check(
    id="gpu",
    probes=probes,
    judge=judge,
    mode=lambda limits: limits.gpu.mode,
    every_s=_EVERY_S,
    timeout_s=_TIMEOUT_S + 2,
)
