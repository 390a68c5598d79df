"""Actions as values: what should be done, under which key, and why. `workflows/effects` has a row for each class.

Actions that agents carry out are in `agent_action`.
"""

from dataclasses import dataclass

from steward.model.agent_action import Action
from steward.model.ask import Answer
from steward.model.ids import AskId, CaseId, InstanceId, JobId, NodeName
from steward.model.instance import Slot
from steward.model.mark import Mark

# On nodes: in Slurm, through their agents, by providers and by the site's own commands for machines.


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainNode(Action):
    """Drain a node, with Steward's mark as reason.

    `was_marked`: the node bore the mark before, and Slurm cleared it.
    """

    node: NodeName
    mark: Mark
    was_marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DownNode(Action):
    """Drain a node, then set it DOWN: its jobs are requeued or lose the node. Only with Steward's mark on the node."""

    node: NodeName
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnNode(Action):
    """Give a node back to Slurm; refused if its reason is neither `mark` nor the admin's `command` any more."""

    node: NodeName
    mark: Mark
    command: str = ""
    """`Action:Replace` or `Action:Reboot` if an admin asked for the repair: that reason was left in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckNow(Action):
    """Ask agents for fresh results within `budget_s`."""

    nodes: frozenset[NodeName]
    budget_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeNode(Action):
    """Ask the second witness whether a live slurmd is behind the node's port; the agents of `peers` probe it, too."""

    node: NodeName
    peers: frozenset[NodeName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetNode(Action):
    """Delete the record of a dynamic node from Slurm after its instance is gone. A static node's record stays."""

    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFeature(Action):
    """Give nodes `prefix` + `word` as their only feature that begins with `prefix`; all other features stay."""

    nodes: frozenset[NodeName]
    prefix: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchInstance(Action):
    """Ask the provider for a new instance for a slot; `token` makes it idempotent."""

    slot: Slot
    token: str
    case: CaseId | None = None
    """The repair that needs the instance; None: for a slot of an API group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateInstance(Action):
    """Have the provider end a machine."""

    instance: InstanceId
    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootInstance(Action):
    """Have the provider reboot a machine; `token` makes it reboot once."""

    instance: InstanceId
    node: NodeName
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackUpNode(Action):
    """Run the site's backup (or restore) command for a node, successfully at most once for each key."""

    node: NodeName
    instance: InstanceId
    restore: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtAlarms(Action):
    """Ask the site's alarm command about these alarms; the action fails, with the alarm's name, if one fires."""

    alarms: tuple[str, ...]


# Where jobs may start: Steward's own partitions and reservations.


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepNodes(Action):
    """Have Slurm start no new job on exactly these nodes for at most `seconds`.

    Steward's reservation `name`, in which no job ever runs, then holds exactly these nodes; all other nodes that it
    held are free again.
    """

    name: str
    nodes: frozenset[NodeName]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeNodes(Action):
    """End a reservation of `KeepNodes`."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGate(Action):
    """Open (UP) or close (DOWN) a partition of Steward's. Never cancels a job."""

    partition: str
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePartitions(Action):
    """Write Steward's include file for slurm.conf: the partitions of API groups.

    `text` is the whole file. If Slurm refuses it, the last good file is restored.
    """

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveNodes(Action):
    """Have Slurm keep nodes for deep check `name` (its reservation, partition and job) for at most `seconds`."""

    name: str
    nodes: frozenset[NodeName]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitDeep(Action):
    """Submit the job of a deep check, which runs `argv` once on each node and writes to `output` on the first node."""

    name: str
    nodes: frozenset[NodeName]
    argv: tuple[str, ...]
    seconds: float
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseNodes(Action):
    """Cancel the job of a deep check, if there is one, and free its nodes for all jobs."""

    name: str


# On jobs and elastic runs, and answers to waiting shims.


@dataclass(frozen=True, slots=True, kw_only=True)
class RequeueJob(Action):
    """Requeue a job.

    `exclude` is the job's whole new exclude list (the user's own and the culprits). `restart` is the restart count of
    the run to requeue: no later run is ended. `told_at` (Unix s) is when the job was told to make room:
    a run that completed at that time or later is requeued, too. None: a completed run is never requeued.
    """

    job: JobId
    restart: int = 0
    exclude: frozenset[NodeName] = frozenset()
    told_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NudgeJob(Action):
    """Make a requeued job eligible in `delay_s`; `release` lifts Slurm's own hold; the rest is as in RequeueJob."""

    job: JobId
    restart: int = 0
    exclude: frozenset[NodeName] = frozenset()
    release: bool = False
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowRequeue(Action):
    """Set `Requeue=1` on an opted-in job that was submitted with `--no-requeue`."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentJob(Action):
    """Write a short form of what Steward did for a job into the job's admin comment, for users of sacct."""

    job: JobId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendLimit(Action):
    """Raise a running job's time limit to `limit_s` seconds, as far as its partition allows; never shorten it.

    The limit is absolute, so that a second try adds no time; Slurm counts whole minutes.
    """

    job: JobId
    limit_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayTasks(Action):
    """Delay the pending tasks of an array by `delay_s`, so that the array's task `job` gets its nodes back first.

    `delay_s` 0: the tasks may begin now.
    """

    job: JobId
    array: JobId
    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNice(Action):
    """Set a job's nice value; a value below 0 raises the job's priority by that number."""

    job: JobId
    nice: int


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
class CancelReplica(Action):
    """End a replica job of the run `run`. Stale if the job is over, Permanent if the job is not of that run."""

    run: JobId
    job: JobId


# For quotas: limits and marks in Slurm, and places in its queue.


Caps = tuple[tuple[str, int | None], ...]
"""(TRES, limit), sorted; None: no limit (Slurm's -1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQos(Action):
    """Make or change a QOS of Steward's (`stw-...`); a value that is None or not named stays as it is.

    `caps` are GrpTRES. `preempts` are names of QOS; `grace_s` is in seconds. A new QOS has Steward's mark as its
    description.
    """

    qos: str
    caps: Caps = ()
    priority: int | None = None
    preempts: frozenset[str] | None = None
    preempt_mode: str | None = None
    grace_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropQos(Action):
    """Delete a QOS of Steward's. Stale while a job has the QOS or an association still names it."""

    qos: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTeam(Action):
    """Set the limits, the allowed QOS and the default QOS of an account's own association.

    The association allows the QOS `add` and no longer allows `drop`; all other QOS stay. `caps` are GrpTRES;
    `default_qos` None leaves the default QOS, empty removes it. `keep` is a QOS of the site that is also allowed
    if the account would have no QOS left, because Slurm takes no job of such an account.
    """

    account: str
    add: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    caps: Caps = ()
    default_qos: str | None = None
    keep: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTeam(Action):
    """Delete an account that Steward made. Stale if Steward did not make the account, or if it still has users."""

    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveJob(Action):
    """Give a pending job these QOS, tried in this order (more than one: only with `Capabilities.qos_lists`).

    Stale if the job is no longer pending.
    """

    job: JobId
    qos: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkJob(Action):
    """Give a job this priority, above the range that preemption may take; None: let Slurm compute it again."""

    job: JobId
    priority: int | None
    restart: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNodeCount(Action):
    """Set how many nodes a pending job asks for, within what its user allowed."""

    job: JobId
    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelJob(Action):
    """Evict a job that may not be requeued, by cancelling it. Stale if the job is in another run than `restart`."""

    job: JobId
    restart: int = 0
