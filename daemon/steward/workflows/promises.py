"""An answer tells a shim that its job was requeued or its bad nodes taken out: it must not go out when that failed."""

from steward.model.action import (
    Action,
    AllowRequeue,
    AnswerAsk,
    CancelJob,
    CancelReplica,
    CommentJob,
    DownNode,
    DrainNode,
    DropQos,
    DropTeam,
    ExtendLimit,
    ForgetNode,
    FreeNodes,
    KeepNodes,
    MarkJob,
    MoveJob,
    NudgeJob,
    ReleaseNodes,
    RequeueJob,
    ReserveNodes,
    ReturnNode,
    SetFeature,
    SetGate,
    SetNice,
    SetNodeCount,
    SetQos,
    SetTeam,
    SignalJob,
    SubmitDeep,
    WritePartitions,
)
from steward.model.ask import Answer
from steward.model.ids import JobId, NodeName
from steward.model.outcome import STALE
from steward.workflows.batch import Batch

JobAction = RequeueJob | NudgeJob | AllowRequeue | SignalJob | CommentJob | ExtendLimit | SetNice
KeepAction = KeepNodes | FreeNodes
DeepAction = ReserveNodes | SubmitDeep | ReleaseNodes
NodeAction = DrainNode | DownNode | ReturnNode | ForgetNode | SetFeature
QueueAction = MoveJob | MarkJob | SetNodeCount | CancelJob | CancelReplica
AccountAction = SetQos | DropQos | SetTeam | DropTeam
SlurmAction = NodeAction | SetGate | WritePartitions | DeepAction | KeepAction | JobAction | QueueAction
_TOO_SLOW_S = 5.0


class Promises:
    """Which promises of this plan were kept so far. What is already as wished (`stale`) counts as kept."""

    def __init__(self) -> None:
        self._jobs: set[JobId] = set()
        self._nodes: set[NodeName] = set()
        self._slurm_hangs = self._accounting_hangs = False

    def refusal(self, action: Action) -> str:
        """Why `action` must not be tried now; empty when it may."""
        if self._slurm_hangs and isinstance(action, SlurmAction):
            return "the Slurm command before it did not come back"
        if self._accounting_hangs and isinstance(action, AccountAction):
            return "the change of limits before it did not come back"
        if isinstance(action, AnswerAsk) and action.answer is not Answer.STOP and self._is_broken(action):
            return "what the answer promises could not be done"
        return ""

    def _is_broken(self, answer: AnswerAsk) -> bool:
        return answer.job in self._jobs or bool(answer.exclude & self._nodes)

    def note(self, batch: Batch, outcome: str, took_s: float) -> None:
        if outcome in ("done", STALE):
            return
        for action in batch:
            if isinstance(action, RequeueJob | NudgeJob | AllowRequeue):
                self._jobs.add(action.job)
            elif isinstance(action, DrainNode | DownNode):
                self._nodes.add(action.node)
            if isinstance(action, SlurmAction) and took_s > _TOO_SLOW_S:
                self._slurm_hangs = True
            if isinstance(action, AccountAction) and took_s > _TOO_SLOW_S:
                self._accounting_hangs = True
