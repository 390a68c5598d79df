"""A GPU's links: NVLink, the NVSwitch fabric and its manager, PCIe."""

from collections.abc import Mapping

from steward.checks.check import Check, Facts, Judgement, Past, failed, passed, skipped
from steward.checks.gpu.look import counters, judge_by_limits, judge_by_values, judge_each, nvml_check, readable_gpus
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import FindProcess, Gpu, Probe, Raw, ReadTree

REPLAYS = Threshold(
    name="gpu.pcie.replay.per_hour",
    default=100,
    unit="replays",
    text="Bad above this many PCIe replays of one GPU in an hour.",
)
_HOUR_S = 3600.0
_EVERY_S = 60.0
_LASTS_S = 60.0


def _width(gpu: Gpu) -> Judgement | None:
    """Judge the PCIe width, which does not fall while a GPU is idle, as the generation does."""
    if not gpu.pcie_width or not gpu.pcie_width_max:
        return None
    text = f"PCIe x{gpu.pcie_width} of x{gpu.pcie_width_max}"
    return failed(text, Severity.DEGRADED, Advice.REBOOT) if gpu.pcie_width < gpu.pcie_width_max else passed(text)


def _replay(gpu: Gpu, facts: Facts, past: Past) -> Judgement | None:
    if gpu.pcie_replays is None:
        return None
    grown = past.growth(gpu.uuid, _HOUR_S)
    text = f"{grown:g} PCIe replays within an hour"
    is_much = grown > facts.limit(REPLAYS)
    return failed(text, Severity.SUSPECT, Advice.NONE) if is_much else passed(text)


