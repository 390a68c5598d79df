"""The catalogue of checks as a whole: which names and numbers a site may speak of, and what mode each check has."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from steward.checks import CHECKS, kernel_log
from steward.checks.check import WORDS, Check, Threshold, said_of
from steward.checks.limits import Limits

OPEN_FAMILIES = ("kernel_log", "site")
"""Their members are no checks of CHECKS: lines of the kernel log, the site's own programs. Each has a table."""

DEEP = ("deep.stress", "deep.connectivity")
"""The names of cases that a deep check opens."""

THRESHOLDS: Mapping[str, Threshold] = {
    one.name: one for one in (*(one for check in CHECKS for one in check.thresholds), *kernel_log.THRESHOLDS)
}


def modes(limits: Limits) -> dict[str, str]:
    """check id -> off, report or drain: what the settings say, else the check's own."""
    return {check.id: check.mode(limits) for check in CHECKS}


def mode_of(limits: Limits) -> Callable[[str], str]:
    """check id -> mode, as the head sees it: an entry of its own, else its nearest family's; unnamed ones drain."""
    site = {f"site.{name}": word for name, word in limits.site.modes.items()}
    families = {"kernel_log": limits.kernel_log.mode, "site": limits.site.mode}
    said = {**modes(limits), **families, **site, **limits.mode}
    return lambda check: said_of(check, said) or "drain"


def problems(limits: Limits) -> tuple[str, ...]:
    """The errors in `[checks.mode]` and `[checks.limit]`, a line each with a remedy; none when all is right."""
    return (*_wrong_modes(limits.mode), *_wrong_limits(limits.limit))


def _wrong_modes(said: Mapping[str, str]) -> Iterator[str]:
    names = _names()
    for name, word in said.items():
        place = f'checks.mode."{name}" = "{word}"'
        if word not in WORDS:
            yield f'{place}: use "off", "report" or "drain"'
        elif name not in names and name.partition(".")[0] not in OPEN_FAMILIES:
            yield f"{place}: no check and no family has that name; {_nearest(name, names)}"
        elif not _listens(name):
            yield f'{place}: it has a table of its own; write mode = "{word}" in [checks.{name}]'


def _wrong_limits(said: Mapping[str, float]) -> Iterator[str]:
    for name, value in said.items():
        place = f'checks.limit."{name}" = {value:g}'
        known = THRESHOLDS.get(name)
        if known is None:
            yield f"{place}: no check has such a threshold; {_nearest(name, THRESHOLDS)}"
        elif not known.low <= value <= known.high:
            yield f"{place}: use a number from {known.low:g} to {known.high:g} ({known.unit})"


def _names() -> frozenset[str]:
    """Every check and every family of checks."""
    ids = (*(check.id for check in CHECKS), *DEEP)
    return frozenset(name for id in ids for name in _with_families(id))


def _with_families(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


def _listens(name: str) -> bool:
    """Whether the entry says anything: a check with a table of its own has its mode there."""
    if name in OPEN_FAMILIES:
        return False
    checks = [check for check in CHECKS if name in _with_families(check.id)]
    return not checks or any(_follows(check) for check in checks)


def _follows(check: Check) -> bool:
    return all(check.mode(replace(Limits(), mode={check.id: word})) == word for word in WORDS)


def _nearest(name: str, known: Mapping[str, object] | frozenset[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else "`steward checks` lists them"
