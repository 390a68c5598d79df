"""Checks of persistence mode, InfoROM and firmware, for a person to look at."""

from collections import Counter

from steward.checks.check import Check, Facts, Judgement, Past, failed, passed
from steward.checks.gpu.look import judge_by_values, judge_each, nvml_check, readable_gpus
from steward.model.health import Advice, Severity
from steward.model.probe import Gpu, Raw

_UPKEEP_EVERY_S = 600.0


def _persistence(gpu: Gpu) -> Judgement | None:
    if gpu.persistence is None:
        return None
    if gpu.persistence:
        return passed("persistence mode is on")
    return failed("persistence mode is off", Severity.INFO, Advice.NONE)


def _inforom(gpu: Gpu) -> Judgement | None:
    if gpu.inforom_error is None:
        return None
    if gpu.inforom_error:
        return failed(f"InfoROM: {gpu.inforom_error}", Severity.SUSPECT, Advice.REPLACE)
    return passed("the InfoROM is valid")


def judge_vbios(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    """Judge the firmware: all GPUs of one name should have the version that is the most common among them."""
    seen = Counter((gpu.name, gpu.vbios) for gpu in readable_gpus(raws[0]) if gpu.vbios)

    def of_one(gpu: Gpu) -> Judgement | None:
        if not gpu.vbios:
            return None
        usual = max((key for key in seen if key[0] == gpu.name), key=lambda key: (seen[key], key[1]))[1]
        if gpu.vbios != usual:
            return failed(f"VBIOS {gpu.vbios}, others of this node have {usual}", Severity.INFO, Advice.NONE)
        return passed(f"VBIOS {gpu.vbios}")

    return judge_each(raws[0], of_one)


PERSIST = nvml_check(
    "gpu.persist", judge_by_values(_persistence), mode="report", title="Persistence mode off", every_s=_UPKEEP_EVERY_S
)
INFOROM = nvml_check(
    "gpu.inforom", judge_by_values(_inforom), mode="report", title="Corrupt InfoROM", every_s=_UPKEEP_EVERY_S
)
VBIOS = nvml_check(
    "gpu.vbios", judge_vbios, mode="report", title="GPUs with different firmware", every_s=_UPKEEP_EVERY_S
)

CHECKS: tuple[Check, ...] = (PERSIST, INFOROM, VBIOS)
