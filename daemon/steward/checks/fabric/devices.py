"""Adapters that vanished from the node, and EFA devices that programs cannot use."""

from collections.abc import Callable

from steward.checks import known_set
from steward.checks.check import Check, Facts, Judge, Judgement, Notes, Past, failed, passed, skipped
from steward.checks.fabric.ib import EFA_DRIVER, Device, devices, first_names, probes, reachable
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

_BAD_FOR_S = 120.0
"""How long a device must be missing: a driver that is reloaded takes its devices away for a minute."""
_BOND = "bond"
IB_EXPECTED = Threshold(
    name="ib.count.expected",
    default=0,
    unit="devices",
    text="Host channel adapters that must be there; 0: those that were there once in this boot.",
    high=1024,
)
EFA_EXPECTED = Threshold(
    name="efa.count.expected",
    default=0,
    unit="devices",
    text="EFA devices that must be there (p4d 4, p5 32, p5en 16, p6-b200 8); 0: those that were there once.",
    high=1024,
)


def _adapters(raw: Raw) -> tuple[Device, ...]:
    return tuple(one for one in devices(raw) if one.driver != EFA_DRIVER and not one.is_virtual)


def _efas(raw: Raw) -> tuple[Device, ...]:
    return tuple(one for one in devices(raw) if one.driver == EFA_DRIVER)


def _note_count(of: Callable[[Raw], tuple[Device, ...]]) -> Callable[[tuple[Raw, ...], Facts, Past], Notes]:
    """Return the `note` function that remembers the PCI addresses of the devices seen in this boot."""

    def note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
        found = of(raws[0])
        slots = [device.slot for device in found]
        is_bonded = any(_BOND in device.name for device in found)
        known = known_set.note_first_seen(slots, past)
        # A bond of RDMA ports replaces its members: forget the devices that were seen before.
        return {slot: known[slot] for slot in slots} if is_bonded else known

    return note


def _judge_count(of: Callable[[Raw], tuple[Device, ...]], expected: Threshold, what: str, advice: Advice) -> Judge:
    def slots(raw: Raw) -> list[str]:
        return [device.slot for device in of(raw)]

    return known_set.judge_of(slots, expected, what, Severity.DEGRADED, advice)


IB = Check(
    id="ib.count",
    probes=probes,
    judge=_judge_count(_adapters, IB_EXPECTED, "host channel adapter", Advice.REBOOT),
    note=_note_count(_adapters),
    default_mode="drain",
    confirm_s=15.0,
    bad_for_s=_BAD_FOR_S,
    title="Host channel adapter vanished",
    source="sysfs",
    settings=(IB_EXPECTED,),
)
EFA = Check(
    id="efa.count",
    probes=probes,
    judge=_judge_count(_efas, EFA_EXPECTED, "EFA device", Advice.REPLACE),
    note=_note_count(_efas),
    default_mode="drain",
    confirm_s=15.0,
    bad_for_s=_BAD_FOR_S,
    title="EFA device vanished",
    source="sysfs",
    settings=(EFA_EXPECTED,),
)


def _judge_provider(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    found = {device.name for device in devices(raws[0]) if device.driver == EFA_DRIVER}
    if not found:
        return skipped("no EFA device on this node")
    shut = found - reachable(raws[0])
    if shut:
        text = f"no verbs interface (is ib_uverbs loaded?): {first_names(shut)}"
        return failed(text, Severity.DEGRADED, Advice.REBOOT, hardware=min(shut))
    return passed(f"{len(found)} EFA devices with their verbs interfaces")


PROVIDER = Check(
    id="efa.provider",
    probes=probes,
    judge=_judge_provider,
    default_mode="drain",
    confirm_s=5.0,
    bad_for_s=60.0,
    title="EFA device that programs cannot use",
    source="sysfs",
)
"""The check for EFA devices without the kernel's verbs interface, through which libfabric uses them."""

CHECKS: tuple[Check, ...] = (
    IB,
    EFA,
    PROVIDER,
)
