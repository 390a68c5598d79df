"""What an action, a line of log or an event is about: nodes and jobs, and the fields that people search for."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, assert_never

from steward.model.action import (
    Action,
    AllowRequeue,
    AnswerAsk,
    BackUpNode,
    CancelJob,
    CancelReplica,
    CheckNow,
    CollectStacks,
    CommentJob,
    DownNode,
    DrainNode,
    DropQos,
    DropTeam,
    ExtendLimit,
    ForgetNode,
    FreeNodes,
    KeepNodes,
    LaunchInstance,
    LetGo,
    LookAtAlarms,
    MarkJob,
    MendNode,
    MoveJob,
    NudgeJob,
    ProbeNode,
    RebootInstance,
    ReleaseNodes,
    RequeueJob,
    ReserveNodes,
    ResizeRun,
    ReturnNode,
    SetFeature,
    SetGate,
    SetNice,
    SetNodeCount,
    SetQos,
    SetTeam,
    SetUpNode,
    SignalJob,
    SubmitDeep,
    SubmitReplica,
    TerminateInstance,
    WritePartitions,
)
from steward.model.events import Event
from steward.model.ids import JobId, NodeName
from steward.model.observed import Observed
from steward.model.subject import Subject

OneNode = DrainNode | ReturnNode | ForgetNode | MendNode | SetUpNode
OneMachine = LaunchInstance | TerminateInstance | RebootInstance | BackUpNode
Harmless = CheckNow | ProbeNode | LookAtAlarms | SetFeature | SetGate | WritePartitions | ReleaseNodes | FreeNodes
Limits = SetQos | DropQos | SetTeam | DropTeam
Elsewhere = OneNode | OneMachine | Harmless | Limits

_NAMED = ("node", "job", "run", "instance", "partition", "open")


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


def subject_of(actions: Iterable[Action], seen: Observed) -> Subject:
    """The records that must be as they were planned on when these are done: nodes, jobs, and where the jobs run."""
    scene = _Scene(seen)
    found = [_checked(action, scene) for action in actions]
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
    scene = _Scene(seen)
    nodes, jobs = set[NodeName](), set[JobId]()
    for action in actions:
        if isinstance(action, WritePartitions):
            return None
        one = _touched(action, scene)
        nodes |= one.nodes
        jobs |= one.jobs
    return Subject(nodes=frozenset(nodes), jobs=frozenset(jobs))


class _Scene:
    """What a picture says of where jobs run."""

    def __init__(self, seen: Observed) -> None:
        self.seen = seen

    def job(self, id: JobId) -> Subject:
        """With the nodes that it has."""
        job = self.seen.jobs.get(id)
        return Subject(nodes=job.nodes if job is not None else frozenset(), jobs=frozenset({id}))

    def down(self, node: NodeName) -> Subject:
        """With the jobs that lose it."""
        return Subject(nodes=frozenset({node}), jobs=frozenset(self._on.get(node, ())))

    def reserved(self, name: str) -> Subject:
        there = self.seen.reservations.get(name)
        return Subject(nodes=there.nodes if there is not None else frozenset())

    @cached_property
    def _on(self) -> Mapping[NodeName, list[JobId]]:
        found: defaultdict[NodeName, list[JobId]] = defaultdict(list)
        for job in self.seen.jobs.values():
            for node in job.nodes if job.is_active else ():
                found[node].append(job.id)
        return found


def _checked(action: Action, scene: _Scene) -> Subject:
    match action:
        case DownNode():
            return scene.down(action.node)
        case RequeueJob() | CancelJob() | SignalJob() | CollectStacks() | ExtendLimit():
            return scene.job(action.job)
        case AnswerAsk():
            return scene.job(action.job) | Subject(nodes=action.exclude & scene.seen.nodes.keys())
        case NudgeJob() | AllowRequeue() | CommentJob() | SetNice() | MoveJob() | MarkJob() | SetNodeCount():
            return Subject(jobs=frozenset({action.job}))
        case ResizeRun() | SubmitReplica():
            return Subject(jobs=frozenset({action.run}))
        case CancelReplica():
            return scene.job(action.job)
        case LetGo():
            return Subject(nodes=action.nodes, jobs=frozenset({action.job}))
        case ReserveNodes() | SubmitDeep() | KeepNodes():
            return Subject(nodes=action.nodes)
        case _:
            return _machine(action)


def _machine(action: Elsewhere) -> Subject:
    """What is done to one node. The others look only, or end nothing of anybody: they need no fresh record."""
    match action:
        case LaunchInstance():
            return Subject(nodes=frozenset({action.slot.node}))
        case DrainNode() | ReturnNode() | ForgetNode() | MendNode() | SetUpNode():
            return Subject(nodes=frozenset({action.node}))
        case TerminateInstance() | RebootInstance() | BackUpNode():
            return Subject(nodes=frozenset({action.node}))
        case CheckNow() | ProbeNode() | LookAtAlarms() | SetFeature() | SetGate() | WritePartitions():
            return Subject()
        case ReleaseNodes() | FreeNodes() | SetQos() | DropQos() | SetTeam() | DropTeam():
            return Subject()
        case _:
            assert_never(action)


def _touched(action: Action, scene: _Scene) -> Subject:
    match action:
        case ReleaseNodes() | FreeNodes():
            return scene.reserved(action.name)
        case KeepNodes():
            return scene.reserved(action.name) | Subject(nodes=action.nodes)
        case SetFeature():
            return Subject(nodes=action.nodes)
        case _:
            return _checked(action, scene)


def event_fields(event: Event) -> dict[str, Any]:
    """The same for an event."""
    about = {"node": event.node, "job": event.job, "case": event.case}
    return {"event": event.kind, **{key: value for key, value in about.items() if value is not None}}
