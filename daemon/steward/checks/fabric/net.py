"""Ethernet interfaces as sysfs shows them: those with a device behind them, or those that the site names."""

import re
from dataclasses import dataclass, replace

from steward.checks.check import Check, Facts, Judgement, Notes, Past, failed, passed, skipped, unknown
from steward.checks.fabric import links
from steward.checks.fabric.links import Strikes
from steward.checks.limits import Names, Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadTree

_CLASS = "/sys/class/net"
_ETHERNET = "1"
"""ARPHRD_ETHER. An IP-over-InfiniBand interface has another type, and its port has checks of its own."""
_TREE = ReadTree(
    patterns=(
        *(f"{_CLASS}/*/{name}" for name in ("operstate", "carrier_changes", "carrier_down_count", "flags", "type")),
        f"{_CLASS}/*/device/uevent",
        f"{_CLASS}/*/device/physfn/uevent",
        f"{_CLASS}/*/bonding_slave/state",
    ),
    max_files=8192,
)
_WITH_DEVICE = replace(_TREE, needs="device/uevent")
_FILE = re.compile(rf"^{_CLASS}/(?P<interface>[^/]+)/(?P<name>.+)$")
_NUMBER = re.compile(r"^\s*([0-9]{1,12})\s*$")
_DOWN = ("down", "lowerlayerdown", "notpresent", "dormant")
_IFF_UP = 0x1


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """An interface. `downs` is how often its carrier went away since boot; None if the kernel does not count."""

    name: str
    operstate: str
    is_enabled: bool
    is_in_bond: bool
    downs: int | None

    @property
    def is_up(self) -> bool:
        return self.operstate not in _DOWN


INTERFACES = Names(
    name="net.*.interfaces",
    text="Interfaces to check; empty: all with a device behind them (no veth, no bond).",
)


def probes(facts: Facts) -> tuple[ReadTree, ...]:
    """Return the one probe that all checks of interfaces share; an interface that the site names may be virtual."""
    return (_TREE if facts.names(INTERFACES) else _WITH_DEVICE,)


def interfaces(raw: Raw, facts: Facts) -> tuple[Interface, ...]:
    """Return the interfaces to check, sorted by name: those that the site names, or else the physical ones."""
    texts: dict[str, dict[str, str]] = {}
    for path, text in raw.files.items():
        if match := _FILE.match(path):
            texts.setdefault(match["interface"], {})[match["name"]] = (text or "").strip()
    wanted = facts.names(INTERFACES)
    return tuple(
        _interface(name, found)
        for name, found in sorted(texts.items())
        if (name in wanted if wanted else _is_physical(found))
    )


def _is_physical(texts: dict[str, str]) -> bool:
    return "device/uevent" in texts and "device/physfn/uevent" not in texts and texts.get("type") == _ETHERNET


def _interface(name: str, texts: dict[str, str]) -> Interface:
    return Interface(
        name=name,
        operstate=texts.get("operstate", "")[:20],
        is_enabled=bool(_hex(texts.get("flags", "")) & _IFF_UP),
        is_in_bond="bonding_slave/state" in texts,
        downs=_downs(texts),
    )


def _downs(texts: dict[str, str]) -> int | None:
    """Return how often the carrier went away; None if the kernel does not count."""
    downs = _NUMBER.match(texts.get("carrier_down_count", ""))
    changes = _NUMBER.match(texts.get("carrier_changes", ""))
    if downs:
        return int(downs[1])
    # Kernels before 4.16 count only changes: both each down and each up.
    return int(changes[1]) // 2 if changes else None


def _hex(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0


def _operstate_note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    return links.notes_after_look({one.name: one.is_up for one in interfaces(raws[0], facts) if one.operstate}, past)


def _judge_operstate(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    found = interfaces(raws[0], facts)
    if not found:
        return skipped("no physical Ethernet interface on this node")
    if not any(one.operstate for one in found):
        return unknown(f"no operstate in sysfs: {found[0].name}")
    lost = [one for one in found if one.operstate and links.down_for(one.name, past) is not None]
    if not lost:
        return passed(f"{sum(one.is_up for one in found)} of {len(found)} interfaces up, none was lost")
    severity = Severity.SUSPECT if all(one.is_in_bond for one in lost) else Severity.DEGRADED
    return failed("; ".join(map(_message, lost[:8])), severity, Advice.REBOOT, hardware=lost[0].name)


def _message(interface: Interface) -> str:
    """Return the message on a lost interface; an administrator may have set it down on purpose."""
    how = f"{interface.operstate}" if interface.is_enabled else f"{interface.operstate} (set down by an administrator)"
    return f"{interface.name} was up and is {how}" + (", part of a bond" if interface.is_in_bond else "")


OPERSTATE = Check(
    id="net.operstate",
    probes=probes,
    judge=_judge_operstate,
    note=_operstate_note,
    default_mode="drain",
    confirm_s=5.0,
    bad_for_s=60.0,
    title="Ethernet interface down",
    source="sysfs",
    settings=(INTERFACES,),
)
"""The check for interfaces that were up in this boot and are down now. An interface that was never up is not in use.
An interface that vanished was given to a guest or taken back by the cloud, which is no fault of the node."""

DOWNS = Threshold(
    name="net.carrier.downs_per_hour",
    default=3,
    unit="downs/h",
    text="More downs of one interface are a trip.",
    low=1,
    high=30,
)
TRIPS = Threshold(
    name="net.carrier.trips_per_day",
    default=3,
    unit="trips/24 h",
    text="The interface is bad while so many trips are in the last 24 h.",
    low=1,
    high=30,
)
_STRIKES = Strikes(downs=DOWNS, trips=TRIPS)
_COUNT = " count"


def _carrier_note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    """Note each interface's count of downs, and the trips that follow from how much it grew."""
    counts = {one.name: one.downs for one in interfaces(raws[0], facts) if one.downs is not None}
    # At the first look of a boot, earlier downs do not count. A count that fell was reset.
    before = {name: past.notes.get(name + _COUNT, (downs,))[0] for name, downs in counts.items()}
    fresh = {name: max(0, downs - int(before[name])) for name, downs in counts.items()}
    kept = {name: values for name, values in past.notes.items() if name.endswith(_COUNT)}
    now = {name + _COUNT: (float(downs),) for name, downs in counts.items()}
    return {**kept, **now, **_STRIKES.note(fresh, facts, past)}


def _judge_carrier(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    found = interfaces(raws[0], facts)
    if not found:
        return skipped("no physical Ethernet interface on this node")
    if all(one.downs is None for one in found):
        return unknown(f"no carrier_changes in sysfs: {found[0].name}")
    return _STRIKES.judge(facts, past, Severity.SUSPECT) or passed(f"{len(found)} interfaces, none bounces")


CARRIER = Check(
    id="net.carrier",
    probes=probes,
    judge=_judge_carrier,
    note=_carrier_note,
    default_mode="report",
    title="Ethernet interface loses its carrier again and again",
    source="sysfs",
    settings=(INTERFACES, DOWNS, TRIPS),
)
"""The check for interfaces whose carrier comes and goes, also between two looks, by the kernel's own count."""

CHECKS: tuple[Check, ...] = (
    OPERSTATE,
    CARRIER,
)
