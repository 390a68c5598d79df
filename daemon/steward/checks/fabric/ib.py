"""InfiniBand, RoCE and EFA ports and devices, as read from sysfs for the checks."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from steward.checks.check import Facts
from steward.model.probe import Raw, ReadTree

ACTIVE = 4
LINK_UP = 5
EFA_DRIVER = "efa"
_SHOWN = 8

_CLASS = "/sys/class/infiniband"
_LINKS = ReadTree(
    patterns=(
        f"{_CLASS}/*/device/uevent",
        f"{_CLASS}/*/device/physfn/uevent",
        *(f"{_CLASS}/*/ports/*/{name}" for name in ("state", "phys_state", "rate", "link_layer")),
        "/sys/class/infiniband_verbs/uverbs*/ibdev",
    ),
    max_files=4096,
)
_PORT = re.compile(rf"^{_CLASS}/(?P<device>[^/]+)/ports/(?P<port>[^/]+)/(?P<name>[a-z_]+)$")
_DEVICE = re.compile(rf"^{_CLASS}/(?P<device>[^/]+)/device/(?P<name>uevent|physfn/uevent)$")
_VERBS = re.compile(r"^/sys/class/infiniband_verbs/uverbs[0-9]+/ibdev$")
_NUMBERED = re.compile(r"^\s*([0-9]{1,3}):\s*(\S.{0,30})?", re.DOTALL)
_RATE = re.compile(r"^\s*([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*Gb/sec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One port. `state` and `phys` are the kernel's numbers, `rate` is Gbit/s; None if sysfs does not say."""

    name: str
    state: int | None
    phys: int | None
    rate: float | None
    layer: str
    state_words: str
    """The state and the physical state in the kernel's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One host channel adapter. `slot` is its PCI address, or else its name.

    `is_virtual` marks a virtual function that this host made for its guests.
    """

    name: str
    slot: str
    driver: str
    is_virtual: bool


def probes(facts: Facts) -> tuple[ReadTree, ...]:
    """Return the one probe that all checks of links share."""
    return (_LINKS,)


def ports(raw: Raw) -> tuple[Port, ...]:
    """Return every port (`mlx5_0/1`) but those of guests, sorted by name."""
    guests = {device.name for device in devices(raw) if device.is_virtual}
    texts: dict[tuple[str, str], dict[str, str]] = {}
    for path, text in raw.files.items():
        if (match := _PORT.match(path)) and match["device"] not in guests:
            texts.setdefault((match["device"], match["port"]), {})[match["name"]] = text or ""
    return tuple(_port(device, port, found) for (device, port), found in sorted(texts.items()))


def _port(device: str, port: str, texts: dict[str, str]) -> Port:
    state, phys = texts.get("state", ""), texts.get("phys_state", "")
    rate = _RATE.match(texts.get("rate", ""))
    return Port(
        name=f"{device}/{port}",
        state=_number(state),
        phys=_number(phys),
        rate=float(rate[1]) if rate else None,
        layer=texts.get("link_layer", "").strip()[:20],
        state_words=f"{_state_name(state)}, {_state_name(phys)}",
    )


def devices(raw: Raw) -> tuple[Device, ...]:
    """Return every device, sorted by name."""
    virtual, events = set(), {}
    for path, text in raw.files.items():
        if match := _DEVICE.match(path):
            if match["name"] == "uevent":
                events[match["device"]] = uevent(text or "")
            else:
                virtual.add(match["device"])
    return tuple(_device(name, event, name in virtual) for name, event in sorted(events.items()))


def _device(name: str, event: dict[str, str], is_virtual: bool) -> Device:
    slot = event.get("PCI_SLOT_NAME") or name
    return Device(name=name, slot=slot, driver=event.get("DRIVER", ""), is_virtual=is_virtual)


def reachable(raw: Raw) -> frozenset[str]:
    """Return the names of the devices that programs can use: those with a verbs interface (/dev/infiniband/uverbs*)."""
    return frozenset((text or "").strip() for path, text in raw.files.items() if _VERBS.match(path))


def uevent(text: str) -> dict[str, str]:
    """Return the `KEY=value` lines of a device's uevent file."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def first_names(things: Iterable[str]) -> str:
    """Return the first names for a message, and how many more there are."""
    listed = sorted(things)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def _number(text: str) -> int | None:
    match = _NUMBERED.match(text)
    return int(match[1]) if match else None


def _state_name(text: str) -> str:
    match = _NUMBERED.match(text)
    return (match[2] or "?").strip() if match else "?"
