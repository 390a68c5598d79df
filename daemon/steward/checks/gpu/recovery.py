"""The repair that the driver itself asks for. Its word is better than any table of Xids."""

from steward.checks.check import Verdict, failed, passed
from steward.checks.gpu.look import each, nvml_check
from steward.model.gpu import Gpu
from steward.model.health import Advice, Severity

ASKS: dict[int, tuple[str, Severity, Advice]] = {
    1: ("for a GPU reset", Severity.FATAL, Advice.RESET_GPU),
    2: ("for a reboot of the node", Severity.FATAL, Advice.REBOOT),
    3: ("to drain peer-to-peer traffic", Severity.SUSPECT, Advice.RESET_GPU),
    4: ("to drain, then for a GPU reset", Severity.DEGRADED, Advice.RESET_GPU),
    5: ("to recover its IMEX domain", Severity.SUSPECT, Advice.NONE),
    6: ("for a bus reset", Severity.FATAL, Advice.REBOOT),
    7: ("for a reboot of the system", Severity.FATAL, Advice.REBOOT),
}
"""NVML's field 230. An action that is not here is told and never acts."""


def _of_one(gpu: Gpu) -> Verdict | None:
    action = gpu.recovery_action
    if action is None:
        return None
    if not action:
        return passed("the driver asks for nothing")
    if action not in ASKS:
        return failed(f"the driver asks for an unknown repair ({action})", Severity.INFO, Advice.NONE)
    words, severity, advice = ASKS[action]
    return failed(f"the driver asks {words}", severity, advice)


CHECK = nvml_check("gpu.recovery_action", each(_of_one), title="The driver asks for a repair")
