"""A GPU's PCIe link: fewer lanes than it has, or packets that are sent again and again."""

from collections.abc import Mapping

from steward.checks.check import Facts, Verdict, failed, passed
from steward.checks.gpu.look import counters, each, judge_each, nvml_check
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.gpu import Gpu
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

REPLAYS = Threshold(
    name="gpu.pcie.replay.per_hour", default=100, unit="replays", text="More PCIe replays of one GPU within an hour."
)
_HOUR_S = 3600.0
_EVERY_S = 60.0
_LASTS_S = 60.0


def _width(gpu: Gpu) -> Verdict | None:
    """The generation falls when a GPU is idle, the width does not."""
    if not gpu.pcie_width or not gpu.pcie_width_max:
        return None
    text = f"PCIe x{gpu.pcie_width} of x{gpu.pcie_width_max}"
    return failed(text, Severity.DEGRADED, Advice.REBOOT) if gpu.pcie_width < gpu.pcie_width_max else passed(text)


def judge_replay(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    def of_one(gpu: Gpu) -> Verdict | None:
        if gpu.pcie_replays is None:
            return None
        grown = past.growth(gpu.uuid, _HOUR_S)
        text = f"{grown:g} PCIe replays within an hour"
        is_much = grown > facts.limit(REPLAYS)
        return failed(text, Severity.SUSPECT, Advice.NONE) if is_much else passed(text)

    return judge_each(raws[0], of_one)


def replays(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    return counters(raws, lambda gpu: gpu.pcie_replays)


WIDTH = nvml_check("gpu.pcie.width", each(_width), title="GPU on fewer PCIe lanes than it has", bad_for_s=_LASTS_S)
REPLAY = nvml_check(
    "gpu.pcie.replay",
    judge_replay,
    mode="report",
    title="PCIe packets of a GPU sent again",
    thresholds=(REPLAYS,),
    readings=replays,
    every_s=_EVERY_S,
)
