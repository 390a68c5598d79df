"""A limit on the rate of log lines of one kind, so that a caller who provokes them cannot fill the disk."""

import logging
import time
from collections.abc import Callable

AT_ONCE = 1000
PER_S = 1.0
MOST_KINDS = 4096

_Kind = tuple[str, int, object, object]


class Paced(logging.Filter):
    """A filter that lets `at_once` lines of a kind through, then `per_s` a second.

    The next line let through says how many were left out. A kind is a line of code, with the kind of action or event
    that it logs. Errors are always let through.
    """

    def __init__(
        self, *, at_once: int = AT_ONCE, per_s: float = PER_S, now: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._now, self._per_s, self._ahead_s = now, per_s, (at_once - 1) / per_s
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
        if paid - now > self._ahead_s:
            self._left[kind] = self._left.get(kind, 0) + 1
            return False
        self._paid[kind] = paid + 1 / self._per_s
        if len(self._paid) > MOST_KINDS:
            self._paid = {one: until for one, until in self._paid.items() if until > now or one in self._left}
        if left := self._left.pop(kind, 0):
            record.msg, record.args = f"{record.getMessage()} (and {left:,} more of this kind)", None
        return True
