"""Actions as values: what should be done, under which key, and why. They have no `apply()`; workflows/apply does it."""

from dataclasses import dataclass

from steward.model.ask import Answer
from steward.model.health import Advice
from steward.model.ids import AskId, CaseId, InstanceId, JobId, Key, NodeName
from steward.model.instance import Slot
from steward.model.mark import Mark
from steward.model.setup import Lifecycle
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
    """Make a requeued job eligible in `delay_s`; `exclude` as in RequeueJob; releases Slurm's own hold."""

    job: JobId
    exclude: frozenset[NodeName] = frozenset()
    release: bool = False
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowRequeue(_Action):
    """Switch `Requeue=1` on for an opted-in job that was submitted with `--no-requeue`."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentJob(_Action):
    """Write the job's admin comment: the short form of what was done for it, for those who use sacct."""

    job: JobId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendLimit(_Action):
    """Have a running job's time limit be `limit_s` seconds, never shorter than it is and never beyond what its
    partition allows. Absolute, so that doing it twice gives nothing twice; Slurm counts whole minutes."""

    job: JobId
    limit_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNice(_Action):
    """Set a job's nice value: below 0 it goes before others, by as much as the number says."""

    job: JobId
    nice: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepNodes(_Action):
    """Have Slurm start no new job on exactly these nodes for at most `seconds`, in a reservation of ours that no job is
    ever in. Nodes that the reservation had before and are not named are everybody's again."""

    name: str
    nodes: frozenset[NodeName]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeNodes(_Action):
    """End such a reservation."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectStacks(_Action):
    """Have the agents of `nodes` keep what a job's tasks are doing: state of each process, and its own stacks where
    the job named a signal for that. What they find is kept under `name`."""

    job: JobId
    nodes: frozenset[NodeName]
    name: str
    signal: str = ""


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
    case: CaseId | None = None
    """None: for a slot of an API group, not for a repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateInstance(_Action):
    instance: InstanceId
    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootInstance(_Action):
    instance: InstanceId
    node: NodeName
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MendNode(_Action):
    """Have the node's agent carry out a light rung, once per `token` and boot: RESTART_SERVICE of the unit `target`, or
    RESET_GPU of the GPU with that UUID or PCI address. The agent refuses a unit that its own settings do not allow, and
    a GPU that a process holds."""

    node: NodeName
    rung: Advice
    target: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUpNode(_Action):
    """Have the node's agent run the group's lifecycle scripts, once per `token` and boot.

    `resource_config` is the JSON text for /opt/ml/config/resource_config.json, `provisioning` the one for
    provisioning_parameters.json (empty: the source's own).
    """

    node: NodeName
    token: str
    lifecycle: Lifecycle
    timeout_s: float
    resource_config: str
    provisioning: str = ""
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGate(_Action):
    """Open (UP) or close (DOWN) a partition that is ours. Never cancels a job."""

    partition: str
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePartitions(_Action):
    """Our own include file: partitions that exist because of API groups. `text` is the whole file; validated, the last
    good one is put back when Slurm refuses it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetNode(_Action):
    """Delete the record of a dynamic node from Slurm after its instance is gone. A static node's is left."""

    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFeature(_Action):
    """Have nodes bear `prefix` + `word` as their only feature that begins with `prefix`; all others stay."""

    nodes: frozenset[NodeName]
    prefix: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalJob(_Action):
    """Send a signal to all steps and the batch script of a job (its checkpoint signal)."""

    job: JobId
    signal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackUpNode(_Action):
    """Run the site's backup (or restore) command for a node; once done for a key it is not run again."""

    node: NodeName
    instance: InstanceId
    restore: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtAlarms(_Action):
    """Ask the site's alarm command about these names; a firing one is the action's failure, with its name."""

    alarms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveNodes(_Action):
    """Have Slurm keep nodes for deep check `name` (its reservation, partition and job) for at most `seconds`."""

    name: str
    nodes: frozenset[NodeName]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitDeep(_Action):
    """Submit the job of a deep check: `argv` once on each of its nodes. Output goes to `output` on the first one."""

    name: str
    nodes: frozenset[NodeName]
    argv: tuple[str, ...]
    seconds: float
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseNodes(_Action):
    """Cancel the job of a deep check, if one is there, and give its nodes back to everybody."""

    name: str


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
)
