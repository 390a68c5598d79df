"""What amdgpu counts of its errors: uncorrectable ones, bad pages, links between GPUs, and heat."""

from collections.abc import Callable

from steward.checks.accelerators.amd import EVERY_S, Card, cards, gpus, probes
from steward.checks.check import Check, Facts, Judge, Verdict, failed, passed, skipped, unknown
from steward.checks.modes import by_id
from steward.checks.past import Notes, Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

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


def _of_cards(judge: Callable[[tuple[Card, ...], Facts, Past], Verdict], is_told: Callable[[Card], bool]) -> Judge:
    def told(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
        if not gpus(raws[0]):
            return skipped("no AMD GPU on this node")
        found = tuple(card for card in cards(raws[0]) if is_told(card))
        return judge(found, facts, past) if found else skipped("the driver does not tell")

    return told


def _ecc(found: tuple[Card, ...], facts: Facts, past: Past) -> Verdict:
    if not any(card.uncorrectable for card in found):
        return unknown(f"no error count of {found[0].name} can be read")
    errors = {card.name: sum(n for block, n in card.uncorrectable.items() if block != _LINKS) for card in found}
    bad = {name: count for name, count in errors.items() if count > facts.limit(MAX_ERRORS)}
    if bad:
        text = ", ".join(f"{name}: {count}" for name, count in list(bad.items())[:_SHOWN])
        return failed(f"uncorrectable errors: {text}", Severity.DEGRADED, Advice.REBOOT, hardware=min(bad))
    return passed(f"{len(found)} GPUs, {sum(errors.values())} uncorrectable errors")


def _xgmi(found: tuple[Card, ...], facts: Facts, past: Past) -> Verdict:
    bad = [card.name for card in found if card.uncorrectable.get(_LINKS)]
    if bad:
        text = ", ".join(bad[:_SHOWN])
        return failed(f"uncorrectable errors of links: {text}", Severity.DEGRADED, Advice.RESET_GPU, hardware=bad[0])
    return passed(f"links of {len(found)} GPUs without uncorrectable errors")


def note_pages(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    """Card -> bad pages at the first look of this boot: those were dealt with before."""
    return {**{card.name: (float(sum(card.pages.values())),) for card in cards(raws[0])}, **past.notes}


def _badpages(found: tuple[Card, ...], facts: Facts, past: Past) -> Verdict:
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


def _temperature(found: tuple[Card, ...], facts: Facts, past: Past) -> Verdict:
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
        mode=by_id(name, mode),
        every_s=EVERY_S,
        note=note_pages if name == "amd.badpages" else None,
        title=title,
        source="sysfs",
        cost_ms=3.0,
        thresholds=limits,
    )


def _has_ras(card: Card) -> bool:
    return card.has_ras


def _has_links(card: Card) -> bool:
    return _LINKS in card.uncorrectable


def _has_sensors(card: Card) -> bool:
    return card.sensors > 0


CHECKS = (
    _check("amd.ecc", _of_cards(_ecc, _has_ras), "Uncorrectable errors of an AMD GPU", "drain", MAX_ERRORS),
    _check("amd.badpages", _of_cards(_badpages, _has_ras), "Bad pages of an AMD GPU", "drain", MAX_NEW_PAGES),
    _check("amd.xgmi", _of_cards(_xgmi, _has_links), "Links between AMD GPUs with errors", "drain"),
    _check("amd.temp", _of_cards(_temperature, _has_sensors), "AMD GPU too hot", "report"),
)
