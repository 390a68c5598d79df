"""Limit repeated events of one kind about one job or node.

A user can cause some events again and again: these must not hide other events, nor fill the store.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from steward.model.events import Event, Level

AT_ONCE = 60
EACH_S = 10.0
MOST_SUBJECTS = 50_000

_Subject = tuple[str, object, object]


@dataclass(slots=True)
class _Repeats:
    """The events of one kind and subject.

    `paid`: each event that passed moves this time `EACH_S` further (monotonic). `left`, `last`: how many events were
    left out, and the newest of them.
    """

    paid: float
    left: int = 0
    last: Event | None = None


class Calm:
    """A limit on events: `AT_ONCE` of a kind about one subject, then one each `EACH_S` with the number left out.

    Errors always pass.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._told: dict[_Subject, _Repeats] = {}

    def filter_events(self, events: Iterable[Event]) -> list[Event]:
        """Return the events to write: those that pass, and the newest left-out event of each subject that is due."""
        now = self._monotonic()
        found = [event for event in events if self._is_let(event, now)]
        found.extend(self._due_again(now))
        if len(self._told) > MOST_SUBJECTS:
            self._told = {key: one for key, one in self._told.items() if one.paid > now or one.left}
        return found

    def _is_let(self, event: Event, now: float) -> bool:
        """Return whether the event passes; if it does not, count it."""
        if event.level is Level.ERROR:
            return True
        told = self._told.setdefault((event.kind, event.job, event.node if event.job is None else None), _Repeats(now))
        paid = max(told.paid, now)
        if told.left or paid - now > (AT_ONCE - 1) * EACH_S:
            told.left, told.last = told.left + 1, event
            return False
        told.paid = paid + EACH_S
        return True

    def _due_again(self, now: float) -> list[Event]:
        """Return the newest left-out event of each kind and subject that is due again, with the number left out."""
        found = []
        for told in self._told.values():
            if told.last is None or max(told.paid, now) - now > (AT_ONCE - 1) * EACH_S:
                continue
            more = f" (and {told.left - 1:,} more like it)" if told.left > 1 else ""
            found.append(replace(told.last, text=f"{told.last.text}{more}"))
            told.paid, told.left, told.last = max(told.paid, now) + EACH_S, 0, None
        return found
