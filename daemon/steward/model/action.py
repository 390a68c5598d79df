"""Actions as values: what should be done, under which key, and why. `workflows/effects` has a row for each class."""

from dataclasses import dataclass

from steward.model.ask import Answer
from steward.model.health import Advice
from steward.model.ids import AskId, CaseId, InstanceId, JobId, Key, NodeName
from steward.model.instance import Slot
from steward.model.mark import Mark
from steward.model.setup import Lifecycle
from steward.model.why import Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What should be done once: a second action with the same `key` is the same wish."""

    key: Key
    why: Why


# On nodes: in Slurm, through their agents, by providers and by the site's own commands for machines.


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainNode(Action):
    """Take a node out for new jobs, with our mark as reason."""

    node: NodeName
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class DownNode(Action):
    """Drain, then down: its jobs are requeued or lose the node. Only with our mark on it."""

    node: NodeName
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnNode(Action):
    """Give a node back to Slurm; refused when its reason is neither `mark` nor the admin's `command` any more."""

    node: NodeName
    mark: Mark
    command: str = ""
    """`Action:Replace` or `Action:Reboot` where an admin asked for the repair: his reason was left in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckNow(Action):
    """Ask agents for fresh results within `budget_s`."""

    nodes: frozenset[NodeName]
    budget_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeNode(Action):
    """Second witness: look whether a live slurmd is behind the node's port; the agents of `peers` look, too."""

    node: NodeName
    peers: frozenset[NodeName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class MendNode(Action):
    """Have the node's agent carry out a light rung, once per `token` and boot: RESTART_SERVICE of the unit `target`, or
    RESET_GPU of the GPU with that UUID or PCI address. The agent refuses a unit that its own settings do not allow, and
    a GPU that a process holds."""

    node: NodeName
    rung: Advice
    target: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUpNode(Action):
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
class ForgetNode(Action):
    """Delete the record of a dynamic node from Slurm after its instance is gone. A static node's is left."""

    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFeature(Action):
    """Have nodes bear `prefix` + `word` as their only feature that begins with `prefix`; all others stay."""

    nodes: frozenset[NodeName]
    prefix: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchInstance(Action):
    """Ask the provider for a new instance for a slot; `token` makes it idempotent."""

    slot: Slot
    token: str
    case: CaseId | None = None
    """None: for a slot of an API group, not for a repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateInstance(Action):
    instance: InstanceId
    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootInstance(Action):
    instance: InstanceId
    node: NodeName
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackUpNode(Action):
    """Run the site's backup (or restore) command for a node; once done for a key it is not run again."""

    node: NodeName
    instance: InstanceId
    restore: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtAlarms(Action):
    """Ask the site's alarm command about these names; a firing one is the action's failure, with its name."""

    alarms: tuple[str, ...]


# Where jobs may start: partitions that are ours, and reservations of ours.


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepNodes(Action):
    """Have Slurm start no new job on exactly these nodes for at most `seconds`, in a reservation of ours that no job is
    ever in. Nodes that the reservation had before and are not named are everybody's again."""

    name: str
    nodes: frozenset[NodeName]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeNodes(Action):
    """End such a reservation."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGate(Action):
    """Open (UP) or close (DOWN) a partition that is ours. Never cancels a job."""

    partition: str
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePartitions(Action):
    """Our own include file: partitions that exist because of API groups. `text` is the whole file; validated, the last
    good one is put back when Slurm refuses it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveNodes(Action):
    """Have Slurm keep nodes for deep check `name` (its reservation, partition and job) for at most `seconds`."""

    name: str
    nodes: frozenset[NodeName]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitDeep(Action):
    """Submit the job of a deep check: `argv` once on each of its nodes. Output goes to `output` on the first one."""

    name: str
    nodes: frozenset[NodeName]
    argv: tuple[str, ...]
    seconds: float
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseNodes(Action):
    """Cancel the job of a deep check, if one is there, and give its nodes back to everybody."""

    name: str


# On jobs and elastic runs, and answers to shims that wait for one about a job.


@dataclass(frozen=True, slots=True, kw_only=True)
class RequeueJob(Action):
    """Requeue: `exclude` is the job's whole exclude list after this (the user's own and the culprits). `restart` is the
    restart count of the run that it is about: it ends no later one. `told_at`: a run that ended well is put back, too,
    unless it ended before it was told to make room (Unix s); None: such a run is over."""

    job: JobId
    restart: int = 0
    exclude: frozenset[NodeName] = frozenset()
    told_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NudgeJob(Action):
    """Make a requeued job eligible in `delay_s`; `release` lifts Slurm's own hold; the rest as in RequeueJob."""

    job: JobId
    restart: int = 0
    exclude: frozenset[NodeName] = frozenset()
    release: bool = False
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowRequeue(Action):
    """Switch `Requeue=1` on for an opted-in job that was submitted with `--no-requeue`."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentJob(Action):
    """Write the job's admin comment: the short form of what was done for it, for those who use sacct."""

    job: JobId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendLimit(Action):
    """Have a running job's time limit be `limit_s` seconds, never shorter than it is and never beyond what its
    partition allows. Absolute, so that doing it twice gives nothing twice; Slurm counts whole minutes."""

    job: JobId
    limit_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayTasks(Action):
    """Let the waiting tasks of an array begin no sooner than in `delay_s`, so that `job`, one of its tasks, has its
    place back before them; 0: they may begin now."""

    job: JobId
    array: JobId
    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNice(Action):
    """Set a job's nice value: below 0 it goes before others, by as much as the number says."""

    job: JobId
    nice: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectStacks(Action):
    """Have the agents of `nodes` keep what a job's tasks are doing: state of each process, and its own stacks where
    the job named a signal for that. What they find is kept under `name`."""

    job: JobId
    nodes: frozenset[NodeName]
    name: str
    signal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo(Action):
    """Have the agents of `nodes` end the slurmstepds of a job's lost run that have no task left.

    `restart` is that run's restart count, `before` (Unix s) when it was over: what began later is of a new run.
    """

    job: JobId
    nodes: frozenset[NodeName]
    restart: int
    before: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAsk(Action):
    """Tell a waiting shim what to do. `exclude` goes with RETRY."""

    ask: AskId
    job: JobId
    node: NodeName
    answer: Answer
    exclude: frozenset[NodeName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalJob(Action):
    """Send a signal to all steps and the batch script of a job (its checkpoint signal)."""

    job: JobId
    signal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeRun(Action):
    """Have a run's coordinator, which the agent of `node` speaks for, go to `generation` with exactly these members.
    All ranks save first, for `grace_s` seconds at most; 0: at once. `patient`: nobody is stopped before the save."""

    run: JobId
    node: NodeName
    generation: int
    members: frozenset[NodeName]
    grace_s: int
    patient: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitReplica(Action):
    """Have the agent of `node` submit a replica job of the run as the run's user, once per token. `minutes` 0: as long
    as the base's script says; `qos` empty: as it says, too."""

    run: JobId
    node: NodeName
    token: str
    nodes: int
    grace_s: int
    minutes: int = 0
    qos: str = ""
    exclude: frozenset[NodeName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReplica(Action):
    """End a replica job of the run `run`. Stale when it is over, Permanent for a job that is none of the run."""

    run: JobId
    job: JobId


# For quotas: limits and marks in Slurm, and places in its queue.


Caps = tuple[tuple[str, int | None], ...]
"""(TRES, limit), sorted; None: no limit (Slurm's -1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQos(Action):
    """Have a QOS of ours (`stw-...`) exist with these values; what is None or not named stays as it is.

    `caps` are GrpTRES. `preempts` are names of QOS, `grace_s` seconds. It is made where it is missing, with our mark as
    its description.
    """

    qos: str
    caps: Caps = ()
    priority: int | None = None
    preempts: frozenset[str] | None = None
    preempt_mode: str | None = None
    grace_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropQos(Action):
    """Delete a QOS of ours. Stale while a job has it or an association still names it."""

    qos: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTeam(Action):
    """Have an account's own association allow the QOS `add` and no longer allow `drop` (all others stay), with these
    limits (GrpTRES) and this default QOS (None: left; empty: none). `keep` is a QOS of the site's that it allows, too,
    where it would be left with none: Slurm takes no job of such an account."""

    account: str
    add: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    caps: Caps = ()
    default_qos: str | None = None
    keep: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTeam(Action):
    """Delete an account that Steward made and that nobody is in any more. Stale where it is not ours, or not empty."""

    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveJob(Action):
    """Have a waiting job be of these QOS, tried in this order (more than one: Slurm 24.11 and newer). Stale when it
    does not wait any more."""

    job: JobId
    qos: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkJob(Action):
    """Give a job this priority, above what preemption may take; None: hand its priority back to Slurm."""

    job: JobId
    priority: int | None
    restart: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNodeCount(Action):
    """Have a waiting job ask for so many nodes, within what its user allowed."""

    job: JobId
    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelJob(Action):
    """End a run of a job that may not be requeued and has to give way. Stale when it is in another run."""

    job: JobId
    restart: int = 0
