"""Times, signs and node lists as the page writes them."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from steward.model.node_names import fold
from steward.views.node_verdict import Word

SIGNS: Mapping[str, str] = MappingProxyType(
    {
        Word.FINE.value: "✓",
        Word.SUSPECT.value: "?",
        Word.DEGRADED.value: "!",
        Word.LOST.value: "✕",
        Word.IN_REPAIR.value: "↻",
        Word.IN_DEEP_CHECK.value: "◎",
        Word.HELD.value: "■",
        Word.FOREIGN.value: "▲",
        Word.REPORT_ONLY.value: "~",
        Word.UNWATCHED.value: "–",
    }
)
"""A node's verdict for those who do not tell colours apart."""


def css(word: str) -> str:
    """A verdict or a level as a class."""
    return word.replace(" ", "-")


def clock(at: float) -> str:
    """Local time with its zone."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def age(seconds: float) -> str:
    """`12 s`, `3 min`, `5 h`, `2 d`."""
    seconds = max(seconds, 0.0)
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def ago(at: float | None, now: float) -> Markup:
    """How long ago, which the page's script keeps true; the moment itself as title."""
    if not at:
        return Markup("–")
    moment = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(moment, clock(at), age(now - at))


def folded(names: Iterable[str]) -> str:
    return fold(names)


FILTERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"css": css, "clock": clock, "ago": ago, "folded": folded, "sign": lambda word: SIGNS.get(word, "?")}
)
