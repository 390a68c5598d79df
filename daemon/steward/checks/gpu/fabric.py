"""NVSwitch fabric: every GPU has joined it, and its manager runs."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.gpu.look import each, nvml_check
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.gpu import Gpu
from steward.model.health import Advice, Severity
from steward.model.probe import FindProcess, Probe, Raw, ReadTree

_NOT_ONE, _DONE = 0, 3
"""NVML's fabric states: this GPU has no fabric, it has joined. Between them it is on its way."""
_FAULTS = {0: "its bandwidth is reduced", 4: "a route is unhealthy"}
"""Shift of a two-bit part of the health mask -> what 1 there means; 0 is unknown and 2 is well, so that a mask that is
not zero is mostly a healthy one. Parts that tell of a recovery under way are left out."""
_CONFIGURATION_SHIFT, _CONFIGURATION_WELL = 8, 1
_SWITCHES = ("/proc/driver/nvidia-nvswitch/devices/*", "/proc/driver/nvidia-nvswitch/devices/*/*")
_MANAGER = "nv-fabricmanager"[:15]
"""As the kernel cuts its name."""
_JOINS_WITHIN_S = 300.0
_FM_EVERY_S = 60.0


def _of_one(gpu: Gpu) -> Verdict | None:
    if gpu.fabric_state is None or gpu.fabric_state == _NOT_ONE:
        return None
    if gpu.fabric_state != _DONE:
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
    return [*found, f"wrong configuration ({configuration})"] if configuration > _CONFIGURATION_WELL else found


def manager_probes(facts: Facts) -> tuple[Probe, ...]:
    return (ReadTree(patterns=_SWITCHES, max_files=8), FindProcess(prefix=_MANAGER, where=_SWITCHES))


def judge_manager(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    switches, found = raws
    if not switches.files:
        return skipped("no NVSwitch on this node")
    if any(process.name.startswith(_MANAGER) for process in found.processes):
        return passed("nv-fabricmanager runs")
    text = "nv-fabricmanager does not run, and this node has NVSwitches"
    return failed(text, Severity.DEGRADED, Advice.RESTART_SERVICE, hardware="nvidia-fabricmanager")


FABRIC = nvml_check("gpu.fabric", each(_of_one), title="GPU outside the NVLink fabric", bad_for_s=_JOINS_WITHIN_S)
MANAGER = Check(
    id="gpu.fm",
    probes=manager_probes,
    judge=judge_manager,
    mode=by_id("gpu.fm", "drain"),
    every_s=_FM_EVERY_S,
    bad_for_s=60.0,
    title="NVIDIA fabric manager dead",
    source="procfs",
)
