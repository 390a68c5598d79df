"""The options of `steward assess`: one list, of which its own parser and the command `steward` take them."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from typing import NamedTuple

from .ask import AskError
from .estimate import ASSUMPTIONS, Assumption


class Choice(NamedTuple):
    """One option; a flag has no `metavar`."""

    name: str
    help: str
    metavar: str | None = None
    default: str | None = None
    is_repeatable: bool = False


CHOICES = (
    Choice("since", "The last 12h, 90d or 8w, or from a date such as 2026-01-01 (UTC).", "AGE", "90d"),
    Choice("per-node-hour", "What an hour of a node costs: shows node-hours as money, too.", "MONEY"),
    Choice("json", "Print JSON."),
    Choice("html", "Write one page with pictures to this file, instead of the text.", "FILE"),
    Choice("assume", "Replace an assumption, such as save_every=0.5..1; repeatable.", "KEY=LOW..HIGH", None, True),
    Choice("log", "slurmctld's log, where it is not at the place that Slurm says.", "FILE"),
    Choice("keep", "Keep Slurm's answers in this folder, too.", "FOLDER"),
    Choice("from", "Read the answers that --keep wrote, and ask no Slurm.", "FOLDER"),
)
_AGE = re.compile(r"(\d{1,5})([hdw])")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_UNIT_S = {"h": 3600, "d": 86400, "w": 7 * 86400}
_RANGE = re.compile(r"(\w+)=(.+?)\.\.(.+)")


def begin_of(text: str, now: int) -> int:
    """Return the instant that `--since` means. Raises AskError if it means none."""
    if match := _AGE.fullmatch(text):
        begin = now - int(match[1]) * _UNIT_S[match[2]]
    elif (match := _DATE.fullmatch(text)) and 1 <= int(match[2]) <= 12 and 1 <= int(match[3]) <= 31:
        begin = calendar.timegm((int(match[1]), int(match[2]), int(match[3]), 0, 0, 0))
    else:
        raise AskError(f"--since {text}: give an age such as 90d, 12h or 8w, or a date such as 2026-01-01")
    if not 0 < begin < now:
        raise AskError(f"--since {text} is not in the past")
    return begin


def price_of(text: str | None) -> float | None:
    """Return the price of an hour of a node. Raises AskError for one that is no price."""
    price = _number(text) if text else None
    if text and (price is None or price <= 0):
        raise AskError(f"--per-node-hour {text}: give a number above 0, such as 2.50")
    return price


def assumptions_of(texts: Iterable[str]) -> dict[str, Assumption]:
    """Return the assumptions, with those of `--assume` in place of ours. Raises AskError for one that cannot be."""
    found = {one.key: one for one in ASSUMPTIONS}
    for text in texts:
        match = _RANGE.fullmatch(text)
        if match is None or match[1] not in found:
            raise AskError(f"--assume {text}: give KEY=LOW..HIGH, with a key of {', '.join(found)}")
        low, high, most = _number(match[2]), _number(match[3]), 1.0 if found[match[1]].unit == "share" else 1e6
        if low is None or high is None or not 0 < low <= high < most:
            raise AskError(f"--assume {text}: give 0 < LOW <= HIGH < {most:g}")
        found[match[1]] = found[match[1]]._replace(low=low, high=high)
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
