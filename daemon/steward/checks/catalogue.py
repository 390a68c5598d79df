"""The catalogue of checks for people: what each check detects, where it looks, how often, its limits and its mode."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from steward.checks import CHECKS, kernel_log, site
from steward.checks.check import Check
from steward.checks.known import OWN_MODES
from steward.checks.limits import NO_END, Limits, Names, Setting, Threshold, table_of
from steward.model.dotted import entry_of, lookup_dotted

_DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A limit in force. `by` is `default`, or the table of the settings that sets it."""

    name: str
    value: float
    default: float
    unit: str
    text: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCheck:
    """A check as listed for people.

    `mode_by` is `default`, or the table of the settings that sets the mode. `every_s` is 0 for a check that runs
    whenever something happens. `cost_ms` is roughly the CPU time of one look.
    """

    id: str
    title: str
    source: str
    every_s: float
    timeout_s: float
    cost_ms: float
    mode: str
    mode_by: str
    numbers: tuple[Number, ...]


def catalogue(limits: Limits, interval_s: float) -> tuple[ListedCheck, ...]:
    """Return every built-in check, with all kernel-log lines as one; `interval_s` is the default period."""
    return (*(_listed(check, limits, interval_s) for check in CHECKS), _kernel_log(limits))


def site_check(id: str, limits: Limits, interval_s: float) -> ListedCheck:
    """Return the entry of a site's own check, or of any check that agents report and `catalogue` does not list."""
    period_s = site.period_s(id, limits)
    return ListedCheck(
        id=id,
        title="a check of the site's own",
        source="command",
        every_s=interval_s if period_s is None else period_s,
        timeout_s=limits.number(site.TIMEOUT_S),
        cost_ms=0.0,
        mode=lookup_dotted(id, limits.modes) or site.MODE,
        mode_by=mode_by(id, limits),
        numbers=(),
    )


def _listed(check: Check, limits: Limits, interval_s: float) -> ListedCheck:
    return ListedCheck(
        id=check.id,
        title=check.title,
        source=check.source,
        every_s=check.every_s if check.every_s is not None else interval_s,
        timeout_s=check.timeout_s,
        cost_ms=check.cost_ms,
        mode=check.mode(limits),
        mode_by=mode_by(check.id, limits),
        numbers=_numbers(check.thresholds, limits),
    )


def _kernel_log(limits: Limits) -> ListedCheck:
    return ListedCheck(
        id=kernel_log.FAMILY,
        title=f"a kernel-log line that reports a fault ({len(kernel_log.SIGNATURES)} signatures)",
        source="kmsg",
        every_s=0.0,
        timeout_s=0.0,
        cost_ms=0.1,
        mode=limits.modes.get(kernel_log.FAMILY, OWN_MODES[kernel_log.FAMILY]),
        mode_by=mode_by(kernel_log.FAMILY, limits),
        numbers=_numbers(kernel_log.THRESHOLDS, limits),
    )


def mode_by(id: str, limits: Limits) -> str:
    """Return the heading of the table that sets the mode, or `default`."""
    entry = entry_of(id, limits.modes)
    return table_of(entry) if entry else _DEFAULT


def _numbers(thresholds: Iterable[Threshold], limits: Limits) -> tuple[Number, ...]:
    return tuple(
        Number(
            name=one.name,
            value=limits.number(one),
            default=one.default or 0.0,
            unit=one.unit,
            text=one.text,
            by=table_of(one.id) if limits.is_set(one) else _DEFAULT,
        )
        for one in thresholds
        if limits.is_set(one) or one.default is not None
    )


# The section of docs/config.md about the tables of checks, made from their declarations.

_HEAD = """## `[checks.<id>]`

A table for each check, by its id: `[checks."ib.flap"]`. Each may hold `mode`: `"off"`, `"report"` or `"drain"`
(defaults: [checks.md](checks.md)), and what the table below says. `[checks."ib.*"]` holds the `mode` of every check
whose id begins with `ib.` and that has none of its own; the longest such name wins. `[checks.kernel_log]` and
`[checks.site]` do so for lines and files, such as `[checks."kernel_log.xid79"]` and `[checks."site.scratch"]`
(default: `"drain"` and `"report"`).

A number may be said for some nodes only: `expected_count = {"gpu[1-8]" = 8, "viz1" = 2}` in `[checks.gpu]`.
Where a row only names what is counted, the check fails above the value.

| Table | Key | Value | Default | Meaning |
|---|---|---|---|---|"""


def checks_page() -> str:
    of_site = (site.TIMEOUT_S, site.NHC, *site.settings_of("site.<file>"))
    rows = (*(one for check in CHECKS for one in check.settings), *kernel_log.THRESHOLDS, *of_site)
    return "\n".join((_HEAD, *_rows(rows), ""))


def _rows(settings: Iterable[Setting]) -> Iterator[str]:
    """Yield a row of the page for each setting, once even where checks of a family share it."""
    for one in dict.fromkeys(settings):
        cells = (f"`{table_of(one.id)}`", f"`{one.key}`", *_described(one), one.text)
        yield f"| {' | '.join(cells)} |"


def _described(setting: Setting) -> tuple[str, str]:
    """Return the values that a setting may have, and its default, as the page shows them."""
    match setting:
        case Threshold(default=default):
            high = f"–{setting.high:.15g}" if setting.high < NO_END else " or more"
            own = "none" if default is None else f"`{default:.15g}`"
            return f"{'integer ' if setting.is_whole else ''}{setting.low:.15g}{high} {setting.unit}", own
        case Names(default=names):
            return "strings", f"`{json.dumps(names)}`"
        case _:
            return "string", '`""`'
