"""What a line of log or an event is about: the fields that people search for."""

from typing import Any

from steward.model.action import (
    Action,
    AnswerAsk,
    CheckNow,
    CollectStacks,
    DownNode,
    DrainNode,
    FreeNodes,
    KeepNodes,
    LaunchInstance,
    LetGo,
    LookAtAlarms,
    ReleaseNodes,
    ReserveNodes,
    ReturnNode,
    SetFeature,
    SubmitDeep,
    WritePartitions,
)
from steward.model.events import Event

_NAMED = ("node", "job", "instance", "partition", "open")


def kind_of(action: Action) -> str:
    """The action's name in logs and metrics (`DrainNode`)."""
    return type(action).__name__


def action_fields(action: Action) -> dict[str, Any]:
    """node, job, case and the like, as `extra` of a log call."""
    return {"action": kind_of(action), "key": action.key, **_about(action)}


def _about(action: Action) -> dict[str, Any]:
    about = {name: getattr(action, name) for name in _NAMED if hasattr(action, name)}
    match action:
        case DrainNode() | DownNode() | ReturnNode():
            return {**about, "case": action.mark.id}
        case LaunchInstance():
            return {"node": action.slot.node, "case": action.case}
        case AnswerAsk():
            return {**about, "answer": action.answer.value}
        case LetGo() | CheckNow() | CollectStacks() | SetFeature():
            return {**about, "nodes": len(action.nodes)}
        case ReserveNodes() | SubmitDeep() | KeepNodes():
            return {"reservation": action.name, "nodes": len(action.nodes)}
        case ReleaseNodes() | FreeNodes():
            return {"reservation": action.name}
        case WritePartitions():
            return {"bytes": len(action.text)}
        case LookAtAlarms():
            return {"alarms": len(action.alarms)}
        case _:
            return about


def event_fields(event: Event) -> dict[str, Any]:
    """The same for an event."""
    about = {"node": event.node, "job": event.job, "case": event.case}
    return {"event": event.kind, **{key: value for key, value in about.items() if value is not None}}
