"""GPUs that are too hot, or slowed down by their hardware."""

from collections.abc import Mapping

from steward.checks.check import Check, Facts, Judge, Judgement, Past, failed, passed
from steward.checks.gpu.look import counters, judge_by_limits, nvml_check
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Gpu, Raw

MARGIN = Threshold(
    name="gpu.temp.margin_c", default=0, unit="C", text="Bad within this many degrees of the slowdown.", high=100
)
LOOKS = 6
"""A GPU is bad if slowed down, or power-braked, in this many looks of the last ten minutes."""
HARDWARE_SLOWDOWN = 0x8 | 0x20 | 0x40
"""NVML's clock reasons: HW slowdown, SW thermal, HW thermal. The power cap (0x4) is normal."""
POWER_BRAKE = 0x80
_WINDOW_S = 600.0
_EVERY_S = 60.0


def _heat(gpu: Gpu, facts: Facts, past: Past) -> Judgement | None:
    left = _degrees_left(gpu)
    if left is None:
        return None
    text = f"{gpu.temperature_c} C, {left} C below its slowdown"
    return failed(text, Severity.SUSPECT, Advice.NONE) if left <= facts.limit(MARGIN) else passed(text)


def _degrees_left(gpu: Gpu) -> int | None:
    """Return the degrees until the GPU slows down, by its own report if there is one; None if unknown."""
    if gpu.margin_c is not None:
        return gpu.margin_c
    if gpu.temperature_c is None or not gpu.slowdown_c:
        return None
    return gpu.slowdown_c - gpu.temperature_c


def _judge_reasons(what: str) -> Judge:
    def of_one(gpu: Gpu, facts: Facts, past: Past) -> Judgement | None:
        if gpu.clock_reasons is None:
            return None
        slowed, looks = past.share(gpu.uuid, _WINDOW_S)
        text = f"{what} in {slowed} of {looks} looks of ten minutes"
        return failed(text, Severity.SUSPECT, Advice.NONE) if slowed >= LOOKS else passed(text)

    return judge_by_limits(of_one)


def hardware_slowdowns(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    return counters(raws, lambda gpu: _bits(gpu, HARDWARE_SLOWDOWN))


def power_brakes(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    return counters(raws, lambda gpu: _bits(gpu, POWER_BRAKE))


def _bits(gpu: Gpu, mask: int) -> float | None:
    return None if gpu.clock_reasons is None else float(bool(gpu.clock_reasons & mask))


TEMP = nvml_check("gpu.temp", judge_by_limits(_heat), mode="report", title="GPU too hot", settings=(MARGIN,))
THROTTLE = nvml_check(
    "gpu.throttle",
    _judge_reasons("slowed down by its hardware"),
    title="GPU slowed down by its hardware or by heat",
    readings=hardware_slowdowns,
    every_s=_EVERY_S,
)
BRAKE = nvml_check(
    "gpu.power_brake",
    _judge_reasons("power brake"),
    title="Power brake: the machine's power supply holds a GPU back",
    readings=power_brakes,
    every_s=_EVERY_S,
)


CHECKS: tuple[Check, ...] = (TEMP, THROTTLE, BRAKE)