def replays(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    return counters(raws, lambda gpu: gpu.pcie_replays)


WIDTH = nvml_check(
    "gpu.pcie.width", judge_by_values(_width), title="GPU on fewer PCIe lanes than it has", bad_for_s=_LASTS_S
)
REPLAY = nvml_check(
    "gpu.pcie.replay",
    judge_by_limits(_replay),
    mode="report",
    title="PCIe packets of a GPU sent again",
    settings=(REPLAYS,),
    readings=replays,
    every_s=_EVERY_S,
)

LINKS = Threshold(
    name="gpu.nvlink.down.links",
    default=0,
    unit="links",
    text="Active NVLinks that every GPU must have; 0: as many as its board has, or the best GPU of its node.",
    high=64,
)
ERRORS = Threshold(
    name="gpu.nvlink.err.per_hour",
    default=5,
    unit="errors",
    text="Bad from this many NVLink errors of one GPU in an hour.",
)
BOARDS: Mapping[str, int] = {
    "NVIDIA A100-SXM": 12,
    "NVIDIA H100 80GB HBM3": 18,
    "NVIDIA H200": 18,
    "NVIDIA B200": 18,
    "NVIDIA GB200": 18,
}
"""The number of NVLinks by the start of the GPU's name. Boards with bridges (PCIe, NVL) may have any number."""
_BRIDGED = ("NVL", "PCIe")


def judge_down(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    best = max((sum(gpu.nvlinks) for gpu in readable_gpus(raws[0])), default=0)
    limit = int(facts.limit(LINKS))

    def of_one(gpu: Gpu) -> Judgement | None:
        if not gpu.nvlinks or not (best or limit):
            return None  # no NVLink is in use on this node: the check gpu.fabric reports if that is a fault
        active, wanted = sum(gpu.nvlinks), limit or max(best, _of_board(gpu))
        text = f"{active} of {wanted} NVLinks are up"
        return failed(text, Severity.DEGRADED, Advice.RESET_GPU) if active < wanted else passed(text)

    return judge_each(raws[0], of_one)


def _of_board(gpu: Gpu) -> int:
    if any(word in gpu.name.split() for word in _BRIDGED):
        return 0
    return next((links for begin, links in BOARDS.items() if gpu.name.startswith(begin)), 0)


def _errors(gpu: Gpu, facts: Facts, past: Past) -> Judgement | None:
    if gpu.nvlink_errors is None:
        return None
    grown = past.growth(gpu.uuid, _HOUR_S)
    text = f"{grown:g} NVLink errors within an hour"
    is_much = grown >= facts.limit(ERRORS)
    return failed(text, Severity.SUSPECT, Advice.NONE) if is_much else passed(text)


def errors(raws: tuple[Raw, ...]) -> Mapping[str, float]:
    return counters(raws, lambda gpu: gpu.nvlink_errors)


DOWN = nvml_check("gpu.nvlink.down", judge_down, title="NVLink down", settings=(LINKS,))
ERR = nvml_check(
    "gpu.nvlink.err",
    judge_by_limits(_errors),
    mode="report",
    title="NVLink errors",
    settings=(ERRORS,),
    readings=errors,
    every_s=_EVERY_S,
)

_NO_FABRIC, _JOINED = 0, 3
"""NVML's fabric states of a GPU without a fabric and of one that has joined; a GPU in a state between is joining."""
_FAULTS = {0: "its bandwidth is reduced", 4: "a route is unhealthy"}
"""Faults, by the shift of a two-bit part of the health mask: the value 1 means the fault, 0 unknown and 2 good. Parts
about a recovery under way are left out."""
_CONFIGURATION_SHIFT, _CONFIGURATION_RIGHT = 8, 1
_SWITCHES = ("/proc/driver/nvidia-nvswitch/devices/*", "/proc/driver/nvidia-nvswitch/devices/*/*")
_MANAGER = "nv-fabricmanager"[:15]
"""The process's name, cut to 15 characters as the kernel does."""
_JOINS_WITHIN_S = 300.0
_FM_EVERY_S = 60.0


def _joined(gpu: Gpu) -> Judgement | None:
    if gpu.fabric_state is None or gpu.fabric_state == _NO_FABRIC:
        return None
    if gpu.fabric_state != _JOINED:
        return failed(f"not joined the NVLink fabric (state {gpu.fabric_state})", Severity.DEGRADED, Advice.REBOOT)
    if gpu.fabric_status:
        return failed(f"NVLink fabric failed with NVML's error {gpu.fabric_status}", Severity.DEGRADED, Advice.REBOOT)
    faults = _faults(gpu.fabric_health or 0)
    if faults:
        return failed("NVLink fabric: " + ", ".join(faults), Severity.DEGRADED, Advice.REBOOT)
    return passed("joined the NVLink fabric")


def _faults(mask: int) -> list[str]:
    found = [words for shift, words in _FAULTS.items() if mask >> shift & 3 == 1]
    configuration = mask >> _CONFIGURATION_SHIFT & 0xF
    return [*found, f"wrong configuration ({configuration})"] if configuration > _CONFIGURATION_RIGHT else found


def manager_probes(facts: Facts) -> tuple[Probe, ...]:
    return (ReadTree(patterns=_SWITCHES, max_files=8), FindProcess(prefix=_MANAGER, where=_SWITCHES))


def judge_manager(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    switches, found = raws
    if not switches.files:
        return skipped("no NVSwitch on this node")
    if found.processes:
        return passed("nv-fabricmanager runs")
    text = "nv-fabricmanager does not run, and this node has NVSwitches"
    return failed(text, Severity.DEGRADED, Advice.RESTART_SERVICE, hardware="nvidia-fabricmanager")


FABRIC = nvml_check(
    "gpu.fabric", judge_by_values(_joined), title="GPU outside the NVLink fabric", bad_for_s=_JOINS_WITHIN_S
)
MANAGER = Check(
    id="gpu.fm",
    probes=manager_probes,
    judge=judge_manager,
    default_mode="drain",
    every_s=_FM_EVERY_S,
    bad_for_s=60.0,
    title="NVIDIA fabric manager dead",
    source="procfs",
)

CHECKS: tuple[Check, ...] = (
    WIDTH,
    REPLAY,
    DOWN,
    ERR,
    FABRIC,
    MANAGER,
)
