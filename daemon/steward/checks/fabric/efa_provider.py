"""EFA devices that programs cannot use: libfabric reaches them through a verbs interface that the kernel makes."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.fabric.ib import EFA_DRIVER, devices, named, probes, reachable
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    found = {device.name for device in devices(raws[0]) if device.driver == EFA_DRIVER}
    if not found:
        return skipped("no EFA device on this node")
    shut = found - reachable(raws[0])
    if shut:
        text = f"no verbs interface (is ib_uverbs loaded?): {named(shut)}"
        return failed(text, Severity.DEGRADED, Advice.REBOOT, hardware=min(shut))
    return passed(f"{len(found)} EFA devices with their verbs interfaces")


CHECK = Check(
    id="efa.provider",
    probes=probes,
    judge=judge,
    mode=by_id("efa.provider", "drain"),
    confirm_s=5.0,
    bad_for_s=60.0,
    title="EFA device that programs cannot use",
    source="sysfs",
)
