"""Texts for people: hostile ones made harmless, and the words that all explanations share."""

_SHOWN, _LINE = 100, 500


def printable(text: str, limit: int) -> str:
    """`text` on one line of printable ASCII, at most `limit` characters; white space becomes a space, the rest `?`.
    Hostile text is shown and stored so, and never evaluated."""
    kept = text[: limit + 1]
    if not (kept.isascii() and kept.isprintable()):  # hardly any is not; the head sees millions of names a day
        kept = "".join(c if " " <= c <= "~" else " " if c.isspace() else "?" for c in kept)
    return kept if len(kept) <= limit else kept[: max(0, limit - 3)] + "..."


def harmless(text: str) -> str:
    """`text` without control and bidi characters: a job's name or a node's reason must not steer the terminal or page
    that shows it, nor forge a line."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def one_line(text: str, limit: int) -> str:
    """`text` as its author wrote it, in any script, on one harmless line of at most `limit` characters."""
    kept = harmless(text[: limit + 1])
    return kept if len(kept) <= limit else kept[: max(0, limit - 3)] + "..."


def shown(value: object) -> str:
    """Any value from outside, for one line of a message."""
    try:
        return printable(repr(value), _SHOWN)
    except RecursionError:
        return "something that is nested too deeply"


# Words that all explanations share.

PAUSED = "actions are paused: `steward events --kind head.` says why, `steward resume-actions` ends the pause"
"""The sentence for a head that was paused by a person, or that paused itself beside another head."""
REPORT_ONLY = 'report only, no node is touched: set repair.mode = "ask" or "act" when the reports look right'
"""The sentence for sites where repairs are only reported: `steward status`, the log at start and the doctor say so."""


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
    """Reasons, names and check texts are hostile: one harmless line each."""
    return tuple(one_line(line, _LINE) for line in lines)


def some(count: int, word: str) -> str:
    """`1 job`, `3 jobs`."""
    return f"{count} {word}{'' if count == 1 else 's'}"
