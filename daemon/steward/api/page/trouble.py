"""The pages of incidents and breakers, of checks, of events, and of the plan that would be carried out now."""

from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException

from steward.api.checks import checks_view
from steward.api.events import EventChoice, choose_events
from steward.api.explain_pages import job_number
from steward.api.page.look import Look, Paged, PageRequest
from steward.api.page.nodes import NodeRow, Place, place, rows
from steward.api.views import breakers_view, natural_sort_key, plan_view
from steward.model.events import Event
from steward.model.memory import Incident
from steward.model.node_names import fold
from steward.model.text import printable

Json = dict[str, Any]
_EVENTS_BACK = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidents:
    """The incidents, open ones first, and the tripped breakers."""

    incidents: tuple[Incident, ...]
    breakers: tuple[Json, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneIncident:
    incident: Incident
    place: Place | None
    nodes: Paged[NodeRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    checks: Paged[Json]
    asked: PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A node's bad or unknown finding of a check. `since` is in Unix seconds."""

    node: str
    severity: str
    text: str
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCheck:
    check: Json
    failing: Paged[Failing]
    unknown: tuple[Failing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsPage:
    """The events that match, the newest first."""

    events: Paged[Event]
    asked: PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRow:
    """An action of a plan."""

    action: str
    about: str
    node: str
    job: str
    shown_id: str
    why: str
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The planned actions. `held` says why none of them is carried out now; empty if they are."""

    actions: Paged[ActionRow]
    held: str


def incidents(look: Look, _asked: PageRequest) -> Incidents:
    every = look.snapshot.memory.incidents.values()
    return Incidents(
        incidents=tuple(sorted(every, key=lambda one: (one.over is not None, -one.since))),
        breakers=tuple(breakers_view(look.draft)),
    )


def incident(look: Look, asked: PageRequest) -> OneIncident:
    """Return the page of one incident. Raises HTTPException if it is not remembered."""
    found = look.snapshot.memory.incidents.get(asked.name)
    if found is None:
        raise HTTPException(404, f"incident {printable(asked.name, 60)} is not remembered")
    known = sorted((name for name in found.nodes if name in look.snapshot.seen.nodes), key=natural_sort_key)
    return OneIncident(
        incident=found,
        place=place(found.kind, known, look) if known else None,
        nodes=Paged.of(known, asked).map(lambda name: rows([name], look)[0]),
    )


def checks(look: Look, asked: PageRequest) -> Checks:
    """Return the checks that match: those that fail on a node first."""
    text = asked.word("q").lower()
    every = checks_view(look.source.checks, look.snapshot)
    found = [one for one in every if not text or text in one["id"].lower() or text in one["title"].lower()]
    found.sort(key=lambda one: (-one["failed"], -one["unknown"], one["id"]))
    return Checks(checks=Paged.of(found, asked), asked=asked)


def check(look: Look, asked: PageRequest) -> OneCheck:
    """Return the page of one check. Raises HTTPException if neither the head nor an agent knows the check."""
    every = checks_view(look.source.checks, look.snapshot)
    found = next((one for one in every if one["id"] == asked.name), None)
    if found is None:
        raise HTTPException(404, f"{printable(asked.name, 60)} is not a check: `steward check list` shows them")
    agents = look.snapshot.seen.agents.values()
    told = [
        (f.is_bad, Failing(node=view.node, severity=f.severity.value, text=f.text, since=f.at))
        for view in agents
        for f in view.findings
        if view.connected and f.check == asked.name and (f.is_bad or f.outcome.value == "unknown")
    ]
    told.sort(key=lambda one: natural_sort_key(one[1].node))
    return OneCheck(
        check=found,
        failing=Paged.of([one for is_bad, one in told if is_bad], asked),
        unknown=tuple(one for is_bad, one in told if not is_bad)[:50],
    )


def events(look: Look, asked: PageRequest) -> EventsPage:
    """Return the events that match, of the last `_EVENTS_BACK`.

    Raises HTTPException for a bad filter, Retryable if the store cannot be read.
    """

    def job_of(word: str) -> int:
        found = job_number(word, look.snapshot, look.source.store)
        if found is None:
            raise HTTPException(404, f"job {printable(word, 40)} is not known to Slurm (any more)")
        return found

    choice = EventChoice.of(dict(asked.said), job_of)
    found = choose_events(look.source.store, 0, _EVENTS_BACK, choice)
    return EventsPage(events=Paged.of([event for _, event in reversed(found)], asked, 100), asked=asked)


def plan(look: Look, asked: PageRequest) -> Planned:
    """Return the actions of the plan that would be carried out now."""
    actions = plan_view(look.source, look.snapshot, look.now)["actions"]
    held = "actions are paused" if look.snapshot.memory.paused else ""
    held = held or ("" if look.source.want.repair.act else "Steward only reports")
    return Planned(actions=Paged.of(actions, asked).map(_doing), held=held)


def _doing(action: Json) -> ActionRow:
    node, job = str(action.get("node") or ""), str(action.get("job") or "")
    slot = action.get("slot") or {}
    return ActionRow(
        action=action["action"],
        about=node or job or str(slot.get("node") or fold(action.get("nodes", []))),
        node=node,
        job=job,
        shown_id=action["shown_id"],
        why=action["why"]["text"],
        rule=action["why"]["rule"],
    )
