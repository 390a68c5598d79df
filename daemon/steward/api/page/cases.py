"""The pages of repairs: the list of all remembered ones, and one repair."""

from dataclasses import dataclass

from starlette.exceptions import HTTPException

from steward.api.page.look import Look, Paged, PageRequest
from steward.model.case import Case
from steward.model.events import Event
from steward.model.text import printable
from steward.ports import PortError
from steward.views.awaited import of_case
from steward.views.node_verdict import next_of_case


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """A repair in a list. `next` is its next step; empty if the repair is closed."""

    case: Case
    next: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    cases: Paged[CaseRow]
    asked: PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCase:
    """One repair with its history. `moments` are the times at which it reached its steps, in order, in Unix seconds."""

    row: CaseRow
    awaited: str
    moments: tuple[tuple[str, float], ...]
    events: tuple[Event, ...]


def cases(look: Look, asked: PageRequest) -> Cases:
    """Return the repairs that match: open ones first, then the newest."""
    state, text = asked.word("state"), asked.word("q").lower()
    found = [
        case
        for case in look.snapshot.memory.cases.values()
        if (not state or state == ("open" if case.is_open else "closed"))
        and (not text or text in case.id.lower() or text in case.node.lower() or text in case.check.lower())
    ]
    found.sort(key=lambda case: (not case.is_open, -case.opened))
    return Cases(cases=Paged.of(found, asked).map(lambda case: row(case, look)), asked=asked)


def row(case: Case, look: Look) -> CaseRow:
    return CaseRow(case=case, next=next_of_case(case, look.draft) if case.is_open else "")


def case(look: Look, asked: PageRequest) -> OneCase:
    """Return the page of one repair. Raises HTTPException if it is not remembered."""
    every = look.snapshot.memory.cases.values()
    found = next((one for one in every if asked.name in (one.id, one.number)), None)
    if found is None:
        raise HTTPException(404, f"case {printable(asked.name, 40)} is not remembered: `steward events` may tell of it")
    named = ("fault_at", "detected", "opened", "asked", "approved", "marked", "replaced", "returned", "closed")
    words = {"fault_at": "fault", "asked": "asked for approval"}
    told = ((words.get(name, name), getattr(found, name)) for name in named)
    return OneCase(
        row=row(found, look),
        awaited=of_case(found, None, look.draft) if found.is_open else "",
        moments=tuple(sorted(((name, at) for name, at in told if at is not None), key=lambda one: one[1])),
        events=tuple(_events(look, found)),
    )


def _events(look: Look, case: Case) -> list[Event]:
    """Return the events of a repair, the newest first; none if the store cannot be read."""
    try:
        told = look.source.store.events(node=case.node, limit=500)
    except PortError:
        return []
    return [event for _, event in reversed(told) if event.case == case.id]
