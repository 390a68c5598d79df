"""Texts for people: hostile text made harmless, and the words that all explanations share."""

import json
import time

_SHOWN, _LINE = 100, 500


def printable(text: str, limit: int) -> str:
    """Return hostile text for display and storage: one line of printable ASCII, at most `limit` characters.

    White space becomes a space, any other character `?`.
    """
    kept = text[: limit + 1]
    if not (kept.isascii() and kept.isprintable()):  # rare: the fast path serves millions of names a day
        kept = "".join(c if " " <= c <= "~" else " " if c.isspace() else "?" for c in kept)
    return kept if len(kept) <= limit else kept[: max(0, limit - 3)] + "..."


def harmless(text: str) -> str:
    """Return the text without control and bidi characters, which could steer a terminal or page, or forge a line."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def one_line(text: str, limit: int) -> str:
    """Return the text, in any script, as one harmless line of at most `limit` characters."""
    kept = harmless(text[: limit + 1])
    return kept if len(kept) <= limit else kept[: max(0, limit - 3)] + "..."


def json_text(value: object, *, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """Return the value as JSON in printable ASCII; a reader of JSON gets every character back."""
    text = json.dumps(value, indent=indent, separators=separators, allow_nan=False)
    return text.replace("\x7f", "\\u007f")  # DEL is the one control character that `dumps` leaves as it is


def repr_line(value: object) -> str:
    """Return any value from outside as text for one line of a message."""
    try:
        return printable(repr(value), _SHOWN)
    except RecursionError:
        return "something that is nested too deeply"


def as_in_file(value: object) -> str:
    """Return a value as it would stand in a settings file, cut to a readable length."""
    return one_line(json.dumps(value, ensure_ascii=False, default=str), 60)


def cause(error: Exception) -> str:
    """Return in words why a file, a program or a connection failed, without its name, which the message has."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__


def cause_and_file(error: Exception) -> str:
    """Return in words why something failed, with the file that the system names, if any."""
    named = [str(name) for name in (getattr(error, "filename", None), getattr(error, "filename2", None)) if name]
    return f"{cause(error)}: {', '.join(named)}" if isinstance(error, OSError) and named else cause(error)


_LAST = 253_402_128_000.0
"""Two days before the end of the year 9999 (Unix s), the last year that `datetime` knows."""


def on_calendar(at: float) -> float:
    """Return the time, moved into the years that `datetime` knows: another machine may send any number."""
    return min(max(at, 0.0), _LAST)


# Words that all explanations share.

PAUSED = "actions are paused: `steward events --kind head.` says why, `steward resume-actions` ends the pause"
"""The sentence for a head that was paused by a person, or that paused itself beside another head."""
UNREAD = "Slurm cannot be read"
REPORT_ONLY = 'report only, no node is touched: set repair.mode = "ask" or "act" when the reports look right'
"""The sentence for sites where repairs are only reported: in `steward status`, the log at start and the doctor."""


def verdict_label(word: str) -> str:
    """Return the label for people of a node's verdict; the API and the metrics use the verdict's word."""
    return {"foreign": "drained by admin"}.get(word, word)


def ago(at: float, now: float) -> str:
    """Return a past time as `5 min ago`."""
    return f"{span(now - at)} ago"


def time_left(at: float, now: float) -> str:
    """Return a future time as `in 5 min`, a past one as `now`."""
    return f"in {span(at - now)}" if at > now else "now"


def span(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours: `90 s`, `5 min`, `3 h`."""
    seconds = max(0.0, seconds)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def age(seconds: float) -> str:
    """Return a duration as `span` does, in days from two days on: `3 d`."""
    return f"{seconds / 86_400:.0f} d" if seconds >= 172_800 else span(seconds)


def local_time(at: float) -> str:
    """Return a time as this machine's clock shows it, with its zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(on_calendar(at)))


def times(count: int) -> str:
    """Return a count as `once` or `3 times`."""
    return "once" if count == 1 else f"{count} times"


def capitalized(text: str) -> str:
    """Return a text, not empty, with its first letter large: the rest may hold names."""
    return f"{text[0].upper()}{text[1:]}"


def clean(lines: list[str]) -> tuple[str, ...]:
    """Return hostile lines (reasons, names, check texts) as one harmless line each."""
    return tuple(one_line(line, _LINE) for line in lines)


def count_noun(count: int, word: str) -> str:
    """Return a count with its noun: `1 job`, `3 jobs`."""
    return f"{count} {word}{'' if count == 1 else 's'}"
