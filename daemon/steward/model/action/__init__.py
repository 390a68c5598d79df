"""Actions as values: what should be done, under which key, and why. They have no `apply()`; workflows/apply does it."""

from steward.model.action.jobs import (
    AllowRequeue,
    AnswerAsk,
    CancelReplica,
    CollectStacks,
    CommentJob,
    DelayTasks,
    ExtendLimit,
    LetGo,
    NudgeJob,
    RequeueJob,
    ResizeRun,
    SetNice,
    SignalJob,
    SubmitReplica,
)
from steward.model.action.nodes import (
    BackUpNode,
    CheckNow,
    DownNode,
    DrainNode,
    ForgetNode,
    FreeNodes,
    KeepNodes,
    LaunchInstance,
    LookAtAlarms,
    MendNode,
    ProbeNode,
    RebootInstance,
    ReleaseNodes,
    ReserveNodes,
    ReturnNode,
    SetFeature,
    SetGate,
    SetUpNode,
    SubmitDeep,
    TerminateInstance,
    WritePartitions,
)
from steward.model.action.quota import (
    CancelJob,
    DropQos,
    DropTeam,
    MarkJob,
    MoveJob,
    SetNodeCount,
    SetQos,
    SetTeam,
)

Action = (
    DrainNode
    | DownNode
    | ReturnNode
    | RequeueJob
    | NudgeJob
    | AllowRequeue
    | CommentJob
    | ExtendLimit
    | SetNice
    | DelayTasks
    | KeepNodes
    | FreeNodes
    | LetGo
    | CollectStacks
    | AnswerAsk
    | CheckNow
    | ProbeNode
    | LaunchInstance
    | TerminateInstance
    | RebootInstance
    | MendNode
    | SetUpNode
    | SetGate
    | WritePartitions
    | ForgetNode
    | SetFeature
    | SignalJob
    | BackUpNode
    | LookAtAlarms
    | ReserveNodes
    | SubmitDeep
    | ReleaseNodes
    | SetQos
    | DropQos
    | DropTeam
    | SetTeam
    | MoveJob
    | MarkJob
    | SetNodeCount
    | CancelJob
    | ResizeRun
    | SubmitReplica
    | CancelReplica
)
