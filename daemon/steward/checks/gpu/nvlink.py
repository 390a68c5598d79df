"""NVLinks of a GPU that are down, or that make errors."""

from collections.abc import Mapping

from steward.checks.check import Facts, Verdict, failed, passed
from steward.checks.gpu.look import answering, counters, judge_each, nvml_check
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.gpu import Gpu
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

LINKS = Threshold(
    name="gpu.nvlink.down.links",
    default=0,
    unit="links",
    text="Active NVLinks that every GPU must have; 0: what its board is known to have, or the best of its node.",
    high=64,
)
ERRORS = Threshold(
    name="gpu.nvlink.err.per_hour", default=5, unit="errors", text="So many NVLink errors of one GPU within an hour."
)
BOARDS: Mapping[str, int] = {
    "NVIDIA A100-SXM": 12,
    "NVIDIA H100 80GB HBM3": 18,
    "NVIDIA H200": 18,
    "NVIDIA B200": 18,
    "NVIDIA GB200": 18,
}
"""Begin of the name -> links. Boards with bridges (PCIe, NVL) may have any number of them."""
_BRIDGED = ("NVL", "PCIe")
_HOUR_S = 3600.0
_EVERY_S = 60.0


def judge_down(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    best = max((sum(gpu.nvlinks) for gpu in answering(raws[0])), default=0)
    told = int(facts.limit(LINKS))

    def of_one(gpu: Gpu) -> Verdict | None:
        if not gpu.nvlinks or not (best or told):
            return None  # no NVLink is in use on this node: the check gpu.fabric tells when that is a fault
        active, wanted = sum(gpu.nvlinks), told or max(best, _of_board(gpu))
        text = f"{active} of {wanted} NVLinks are up"
        return failed(text, Severity.DEGRADED, Advice.RESET_GPU) if active < wanted else passed(text)

    return judge_each(raws[0], of_one)


def _of_board(gpu: Gpu) -> int:
    if any(word in gpu.name.split() for word in _BRIDGED):
        return 0
    return next((links for begin, links in BOARDS.items() if gpu.name.startswith(begin)), 0)


def judge_errors(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    def of_one(gpu: Gpu) -> Verdict | None:
        if gpu.nvlink_errors is None:
            return None
        grown = past.growth(gpu.uuid, _HOUR_S)
        text = f"{grown:g} NVLink errors within an hour"
        is_much = grown >= facts.limit(ERRORS)
        return failed(text, Severity.SUSPECT, Advice.NONE) if is_much else passed(text)

    return judge_each(raws[0], of_one)


def errors(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    return counters(raws, lambda gpu: gpu.nvlink_errors)


DOWN = nvml_check("gpu.nvlink.down", judge_down, title="NVLink down", thresholds=(LINKS,))
ERR = nvml_check(
    "gpu.nvlink.err",
    judge_errors,
    mode="report",
    title="NVLink errors",
    thresholds=(ERRORS,),
    readings=errors,
    every_s=_EVERY_S,
)
