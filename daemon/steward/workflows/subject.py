"""The subject of an action, a line of the log or an event: nodes and jobs, and the fields that people search for."""

from collections.abc import Iterable
from typing import Any

from steward.model.action import Action
from steward.model.events import Event
from steward.model.ids import JobId, NodeName
from steward.model.observed import Observed, Subject
from steward.workflows.effects import Scene, row_of

_NAMED = ("node", "job", "run", "instance", "partition", "open")


def kind_of(action: Action) -> str:
    """The action's name in logs and metrics (`DrainNode`)."""
    return type(action).__name__


def action_fields(action: Action) -> dict[str, Any]:
    """node, job, case and the like, as `extra` of a log call."""
    return {"action": kind_of(action), "key": action.key, **_about(action)}


def _about(action: Action) -> dict[str, Any]:
    about = {name: getattr(action, name) for name in _NAMED if hasattr(action, name)}
    of_row = row_of(action).about
    return {**about, **of_row(action)} if of_row is not None else about


def subject_of(actions: Iterable[Action], seen: Observed) -> Subject:
    """The records that must be as they were planned on when these are done: nodes, jobs, and where the jobs run."""
    scene = Scene(seen)
    found = [row_of(action).reads(action, scene) for action in actions]
    return Subject(
        nodes=frozenset().union(*(one.nodes for one in found)), jobs=frozenset().union(*(one.jobs for one in found))
    )


def told_of(events: Iterable[Event]) -> Subject:
    """The nodes and jobs that these name."""
    events = tuple(events)
    nodes, jobs = (event.node for event in events), (event.job for event in events)
    return Subject(
        nodes=frozenset(name for name in nodes if name is not None), jobs=frozenset(id for id in jobs if id is not None)
    )


def touched_by(actions: Iterable[Action], seen: Observed) -> Subject | None:
    """The records that are others once these are done; None: nobody can say which."""
    scene = Scene(seen)
    nodes, jobs = set[NodeName](), set[JobId]()
    for action in actions:
        one = row_of(action).touched(action, scene)
        if one is None:
            return None
        nodes |= one.nodes
        jobs |= one.jobs
    return Subject(nodes=frozenset(nodes), jobs=frozenset(jobs))


def event_fields(event: Event) -> dict[str, Any]:
    """The same for an event."""
    about = {"node": event.node, "job": event.job, "case": event.case}
    return {"event": event.kind, **{key: value for key, value in about.items() if value is not None}}
