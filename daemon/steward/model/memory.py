"""The head's intents and memory between cycles. The store keeps it, and `plan` turns it into the next one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from steward.model.case import Case, Mishap, Remedy
from steward.model.deep import Baseline, DeepRun
from steward.model.elastic import ElasticRun
from steward.model.group import ClientToken, Cluster, Group, Operation
from steward.model.health import Incarnation, Trial
from steward.model.ids import AskId, CaseId, InstanceId, JobId, Key, NodeName, UnixTime
from steward.model.ledger import Run
from steward.model.node import Size
from steward.model.partition import Gate
from steward.model.quota import ComputeQuota, QuotaJob, SchedulerConfig, Wrote
from steward.model.resume import Bystander, JobMemory
from steward.model.slot import SlotRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A shared cause of faults on many nodes: until the incident is over, no action on any of these nodes.

    `below_limit_since` is since when fewer nodes than the limit are away.

    In an incident of silent agents `fate_unknown` are those of the `nodes`, `known_gone` those that were reported as
    gone or taken away, and `heard_again_at` is when an agent of `fate_unknown` last came back.

    In an incident of nodes that Slurm itself took out `scouted_at` is when one of them was last examined in vain.
    """

    kind: str
    since: UnixTime
    nodes: frozenset[NodeName]
    text: str
    below_limit_since: UnixTime | None = None
    over: UnixTime | None = None
    fate_unknown: frozenset[NodeName] = frozenset()
    known_gone: frozenset[NodeName] = frozenset()
    heard_again_at: UnixTime | None = None
    scouted_at: UnixTime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A tripped breaker: Steward only reports for `scope` (`all`, `group:NAME`, `check:ID`).

    A person resets the breaker. It also resets when the one repair that may start `patience_s` seconds after `tripped`
    (Unix s) has ended well; `trial` is that repair.

    Scope `bringup:NAME`: no instance is requested for the group until a person resets the breaker, or until the
    instances are to be made by another recipe than `recipe` (`patience_s` is 0: no trial).
    """

    scope: str
    tripped: UnixTime
    text: str
    patience_s: float = 1800.0
    trial: CaseId | None = None
    recipe: str = ""

    @property
    def next_try(self) -> float | None:
        """Return when one repair may start as a trial (Unix s); None if only a person can reset the breaker."""
        return self.tripped + self.patience_s if self.patience_s else None


def _none() -> Mapping[Any, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stands:
    """A finding against a node, and since when it holds (Unix s): Steward acts only after a while."""

    check: str
    since: UnixTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A machine that was in full service, and what slurm.conf said that its node has when this slurmd registered."""

    instance: InstanceId
    size: Size = field(default_factory=Size)
    slurmd_started: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory:
    """What earlier plans saw of a node. Times are Unix seconds on the head's clock.

    Entries a day old are forgotten; a node with nothing to remember has no row.
    """

    away_since: UnixTime | None = None
    """Since when the node is away as planned (powered down, rebooting, in maintenance); kept as long as that is so."""
    back_at: UnixTime | None = None
    """When the node last came back from a planned absence."""
    lost_at: UnixTime | None = None
    """When the node was last found lost: its agent was gone, and a second source confirmed it."""
    renewed_at: UnixTime | None = None
    """When another boot of the node, or another machine, was last found behind its name."""
    shutdown_from: UnixTime | None = None
    """When its host began an orderly shutdown: the shutdown may have ended any job that ended on the node since."""
    reclaimed_from: UnixTime | None = None
    """When its provider first announced that it will reclaim the instance."""
    silent_since: UnixTime | None = None
    """Since when the node is lost and its slurmd does not answer."""
    leave_announced: UnixTime | None = None
    """When its agent left after announcing that it was told to end (slurmd may restart at the same time); None once the
    agent is back."""
    suspected: UnixTime | None = None
    """The beginning of the silence for which the node was last suspected."""
    settling: Stands | None = None
    left_at: UnixTime | None = None
    """When an instance without a slot was last ended under this name: its record in Slurm is to be deleted."""
    excluded_by: Mapping[int, UnixTime] = field(default_factory=_none)
    """User -> when a job of that user was counted that excludes the node by name."""
    failed_launches: Mapping[int, UnixTime] = field(default_factory=_none)
    """Job -> when Slurm could not start it on the node, without saying why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """An instance without a place, and since when it is listed (Unix s): Steward ends it only after a while.

    `orphan`: its slot or cluster is gone; `late`: another instance had its place when it came.
    """

    orphan: UnixTime | None = None
    late: UnixTime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskMemory:
    """A shim that waits, or did so lately, by the head's clock (Unix s)."""

    at: UnixTime
    """When the shim was first heard: the task that it asks about had failed by then."""
    judged: UnixTime | None = None
    """When the failure was first judged: Slurm could be read by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The nodes to which one of Steward's words was last written as their feature, and when (Unix s).

    `times_undone`: how many times in a row another program had replaced this word by another of Steward's.
    """

    nodes: frozenset[NodeName]
    at: UnixTime
    times_undone: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockChange:
    """The last time that the head's clock was set: when, by the new time, the head noticed, and by how much."""

    at: UnixTime
    by: float
    """Seconds that it was set back; negative if it was set forward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadMemory:
    """When the head last repeated each of its regular looks (approximate). Times are Unix seconds."""

    looked_at_marks: UnixTime | None = None
    """Last look at Steward's marks on nodes."""
    marks_steady_since: UnixTime = 0.0
    """Since when the head looks at the marks without a gap."""
    looked_at_ends: UnixTime | None = None
    """Last look into the end of a job; None while no job needs one."""
    shown: Mapping[str, Shown] = field(default_factory=_none)
    """Word -> the nodes that show the word as their feature."""
    clock_change: ClockChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Everything that the head remembers.

    `asked` maps an action's key to when the action was last emitted: the action is not repeated before its retry time.

    `noted` maps a note's key to when the note was last written: the note is not repeated every cycle.
    """

    cases: Mapping[CaseId, Case] = field(default_factory=_none)
    jobs: Mapping[JobId, JobMemory] = field(default_factory=_none)
    bystanders: Mapping[JobId, Bystander] = field(default_factory=_none)
    asks: Mapping[AskId, AskMemory] = field(default_factory=_none)
    ledger: Mapping[JobId, tuple[Run, ...]] = field(default_factory=_none)
    """The last runs of the remembered jobs, oldest first; the store's ledger keeps all runs."""
    incidents: Mapping[str, Incident] = field(default_factory=_none)
    breakers: Mapping[str, Breaker] = field(default_factory=_none)
    asked: Mapping[Key, UnixTime] = field(default_factory=_none)
    noted: Mapping[str, UnixTime] = field(default_factory=_none)
    history: Mapping[NodeName, tuple[UnixTime, ...]] = field(default_factory=_none)
    """Times of past repairs per node, for budgets."""
    agents: Mapping[NodeName, Incarnation] = field(default_factory=_none)
    """Every agent that ever connected, so that the head misses an agent that does not come back after its restart."""
    nodes: Mapping[NodeName, NodeMemory] = field(default_factory=_none)
    remedies: Mapping[str, tuple[Remedy, ...]] = field(default_factory=_none)
    """Identity of a piece of hardware -> rungs of the ladder that were begun for it, oldest first."""
    mishaps: Mapping[str, tuple[Mishap, ...]] = field(default_factory=_none)
    """Identity of a piece of hardware -> what happened to it, oldest first."""
    served: Mapping[NodeName, Served] = field(default_factory=_none)
    """The instance with which each node was last in full service, and its size in slurm.conf then: fewer devices later
    on the same instance, and with the same size, mean lost hardware."""
    breakers_reset: UnixTime = 0.0
    """When a person last reset the breakers: nodes that were out of service before do not count."""
    breaker_resets: Mapping[str, UnixTime] = field(default_factory=_none)
    """Scope -> when a person last reset its breaker."""
    trials: Mapping[str, Trial] = field(default_factory=_none)
    """`<check>@<version>` -> how a check that may change did, and whether it may take nodes out."""
    looked: UnixTime = 0.0
    """While a case is open: when the last plan with a fresh picture was made (about). Time without such does not
    count for deadlines."""
    head: HeadMemory = HeadMemory()
    cluster: Cluster | None = None
    """The API's cluster; None before its creation and after its end."""
    groups: Mapping[str, Group] = field(default_factory=_none)
    slots: Mapping[NodeName, SlotRecord] = field(default_factory=_none)
    gates: Mapping[str, Gate] = field(default_factory=_none)
    ended: Mapping[str, UnixTime] = field(default_factory=_none)
    """Id of a cluster that ended, or of a repair whose slot is gone -> when (Unix s): its last instances may still
    appear."""
    strays: Mapping[InstanceId, Stray] = field(default_factory=_none)
    operations: Mapping[str, Operation] = field(default_factory=_none)
    deeps: Mapping[str, DeepRun] = field(default_factory=_none)
    """Deep checks by id: open ones and recent ones."""
    baselines: Mapping[str, Baseline] = field(default_factory=_none)
    """`<check>:<profile>` -> the usual result of the check on such machines."""
    quotas: Mapping[str, ComputeQuota] = field(default_factory=_none)
    """Quotas by id."""
    scheduler: SchedulerConfig | None = None
    """How teams share; None: the defaults."""
    quota_jobs: Mapping[JobId, QuotaJob] = field(default_factory=_none)
    quota_writes: Mapping[str, Wrote] = field(default_factory=_none)
    """`<qos or account>/<field>` -> what Steward wrote there."""
    elastic: Mapping[JobId, ElasticRun] = field(default_factory=_none)
    """Elastic runs by their base's job id: open ones and recent ones."""
    client_tokens: Mapping[str, ClientToken] = field(default_factory=_none)
    paused: bool = False
    """Paused by a person, or by the head itself if another head works on its Slurm and no agent connects to it."""
    next_case: int = 1
