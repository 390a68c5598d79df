"""What one Slurm command does for many nodes: a command for each of a thousand would hold up the cycle for minutes."""

from collections.abc import Hashable, Sequence

from steward.model.action import (
    Action,
    AllowRequeue,
    AnswerAsk,
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
    MoveJob,
    NudgeJob,
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
    SignalJob,
    SubmitDeep,
    SubmitReplica,
    WritePartitions,
)
from steward.model.ids import NodeName

Batch = tuple[Action, ...]
"""One action, or several that are one call: drains (or downs, or returns) with the very same mark, or deletions."""


def batches(actions: Sequence[Action]) -> list[Batch]:
    """In order, but that an action goes with an earlier one of its kind.

    Never past one that promises something about a job (what comes before it is part of the promise) or is about a
    partition, nor past another one about the same node.
    """
    found: list[list[Action]] = []
    open_at: dict[Hashable, int] = {}
    touched: dict[NodeName, int] = {}
    for action in actions:
        kind, nodes = _kind(action), _nodes(action)
        at = open_at.get(kind, -1)
        if kind is None or at < max((touched.get(node, 0) for node in nodes or ()), default=0):
            at = len(found)
            found.append([])
        found[at].append(action)
        open_at[kind] = at
        touched |= dict.fromkeys(nodes or (), at)
        if nodes is None:
            open_at.clear()
    return [tuple(batch) for batch in found]


def nodes_of(batch: Batch) -> list[NodeName]:
    """The nodes of a batch whose actions are each about one."""
    return [node for action in batch for node in _nodes(action) or ()]


def _kind(action: Action) -> Hashable | None:
    """Actions of one kind are one call; None: each is its own."""
    match action:
        case DrainNode() | DownNode():
            return type(action), action.mark
        case ReturnNode():
            return type(action), action.mark, action.command
        case ForgetNode():
            return (type(action),)
        case _:
            return None


def _nodes(action: Action) -> frozenset[NodeName] | None:
    """The nodes that it is about; None: nothing that comes after it may be done before it."""
    match action:
        case RequeueJob() | NudgeJob() | AllowRequeue() | LetGo() | AnswerAsk() | SetGate() | WritePartitions():
            return None
        case ReleaseNodes() | FreeNodes() | SetNice() | ExtendLimit():
            return None
        case SetQos() | DropQos() | SetTeam() | DropTeam() | MoveJob() | MarkJob() | SetNodeCount() | CancelJob():
            return None
        case ResizeRun() | SubmitReplica() | CancelReplica():
            return None
        case SignalJob() | LookAtAlarms() | CommentJob() | CollectStacks():
            return frozenset()
        case ReserveNodes() | SubmitDeep() | KeepNodes():
            return action.nodes
        case CheckNow() | SetFeature():
            return action.nodes
        case LaunchInstance():
            return frozenset({action.slot.node})
        case _:
            return frozenset({action.node})
