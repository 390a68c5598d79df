"""Log lines on stderr: always one line, with time, level, subjects as key=value, then the sentence."""

import logging
import re
import sys
import time
from typing import Any

from steward.adapters.log_pace import Paced

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
