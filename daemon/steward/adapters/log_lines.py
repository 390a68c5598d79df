"""Log lines on stderr: always one line, with time, level, subjects as key=value, then the sentence."""

import logging
import re
import sys
import time
from collections.abc import Callable
from typing import Any

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_FIRST_FIELDS = ("node", "case", "job")
_NEEDS_NO_QUOTES = re.compile(r"^[\w.:/@%+,\[\]-]+$")


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields given as `extra`, without None values; node, case and job come first."""
    given = {key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS and value is not None}
    first = {key: given.pop(key) for key in _FIRST_FIELDS if key in given}
    return {**first, **given}


def _quoted(value: object) -> str:
    text = str(value)
    return text if _NEEDS_NO_QUOTES.match(text) else '"' + escaped(text).replace('"', '\\"') + '"'


def escaped(text: str) -> str:
    """Return the text without line breaks and other control characters."""
    # A node's text must not forge a log line.
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class KeyValueFormatter(logging.Formatter):
    """Lines like `2026-11-21T10:36:01.123+0100 info node=n1 case=c-7 drained`; a traceback is on further lines."""

    def format(self, record: logging.LogRecord) -> str:
        local = time.localtime(record.created)
        stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', local)}.{int(record.msecs):03d}{time.strftime('%z', local)}"
        about = "".join(f"{key}={_quoted(value)} " for key, value in fields_of(record).items())
        line = f"{stamp} {record.levelname.lower()} {about}{escaped(record.getMessage())}"
        return line if record.exc_info is None else f"{line}\n{self.formatException(record.exc_info)}"


def log_to_stderr(level: int) -> None:
    """Send all logs of this process to stderr, as key=value lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(KeyValueFormatter())
    log_to(handler, level)


def log_to(handler: logging.Handler, level: int) -> None:
    """Send all logs of this process to `handler` alone, a bounded number of each kind."""
    handler.addFilter(Paced())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


AT_ONCE = 1000


PER_S = 1.0


MOST_KINDS = 4096


_Kind = tuple[str, int, object, object]


class Paced(logging.Filter):
    """A filter that lets `AT_ONCE` lines of a kind through, then `PER_S` a second.

    The next line let through says how many were left out. A kind is a line of code, with the kind of action or event
    that it logs. Errors are always let through.
    """

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._paid: dict[_Kind, float] = {}
        """The time until which each kind's lines so far use up the rate."""
        self._left: dict[_Kind, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR:
            return True
        about = record.__dict__
        kind = (record.name, record.lineno, about.get("action"), about.get("event"))
        now = self._now()
        paid = max(self._paid.get(kind, now), now)
        if paid - now > (AT_ONCE - 1) / PER_S:
            self._left[kind] = self._left.get(kind, 0) + 1
            return False
        self._paid[kind] = paid + 1 / PER_S
        if len(self._paid) > MOST_KINDS:
            self._paid = {one: until for one, until in self._paid.items() if until > now or one in self._left}
        if left := self._left.pop(kind, 0):
            record.msg, record.args = f"{record.getMessage()} (and {left:,} more of this kind)", None
        return True
