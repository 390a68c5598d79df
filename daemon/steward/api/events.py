"""Choose the events of the page of events by its filter."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.exceptions import HTTPException

from steward.model import event_kinds
from steward.model.events import Event, Level
from steward.model.text import printable
from steward.ports import StorePort

_PAGE = 1000
_BACK = 5000
"""A filtered search for the newest events reads at most this many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventChoice:
    """A filter of events. Empty or 0 means all.

    `kind` is the beginning of the event's kind, `level` the lowest level, `since` Unix seconds.
    """

    node: str = ""
    job: int = 0
    kind: str = ""
    level: Level = Level.INFO
    since: float = 0.0

    @staticmethod
    def of(said: Mapping[str, str], job_of: Callable[[str], int]) -> "EventChoice":
        """Return the filter of a query; `job_of` parses a job id. Raises HTTPException for a bad word, job or time."""
        try:
            level = Level(said.get("level", Level.INFO.value))
        except ValueError as error:
            words = ", ".join(one.value for one in Level)
            raise HTTPException(400, f"level={said['level']}: use one of {words}") from error
        try:
            since = float(said.get("since", "0"))
        except ValueError as error:
            raise HTTPException(400, "since: use Unix seconds") from error
        job, kind = job_of(said["job"]) if said.get("job") else 0, said.get("kind", "")
        if not event_kinds.is_a_beginning(kind):
            raise HTTPException(400, f"kind={printable(kind, 40)}: use {event_kinds.nearest(kind)}")
        return EventChoice(node=said.get("node", ""), job=job, kind=kind, level=level, since=since)

    @property
    def is_all(self) -> bool:
        return not self.kind and not self.since and self.level is Level.INFO

    def takes(self, event: Event) -> bool:
        recent = event.at >= self.since
        return recent and event.kind.startswith(self.kind) and event.level.rank >= self.level.rank


def choose_events(store: StorePort, after: int, limit: int, choice: EventChoice) -> list[tuple[int, Event]]:
    """Return at most `limit` events after `after`, or the newest ones if `after` is 0; oldest first."""
    if choice.is_all:
        return store.events(after=after, limit=limit, node=choice.node, job=choice.job)
    if not after:
        found = store.events(limit=_BACK, node=choice.node, job=choice.job)
        return [one for one in found if choice.takes(one[1])][-limit:]
    chosen: list[tuple[int, Event]] = []
    while len(chosen) < limit:
        page = store.events(after=after, limit=_PAGE, node=choice.node, job=choice.job)
        chosen += [one for one in page if choice.takes(one[1])]
        if len(page) < _PAGE:
            break
        after = page[-1][0]
    return chosen[:limit]
