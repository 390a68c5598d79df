"""Ethernet interfaces as sysfs shows them: those with a device behind them, or those that the site names."""

import re
from dataclasses import dataclass, replace

from steward.checks.check import Facts
from steward.model.probe import Raw, ReadTree

_CLASS = "/sys/class/net"
_ETHERNET = "1"
"""ARPHRD_ETHER: an IP-over-InfiniBand interface is another type, its port has checks of its own."""
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
    """`downs` is how often its carrier went away since the boot, None where the kernel does not count."""

    name: str
    operstate: str
    is_enabled: bool
    is_in_bond: bool
    downs: int | None

    @property
    def is_up(self) -> bool:
        return self.operstate not in _DOWN


def probes(facts: Facts) -> tuple[ReadTree, ...]:
    """One look for all checks of interfaces. One that the site names may be virtual."""
    return (_TREE if facts.limits.net.interfaces else _WITH_DEVICE,)


def interfaces(raw: Raw, facts: Facts) -> tuple[Interface, ...]:
    """By name. Virtual ones (veth, bonds) and guests' virtual functions count only where the site names them."""
    texts: dict[str, dict[str, str]] = {}
    for path, text in raw.files.items():
        if match := _FILE.match(path):
            texts.setdefault(match["interface"], {})[match["name"]] = (text or "").strip()
    wanted = facts.limits.net.interfaces
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
    """Kernels before 4.16 count only changes: each down is one, and each up."""
    downs = _NUMBER.match(texts.get("carrier_down_count", ""))
    changes = _NUMBER.match(texts.get("carrier_changes", ""))
    if downs:
        return int(downs[1])
    return int(changes[1]) // 2 if changes else None


def _hex(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0
