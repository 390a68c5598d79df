"""AMD GPUs as the amdgpu driver shows them in sysfs. The same facts as amd-smi gives, without starting a program."""

import re
from dataclasses import dataclass, field

from steward.checks.check import Facts
from steward.model.probe import Raw, ReadTree

EVERY_S = 60.0

_NODES = "/sys/class/kfd/kfd/topology/nodes"
_CARDS = "/sys/class/drm"
_TREE = ReadTree(
    patterns=(
        f"{_NODES}/*/gpu_id",
        f"{_NODES}/*/properties",
        f"{_CARDS}/card*/device/ras/*_err_count",
        f"{_CARDS}/card*/device/ras/gpu_vram_bad_pages",
        f"{_CARDS}/card*/device/hwmon/hwmon*/temp*_input",
        f"{_CARDS}/card*/device/hwmon/hwmon*/temp*_crit",
        f"{_CARDS}/card*/device/hwmon/hwmon*/temp*_label",
        f"{_CARDS}/card*/device/unique_id",
    ),
    max_files=4096,
)
_NODE = re.compile(rf"^{_NODES}/(?P<node>[0-9]+)/(?P<name>gpu_id|properties)$")
_CARD = re.compile(rf"^{_CARDS}/(?P<card>card[0-9]+)/device/(?P<name>.+)$")
_UNCORRECTABLE = re.compile(r"^ue:\s*([0-9]{1,15})\s*$", re.MULTILINE)
_PAGE = re.compile(r"^\s*0x[0-9a-f]+\s*:\s*0x[0-9a-f]+\s*:\s*([RPF])\s*$", re.MULTILINE | re.IGNORECASE)
_TEMPERATURE = re.compile(r"hwmon/hwmon[0-9]+/temp(?P<sensor>[0-9]+)_(?P<what>input|crit|label)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One GPU. `uncorrectable` is by block (`umc`: memory, `xgmi_wafl`: links), `pages` by the driver's letter
    (R reserved, P waits for the next reset, F cannot be reserved), `hot` names sensors beyond their critical value."""

    name: str
    uncorrectable: dict[str, int] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)
    hot: tuple[str, ...] = ()
    has_ras: bool = False
    sensors: int = 0


def probes(facts: Facts) -> tuple[ReadTree, ...]:
    """One look for all checks of AMD GPUs."""
    return (_TREE,)


def gpus(raw: Raw) -> tuple[str, ...]:
    """The identity of each GPU that the compute driver lists: its unique id, its place on the bus where it has none."""
    texts: dict[str, dict[str, str]] = {}
    for path, text in raw.files.items():
        if match := _NODE.match(path):
            texts.setdefault(match["node"], {})[match["name"]] = text or ""
    return tuple(
        _identity(node, found.get("properties", ""))
        for node, found in sorted(texts.items())
        if found.get("gpu_id", "0").strip() not in ("", "0")
    )


def _identity(node: str, properties: str) -> str:
    values = dict(line.split()[:2] for line in properties.splitlines() if len(line.split()) >= 2)
    unique = values.get("unique_id", "0")
    if unique.isdigit() and int(unique):
        return f"{int(unique):016x}"
    return f"{values.get('domain', '0')}:{values.get('location_id', node)}"


def cards(raw: Raw) -> tuple[Card, ...]:
    """The graphics devices that tell of errors or temperatures."""
    texts: dict[str, dict[str, str]] = {}
    for path, text in raw.files.items():
        if match := _CARD.match(path):
            texts.setdefault(match["card"], {})[match["name"]] = text or ""
    return tuple(_card(name, found) for name, found in sorted(texts.items()))


def _card(name: str, texts: dict[str, str]) -> Card:
    ras = {file.removeprefix("ras/"): text for file, text in texts.items() if file.startswith("ras/")}
    counts = {
        file.removesuffix("_err_count"): int(found[1])
        for file, text in ras.items()
        if (found := _UNCORRECTABLE.search(text))
    }
    letters = [letter.upper() for letter in _PAGE.findall(ras.get("gpu_vram_bad_pages", ""))]
    unique = texts.get("unique_id", "").strip()[:20]
    hot, sensors = _hot(texts)
    return Card(
        name=f"{name} {unique}".rstrip(),
        uncorrectable=counts,
        pages={letter: letters.count(letter) for letter in "RPF"},
        hot=hot,
        has_ras=bool(ras),
        sensors=sensors,
    )


def _hot(texts: dict[str, str]) -> tuple[tuple[str, ...], int]:
    """Sensors at or above their critical temperature, and how many there are (sysfs counts in 0.001 degrees)."""
    found: dict[str, dict[str, str]] = {}
    for file, text in texts.items():
        if match := _TEMPERATURE.search(file):
            found.setdefault(match["sensor"], {})[match["what"]] = text.strip()
    pairs = {n: (s["input"], s["crit"], s.get("label", n)) for n, s in found.items() if {"input", "crit"} <= set(s)}
    known = {n: pair for n, pair in pairs.items() if pair[0].isdigit() and pair[1].isdigit() and int(pair[1]) > 0}
    hot = (f"{label[:10]} {int(now) / 1000:.0f} C" for now, crit, label in known.values() if int(now) >= int(crit))
    return tuple(hot), len(known)
