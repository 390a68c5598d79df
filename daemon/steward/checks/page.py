"""The part of docs/config.md on the tables of checks, made from the rows of the checks."""

import json
from collections.abc import Iterable, Iterator

from steward.checks import CHECKS, kernel_log, site
from steward.checks.limits import NO_END, Names, Setting, Threshold, table_of

_HEAD = """## `[checks.<id>]`

A table for each check, by its id: `[checks."ib.flap"]`, or without the quotes. Each may hold `mode`: `"off"`,
`"report"` or `"drain"`, by default as in [checks.md](checks.md), and what the table below says. `[checks."ib.*"]` holds
the `mode` of every check whose id begins with `ib.` and that has none of its own; the longest such name wins.
`[checks.kernel_log]` and `[checks.site]` hold the mode of all lines and files without a table of their own, such as
`[checks."kernel_log.xid79"]` and `[checks."site.scratch"]` (default: `"drain"` and `"report"`).

| Table | Key | Type | Default | Range | Meaning |
|---|---|---|---|---|---|"""


def checks_page() -> str:
    of_site = (site.TIMEOUT_S, site.NHC, *site.settings_of("site.<file>"))
    rows = (*(one for check in CHECKS for one in check.settings), *kernel_log.THRESHOLDS, *of_site)
    return "\n".join((_HEAD, *_rows(rows), ""))


def _rows(settings: Iterable[Setting]) -> Iterator[str]:
    """Each once: checks of a family may share one."""
    for one in dict.fromkeys(settings):
        cells = (f"`{table_of(one.id)}`", f"`{one.key}`", *_described(one), one.text)
        yield f"| {' | '.join(cells)} |".replace("|  |", "| |")


def _described(setting: Setting) -> tuple[str, str, str]:
    """Type, default and range."""
    match setting:
        case Threshold(default=default):
            high = f" to {setting.high:g}" if setting.high < NO_END else ""
            kind = "whole number" if setting.is_whole else "number"
            own = "none" if default is None else f"`{default:g}`"
            return kind, own, f"from {setting.low:g}{high} ({setting.unit})"
        case Names(default=names):
            return "list of strings", f"`{json.dumps(names)}`", ""
        case _:
            return "string", '`""`', ""
