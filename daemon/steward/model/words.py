"""Words that all explanations share."""

from steward.model.text import printable

REPORT_ONLY = 'report only, no node is touched: set repair.mode = "ask" or "act" when the reports look right'
"""The sentence for sites where repairs are only reported: `steward status`, the log at start and the doctor say so."""
_LINE = 500


def ago(at: float, now: float) -> str:
    return f"{span(now - at)} ago"


def until(at: float, now: float) -> str:
    return f"in {span(at - now)}" if at > now else "now"


def span(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def times(count: int) -> str:
    """`once`, `3 times`."""
    return "once" if count == 1 else f"{count} times"


def clean(lines: list[str]) -> tuple[str, ...]:
    """Reasons, names and check texts are hostile: one printable line each."""
    return tuple(printable(line, _LINE) for line in lines)


def some(count: int, word: str) -> str:
    """`1 job`, `3 jobs`."""
    return f"{count} {word}{'' if count == 1 else 's'}"
