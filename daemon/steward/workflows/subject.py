"""What a line of log or an event is about: the fields that people search for."""

from typing import Any

from steward.model.action import (
    Action,
    AllowRequeue,
    AnswerAsk,
    BackUpNode,
    CheckNow,
    DownNode,
    DrainNode,
    ForgetNode,
    LaunchInstance,
    LetGo,
    LookAtAlarms,
    NudgeJob,
    ProbeNode,
    RebootInstance,
    RequeueJob,
    ReturnNode,
    SetGate,
    SetUpNode,
    SignalJob,
    TerminateInstance,
    WritePartitions,
)
from steward.model.events import Event


def kind_of(action: Action) -> str:
    """The action's name in logs and metrics (`DrainNode`)."""
    return type(action).__name__


def action_fields(action: Action) -> dict[str, Any]:
    """node, job, case and the like, as `extra` of a log call."""
    return {"action": kind_of(action), "key": action.key, **_about(action)}


def _about(action: Action) -> dict[str, Any]:
    match action:
        case DrainNode() | DownNode() | ReturnNode():
            return {"node": action.node, "case": action.mark.id}
        case RequeueJob() | NudgeJob() | AllowRequeue() | SignalJob():
            return {"job": action.job}
        case LetGo():
            return {"job": action.job, "nodes": len(action.nodes)}
        case AnswerAsk():
            return {"node": action.node, "job": action.job, "answer": action.answer.value}
        case CheckNow():
            return {"nodes": len(action.nodes)}
        case LaunchInstance():
            return {"node": action.slot.node, "case": action.case}
        case ProbeNode() | ForgetNode() | SetUpNode():
            return {"node": action.node}
        case TerminateInstance() | RebootInstance() | BackUpNode():
            return {"node": action.node, "instance": action.instance}
        case SetGate():
            return {"partition": action.partition, "open": action.open}
        case WritePartitions():
            return {"bytes": len(action.text)}
        case LookAtAlarms():
            return {"alarms": len(action.alarms)}


def event_fields(event: Event) -> dict[str, Any]:
    """The same for an event."""
    about = {"node": event.node, "job": event.job, "case": event.case}
    return {"event": event.kind, **{key: value for key, value in about.items() if value is not None}}
