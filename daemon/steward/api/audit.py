"""Who changed what, when and from where: one log line (`steward.audit`) and one event for each asked change."""

import logging
from collections.abc import Callable

from steward.api.json11.errors import Code
from steward.model.access import Caller
from steward.model.events import Event, Level
from steward.model.text import printable

log = logging.getLogger("steward.audit")

_SUMMARY = 400
_DONE = "done"


class Audit:
    """`tell` keeps an event. Refused changes are told too; those that only came too often go to the log alone."""

    def __init__(self, *, tell: Callable[[Event], None], now: Callable[[], float]) -> None:
        self._tell, self._now = tell, now

    def note(self, caller: Caller, operation: str, body: bytes, refusal: Code | None) -> None:
        """`refusal` None: it was accepted."""
        outcome = refusal.value if refusal else _DONE
        about = {
            "who": caller.user,
            "way": caller.way,
            "from": caller.address,
            "request": caller.request,
            "outcome": outcome,
            "asked": printable(body[: 4 * _SUMMARY].decode(errors="replace"), _SUMMARY),
        }
        log.log(logging.WARNING if refusal else logging.INFO, "%s: %s", operation, outcome, extra=about)
        if refusal is not Code.THROTTLED:
            self._tell(_event(self._now(), operation, about, Level.WARNING if refusal else Level.INFO))


def _event(at: float, operation: str, about: dict[str, str], level: Level) -> Event:
    text = f"{operation} by {about['who']} from {about['from']}: {about['outcome']}"
    return Event(at=at, kind=f"api.{operation}", text=text, level=level, data=tuple(about.items()))
