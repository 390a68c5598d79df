"""Actions as values: what should be done, under which key, and why. They have no `apply()`; workflows/apply does it."""

from dataclasses import dataclass

from steward.model.ask import Answer
from steward.model.ids import AskId, CaseId, InstanceId, JobId, Key, NodeName
from steward.model.instance import Slot
from steward.model.mark import Mark
from steward.model.why import Why


@dataclass(frozen=True, slots=True, kw_only=True)
class _Action:
    key: Key
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainNode(_Action):
    """Take a node out for new jobs, with our mark as reason."""

    node: NodeName
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class DownNode(_Action):
    """Drain, then down: its jobs are requeued or lose the node. Only with our mark on it."""

    node: NodeName
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnNode(_Action):
    """Give a node back to Slurm; refused when its reason is neither `mark` nor the admin's `command` any more."""

    node: NodeName
    mark: Mark
    command: str = ""
    """`Action:Replace` or `Action:Reboot` where an admin asked for the repair: his reason was left in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequeueJob(_Action):
    """Requeue: `exclude` is the job's whole exclude list after this (the user's own and the culprits)."""

    job: JobId
    exclude: frozenset[NodeName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class NudgeJob(_Action):
    """Make a requeued job eligible now (`starttime=now`); `exclude` as in RequeueJob; releases Slurm's own hold."""

    job: JobId
    exclude: frozenset[NodeName] = frozenset()
    release: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowRequeue(_Action):
    """Switch `Requeue=1` on for an opted-in job that was submitted with `--no-requeue`."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo(_Action):
    """Have the agents of `nodes` end the slurmstepds of a job's lost run that have no task left.

    `restart` is that run's restart count, `before` (Unix s) when it was over: what began later is of a new run.
    """

    job: JobId
    nodes: frozenset[NodeName]
    restart: int
    before: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAsk(_Action):
    """Tell a waiting shim what to do. `exclude` goes with RETRY."""

    ask: AskId
    job: JobId
    node: NodeName
    answer: Answer
    exclude: frozenset[NodeName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckNow(_Action):
    """Ask agents for fresh results within `budget_s`."""

    nodes: frozenset[NodeName]
    budget_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeNode(_Action):
    """Second witness: look whether a live slurmd is behind the node's port."""

    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchInstance(_Action):
    """Ask the provider for a new instance for a slot; `token` makes it idempotent."""

    slot: Slot
    token: str
    case: CaseId


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateInstance(_Action):
    instance: InstanceId
    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootInstance(_Action):
    instance: InstanceId
    node: NodeName
    token: str


Action = (
    DrainNode
    | DownNode
    | ReturnNode
    | RequeueJob
    | NudgeJob
    | AllowRequeue
    | LetGo
    | AnswerAsk
    | CheckNow
    | ProbeNode
    | LaunchInstance
    | TerminateInstance
    | RebootInstance
)
