"""Show verdicts, times and lists of nodes in the notation of the pages."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from markupsafe import Markup, escape

from steward.model.node_names import fold
from steward.model.text import age, harmless, local_time, on_calendar, verdict_label
from steward.views.node_verdict import Word

SIGNS: Mapping[str, str] = MappingProxyType(
    {
        Word.LOST.value: "✕",
        Word.DEGRADED.value: "!",
        Word.HELD.value: "■",
        Word.SUSPECT.value: "?",
        Word.REPORT_ONLY.value: "~",
        Word.IN_REPAIR.value: "↻",
        Word.IN_DEEP_CHECK.value: "◎",
        Word.FOREIGN.value: "▲",
        Word.UNWATCHED.value: "–",
        Word.FINE.value: "✓",
    }
)
"""The sign of each verdict, for readers who do not distinguish colours; the most urgent verdict comes first."""
URGENCY = MappingProxyType({Word(word): rank for rank, word in enumerate(SIGNS)})
_MOST_FOLDED = 300
_COMMAND = re.compile(r"`([^`]+)`")


def css(word: str) -> str:
    """Return the CSS class of a verdict or a level."""
    return word.replace(" ", "-")


def clock(at: float | None) -> str:
    """Return the local time with its zone."""
    return local_time(at) if at else "–"


def ago(at: float | None, now: float) -> Markup:
    """Return how long ago a time was, with the time itself as title; the page's script keeps the text current."""
    if not at:
        return Markup("–")
    moment = datetime.fromtimestamp(on_calendar(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(moment, clock(at), age(now - at))


def folded(names: Any) -> str:
    """Return a folded list of nodes, cut if it is too long for a table."""
    text = fold(names)
    return text if len(text) <= _MOST_FOLDED else f"{text[:_MOST_FOLDED]}..."


def with_code_marked(text: str) -> Markup:
    """Return a sentence with each command between backquotes marked as code."""
    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(harmless(text)))))


FILTERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "css": css,
        "clock": clock,
        "coded": with_code_marked,
        "age": age,
        "ago": ago,
        "folded": folded,
        "label": verdict_label,
        "sign": lambda word: SIGNS.get(word, "?"),
        "thousands": lambda number: f"{number:,}",
        "percent": lambda share: "?" if share is None else f"{share:.1%}",
        "hours": lambda seconds: f"{seconds / 3600:,.1f}",
    }
)
