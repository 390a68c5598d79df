"""The head's intents and memory between cycles; the store keeps it, `plan` turns it into the next one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from steward.model.case import Case, Mishap, Remedy
from steward.model.deep import Baseline, DeepRun
from steward.model.elastic import ElasticRun
from steward.model.group import ClientToken, Cluster, Group, Operation
from steward.model.health import Incarnation, Trial
from steward.model.ids import AskId, CaseId, InstanceId, JobId, Key, NodeName
from steward.model.ledger import Run
from steward.model.partition import Gate
from steward.model.quota import ComputeQuota, QuotaJob, SchedulerConfig, Wrote
from steward.model.resume import Bystander, JobMemory
from steward.model.slot import SlotRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A shared cause seen on many nodes at once: one record, no action on any node, until it is over.

    `easing` is since when fewer nodes than the limit are away. Of silent agents: `waits` are those of `nodes` that
    nobody knows anything of, `gone` those that did not come back by themselves: somebody said that they are gone, or
    took them away. `back` is when one that was waited for was last heard again. Of nodes that Slurm itself took out:
    `tried` is when one of them was last looked into in vain.
    """

    kind: str
    since: float
    nodes: frozenset[NodeName]
    text: str
    easing: float | None = None
    over: float | None = None
    waits: frozenset[NodeName] = frozenset()
    gone: frozenset[NodeName] = frozenset()
    back: float | None = None
    tried: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Tripped: report only for `scope` (`all`, `group:NAME`, `check:ID`) until a person resets it, or until the one
    repair that is let through `patience_s` seconds after `tripped` (Unix s) has ended well. `trial` is that repair.

    `bringup:NAME`: no machine is asked for the group until a person resets it (`patience_s` is 0: none is let through),
    or until it is to be made otherwise than `about` says.
    """

    scope: str
    tripped: float
    text: str
    patience_s: float = 1800.0
    trial: CaseId | None = None
    about: str = ""

    @property
    def next_try(self) -> float | None:
        """From when one repair is let through (Unix s); None: a person must reset it."""
        return self.tripped + self.patience_s if self.patience_s else None


def _none() -> Mapping[Any, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stands:
    """A finding against a node, and since when it stands (Unix s): it is acted on after a while only."""

    check: str
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory:
    """What was seen of a node in former plans. Times are Unix seconds on the head's clock; what is a day old is
    forgotten, and a node of which there is nothing to remember has no row."""

    away_since: float | None = None
    """Since when somebody has it away on purpose; kept as long as that is so."""
    back_at: float | None = None
    """When it was last there again after that."""
    lost_at: float | None = None
    """When it was last found lost: its agent was gone, and a second source confirmed it."""
    stops_from: float | None = None
    """Its host was shut down in good order: what ended on it at this time or later may have ended by that."""
    reclaimed_from: float | None = None
    """When its provider first said that it takes its machine away."""
    silent_since: float | None = None
    """Since when it is lost and its slurmd does not answer."""
    left_us: float | None = None
    """When its agent was told to end, as it said, and is not back since: both services may be restarted."""
    suspected: float | None = None
    """When the silence began of which it was suspected last."""
    settling: Stands | None = None
    left_at: float | None = None
    """When a machine without a slot was last ended under its name: what it left in Slurm is to be deleted."""
    excluded_by: Mapping[int, float] = field(default_factory=_none)
    """User -> when it was counted that a job of his keeps away from the node by name."""
    hurt: Mapping[int, float] = field(default_factory=_none)
    """Job -> when Slurm could not start it on the node, of which Slurm says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A machine that has no place, and since when it is listed so (Unix s): it is ended after a while only.

    `orphan`: its slot or cluster is gone; `late`: it came when another one had its place.
    """

    orphan: float | None = None
    late: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskMemory:
    """A shim that waits, or did so lately, by the head's clock (Unix s)."""

    at: float
    """When it was first heard: what it asks about had failed by then."""
    judged: float | None = None
    """When its failure was first judged: Slurm could be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The nodes to which one word of ours was written last as their feature, and when (Unix s). `undone`: so many
    times in a row somebody else had put another of our words there."""

    nodes: frozenset[NodeName]
    at: float
    undone: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadMemory:
    """About when the head last looked at what must be looked at again and again. Times are Unix seconds."""

    marks: float | None = None
    """At our marks on nodes."""
    marks_steady: float = 0.0
    """Since when it does so without a gap."""
    ends: float | None = None
    """Into the end of a job; None while there is none to look into."""
    shown: Mapping[str, Shown] = field(default_factory=_none)
    """By word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """`asked` maps an action's key to when it was last emitted: the same wish is not repeated before its retry time.

    `noted` maps a note's key to when it was last written: the same sentence is not repeated every cycle.
    """

    cases: Mapping[CaseId, Case] = field(default_factory=_none)
    jobs: Mapping[JobId, JobMemory] = field(default_factory=_none)
    bystanders: Mapping[JobId, Bystander] = field(default_factory=_none)
    asks: Mapping[AskId, AskMemory] = field(default_factory=_none)
    ledger: Mapping[JobId, tuple[Run, ...]] = field(default_factory=_none)
    """The last runs of the remembered jobs, oldest first; the store's ledger keeps all."""
    incidents: Mapping[str, Incident] = field(default_factory=_none)
    breakers: Mapping[str, Breaker] = field(default_factory=_none)
    asked: Mapping[Key, float] = field(default_factory=_none)
    noted: Mapping[str, float] = field(default_factory=_none)
    history: Mapping[NodeName, tuple[float, ...]] = field(default_factory=_none)
    """Times of past repairs per node, for budgets."""
    agents: Mapping[NodeName, Incarnation] = field(default_factory=_none)
    """Every agent that ever connected: one that does not come back after the head's restart is missed."""
    nodes: Mapping[NodeName, NodeMemory] = field(default_factory=_none)
    remedies: Mapping[str, tuple[Remedy, ...]] = field(default_factory=_none)
    """Identity of a piece of hardware -> rungs of the ladder that were begun for it, oldest first."""
    mishaps: Mapping[str, tuple[Mishap, ...]] = field(default_factory=_none)
    """The same for what happened to it, oldest first."""
    served: Mapping[NodeName, InstanceId] = field(default_factory=_none)
    """The machine that Slurm last had in full service: a count too low on the same one is lost hardware."""
    breakers_reset: float = 0.0
    """When a person last reset the breakers: what was out of service before does not count against them."""
    breaker_resets: Mapping[str, float] = field(default_factory=_none)
    """The same for one scope."""
    trials: Mapping[str, Trial] = field(default_factory=_none)
    """`<check>@<version>` -> how a check that may change did, and whether it may take nodes out."""
    looked: float = 0.0
    """While a case is open: about when the last fresh picture was planned on. Blind time is no step's lateness."""
    head: HeadMemory = HeadMemory()
    cluster: Cluster | None = None
    """The API's cluster; None before its creation and after its end."""
    groups: Mapping[str, Group] = field(default_factory=_none)
    slots: Mapping[NodeName, SlotRecord] = field(default_factory=_none)
    gates: Mapping[str, Gate] = field(default_factory=_none)
    ended: Mapping[str, float] = field(default_factory=_none)
    """Id of a cluster that ended, or of a repair whose slot is gone -> when (Unix s): its last machines may still
    come."""
    strays: Mapping[InstanceId, Stray] = field(default_factory=_none)
    operations: Mapping[str, Operation] = field(default_factory=_none)
    deeps: Mapping[str, DeepRun] = field(default_factory=_none)
    """Deep checks by id: open ones and those of late."""
    baselines: Mapping[str, Baseline] = field(default_factory=_none)
    """`<check>:<profile>` -> what is usual there."""
    quotas: Mapping[str, ComputeQuota] = field(default_factory=_none)
    """By id."""
    scheduler: SchedulerConfig | None = None
    """How teams share; None: the defaults."""
    quota_jobs: Mapping[JobId, QuotaJob] = field(default_factory=_none)
    quota_writes: Mapping[str, Wrote] = field(default_factory=_none)
    """`<qos or account>/<field>` -> what we wrote there."""
    elastic: Mapping[JobId, ElasticRun] = field(default_factory=_none)
    """Elastic runs by their base's job id: open ones and those of late."""
    client_tokens: Mapping[str, ClientToken] = field(default_factory=_none)
    paused: bool = False
    """By a person, or by the head itself where another head works on its Slurm and it hears no agent."""
    next_case: int = 1
