"""Actions on nodes: in Slurm, through their agents, and by providers and the site's own commands for machines."""

from dataclasses import dataclass

from steward.model.health import Advice
from steward.model.ids import CaseId, InstanceId, NodeName
from steward.model.instance import Slot
from steward.model.mark import Mark
from steward.model.setup import Lifecycle
from steward.model.why import BaseAction


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainNode(BaseAction):
    """Take a node out for new jobs, with our mark as reason."""

    node: NodeName
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class DownNode(BaseAction):
    """Drain, then down: its jobs are requeued or lose the node. Only with our mark on it."""

    node: NodeName
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnNode(BaseAction):
    """Give a node back to Slurm; refused when its reason is neither `mark` nor the admin's `command` any more."""

    node: NodeName
    mark: Mark
    command: str = ""
    """`Action:Replace` or `Action:Reboot` where an admin asked for the repair: his reason was left in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckNow(BaseAction):
    """Ask agents for fresh results within `budget_s`."""

    nodes: frozenset[NodeName]
    budget_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeNode(BaseAction):
    """Second witness: look whether a live slurmd is behind the node's port; the agents of `peers` look, too."""

    node: NodeName
    peers: frozenset[NodeName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class MendNode(BaseAction):
    """Have the node's agent carry out a light rung, once per `token` and boot: RESTART_SERVICE of the unit `target`, or
    RESET_GPU of the GPU with that UUID or PCI address. The agent refuses a unit that its own settings do not allow, and
    a GPU that a process holds."""

    node: NodeName
    rung: Advice
    target: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUpNode(BaseAction):
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
class ForgetNode(BaseAction):
    """Delete the record of a dynamic node from Slurm after its instance is gone. A static node's is left."""

    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFeature(BaseAction):
    """Have nodes bear `prefix` + `word` as their only feature that begins with `prefix`; all others stay."""

    nodes: frozenset[NodeName]
    prefix: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchInstance(BaseAction):
    """Ask the provider for a new instance for a slot; `token` makes it idempotent."""

    slot: Slot
    token: str
    case: CaseId | None = None
    """None: for a slot of an API group, not for a repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateInstance(BaseAction):
    instance: InstanceId
    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootInstance(BaseAction):
    instance: InstanceId
    node: NodeName
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackUpNode(BaseAction):
    """Run the site's backup (or restore) command for a node; once done for a key it is not run again."""

    node: NodeName
    instance: InstanceId
    restore: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtAlarms(BaseAction):
    """Ask the site's alarm command about these names; a firing one is the action's failure, with its name."""

    alarms: tuple[str, ...]


# Where jobs may start: partitions that are ours, and reservations of ours.


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepNodes(BaseAction):
    """Have Slurm start no new job on exactly these nodes for at most `seconds`, in a reservation of ours that no job is
    ever in. Nodes that the reservation had before and are not named are everybody's again."""

    name: str
    nodes: frozenset[NodeName]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeNodes(BaseAction):
    """End such a reservation."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGate(BaseAction):
    """Open (UP) or close (DOWN) a partition that is ours. Never cancels a job."""

    partition: str
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePartitions(BaseAction):
    """Our own include file: partitions that exist because of API groups. `text` is the whole file; validated, the last
    good one is put back when Slurm refuses it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveNodes(BaseAction):
    """Have Slurm keep nodes for deep check `name` (its reservation, partition and job) for at most `seconds`."""

    name: str
    nodes: frozenset[NodeName]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitDeep(BaseAction):
    """Submit the job of a deep check: `argv` once on each of its nodes. Output goes to `output` on the first one."""

    name: str
    nodes: frozenset[NodeName]
    argv: tuple[str, ...]
    seconds: float
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseNodes(BaseAction):
    """Cancel the job of a deep check, if one is there, and give its nodes back to everybody."""

    name: str
