"""AMD GPUs as the amdgpu driver shows them in sysfs: the facts that amd-smi gives, without starting a program."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from steward.checks import known_set
from steward.checks.check import Check, Facts, Judge, Judgement, Notes, Past, failed, passed, skipped, unknown
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity
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
    """One AMD GPU with its error counts, bad pages and hot sensors.

    `uncorrectable` counts errors by block (`umc`: memory, `xgmi_wafl`: links). `pages` counts bad pages by the driver's
    letter (R reserved, P waits for the next reset, F cannot be reserved). `hot` names the sensors at or above their
    critical value; `sensors` counts all that can be judged.
    """

    name: str
    uncorrectable: dict[str, int] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)
    hot: tuple[str, ...] = ()
    has_ras: bool = False
    sensors: int = 0


def probes(facts: Facts) -> tuple[ReadTree, ...]:
    """Return the one probe that all checks of AMD GPUs share."""
    return (_TREE,)


def gpus(raw: Raw) -> tuple[str, ...]:
    """Return the identity of each GPU that the compute driver lists: its unique id, or else its PCI address."""
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
    """Return the graphics devices that report errors or temperatures."""
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
    """Return the sensors at or above their critical temperature, and how many sensors have one."""
    found: dict[str, dict[str, str]] = {}  # temperatures in 0.001 degrees, as sysfs has them
    for file, text in texts.items():
        if match := _TEMPERATURE.search(file):
            found.setdefault(match["sensor"], {})[match["what"]] = text.strip()
    pairs = {n: (s["input"], s["crit"], s.get("label", n)) for n, s in found.items() if {"input", "crit"} <= set(s)}
    known = {n: pair for n, pair in pairs.items() if pair[0].isdigit() and pair[1].isdigit() and int(pair[1]) > 0}
    hot = (f"{label[:10]} {int(now) / 1000:.0f} C" for now, crit, label in known.values() if int(now) >= int(crit))
    return tuple(hot), len(known)


EXPECTED = Threshold(
    name="amd.count.expected",
    default=0,
    unit="GPUs",
    text="AMD GPUs that must be there; 0: those that were there once in this boot.",
    high=1024,
)


COUNT = Check(
    id="amd.count",
    probes=probes,
    judge=known_set.judge_of(gpus, EXPECTED, "AMD GPU", Severity.FATAL, Advice.REBOOT),
    note=known_set.note_of(gpus),
    default_mode="drain",
    every_s=EVERY_S,
    confirm_s=15.0,
    bad_for_s=120.0,  # a reloaded driver takes its devices away for a minute
    title="AMD GPU vanished",
    source="sysfs",
    cost_ms=3.0,
    settings=(EXPECTED,),
)
"""The check that every AMD GPU seen in this boot is still there."""

_LINKS = "xgmi_wafl"
_SHOWN = 8
MAX_ERRORS = Threshold(
    name="amd.ecc.max_uncorrectable",
    default=5,
    unit="errors",
    text="Uncorrectable errors of one GPU since its driver was loaded.",
    high=1e6,
)
MAX_NEW_PAGES = Threshold(
    name="amd.badpages.max_new",
    default=0,
    unit="pages",
    text="Pages of one GPU that turned bad in this boot.",
    high=1e6,
)


def _of_cards(judge: Callable[[tuple[Card, ...], Facts, Past], Judgement], is_told: Callable[[Card], bool]) -> Judge:
    def judge_raws(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
        if not gpus(raws[0]):
            return skipped("no AMD GPU on this node")
        found = tuple(card for card in cards(raws[0]) if is_told(card))
        return judge(found, facts, past) if found else skipped("the driver does not report it")

    return judge_raws


def _ecc(found: tuple[Card, ...], facts: Facts, past: Past) -> Judgement:
    if not any(card.uncorrectable for card in found):
        return unknown(f"no error count of {found[0].name} can be read")
    errors = {card.name: sum(n for block, n in card.uncorrectable.items() if block != _LINKS) for card in found}
    bad = {name: count for name, count in errors.items() if count > facts.limit(MAX_ERRORS)}
    if bad:
        text = ", ".join(f"{name}: {count}" for name, count in list(bad.items())[:_SHOWN])
        return failed(f"uncorrectable errors: {text}", Severity.DEGRADED, Advice.REBOOT, hardware=min(bad))
    return passed(f"{len(found)} GPUs, {sum(errors.values())} uncorrectable errors")


def _xgmi(found: tuple[Card, ...], facts: Facts, past: Past) -> Judgement:
    bad = [card.name for card in found if card.uncorrectable.get(_LINKS)]
    if bad:
        text = ", ".join(bad[:_SHOWN])
        return failed(f"uncorrectable errors of links: {text}", Severity.DEGRADED, Advice.RESET_GPU, hardware=bad[0])
    return passed(f"links of {len(found)} GPUs without uncorrectable errors")


def note_pages(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    """Note how many bad pages each card had at the first look of this boot."""
    # Pages that were bad at the first look do not count: an earlier note wins over the present count.
    return {**{card.name: (float(sum(card.pages.values())),) for card in cards(raws[0])}, **past.notes}


def _badpages(found: tuple[Card, ...], facts: Facts, past: Past) -> Judgement:
    waiting = [card.name for card in found if card.pages["P"] or card.pages["F"]]
    if waiting:
        text = f"bad pages that are still in use, until the next boot: {', '.join(waiting[:_SHOWN])}"
        return failed(text, Severity.DEGRADED, Advice.REBOOT, hardware=waiting[0])
    new = {card.name: sum(card.pages.values()) - int(past.notes[card.name][0]) for card in found}
    grown = [name for name, count in new.items() if count > facts.limit(MAX_NEW_PAGES)]
    if grown:
        text = ", ".join(f"{name}: {new[name]}" for name in grown[:_SHOWN])
        return failed(f"new bad pages in this boot: {text}", Severity.DEGRADED, Advice.REBOOT, hardware=grown[0])
    return passed(f"{sum(card.pages['R'] for card in found)} pages out of use, none new")


def _temperature(found: tuple[Card, ...], facts: Facts, past: Past) -> Judgement:
    hot = {card.name: card.hot for card in found if card.hot}
    if hot:
        text = "; ".join(f"{name}: {', '.join(sensors)}" for name, sensors in list(hot.items())[:_SHOWN])
        return failed(f"at its critical temperature: {text}", Severity.SUSPECT, Advice.NONE, hardware=min(hot))
    return passed(f"{len(found)} GPUs below their critical temperatures")


def _check(name: str, judge: Judge, title: str, mode: str, *limits: Threshold) -> Check:
    return Check(
        id=name,
        probes=probes,
        judge=judge,
        default_mode=mode,
        every_s=EVERY_S,
        note=note_pages if name == "amd.badpages" else None,
        title=title,
        source="sysfs",
        cost_ms=3.0,
        settings=limits,
    )


def _has_ras(card: Card) -> bool:
    return card.has_ras


ECC = _check("amd.ecc", _of_cards(_ecc, _has_ras), "Uncorrectable errors of an AMD GPU", "drain", MAX_ERRORS)
BADPAGES = _check("amd.badpages", _of_cards(_badpages, _has_ras), "Bad pages of an AMD GPU", "drain", MAX_NEW_PAGES)
XGMI = _check(
    "amd.xgmi",
    _of_cards(_xgmi, lambda card: _LINKS in card.uncorrectable),
    "Links between AMD GPUs with errors",
    "drain",
)
TEMP = _check("amd.temp", _of_cards(_temperature, lambda card: card.sensors > 0), "AMD GPU too hot", "report")
CHECKS: tuple[Check, ...] = (COUNT, ECC, BADPAGES, XGMI, TEMP)
