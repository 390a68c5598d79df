"""What the site wants, as numbers the decisions use. Made from the settings; nothing here is read from a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from steward.model.deep_policy import DeepPolicy
from steward.model.elastic_policy import ElasticPolicy
from steward.model.health_policy import HealthPolicy
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.model.quota_policy import QuotaPolicy
from steward.model.repair_policy import RepairPolicy
from steward.model.resume_policy import ResumePolicy

FINAL_CODE = 93
"""A job that exits with it is not tried again, whatever else."""


class GateRule(Enum):
    """FIRST: closed until the minimum was there once (HyperPod). STRICT: closed for new jobs whenever it is not."""

    FIRST = "first"
    STRICT = "strict"


class Victims(Enum):
    """Whom a smaller count takes."""

    LEAST_HARM = "least_harm"
    RANDOM = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Where a group's nodes come from: `nodes` are the only names that its slots may have, in order (empty: NAME-1,
    NAME-2, ... of nodes that Slurm learns of when they register). `fixed` as in Slot."""

    group: str
    nodes: tuple[NodeName, ...] = ()
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """What a site's machine type has. `memory_mb` as Slurm's RealMemory; `gres` as Slurm writes it (`gpu:h100:8`)."""

    name: str
    cpus: int = 0
    memory_mb: int = 0
    gpus: int = 0
    gres: str = ""
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityPolicy:
    """Groups through the API: limits, times in seconds, back-off per kind of failure (the last wait repeats)."""

    enabled: bool = True
    max_groups: int = 100
    max_instances: int = 6758
    launches_at_once: int = 50
    minimum_timeout_s: float = 3 * 3600.0
    gate: GateRule = GateRule.FIRST
    victims: Victims = Victims.LEAST_HARM
    drain_deadline_s: float = 0.0
    """How long a node that leaves waits for its jobs; 0: not at all, as HyperPod."""
    update_drain_deadline_s: float = 86400.0
    """The same for a software update."""
    checkpoint_signal: str = ""
    """Sent to opted-in jobs on a node that leaves (`USR1`); empty: none."""
    checkpoint_grace_s: float = 60.0
    """At least this long between that signal and the end of its nodes."""
    capacity_backoff_s: tuple[float, ...] = (30.0, 60.0, 120.0, 300.0)
    quota_backoff_s: tuple[float, ...] = (600.0, 1800.0)
    script_backoff_s: tuple[float, ...] = (60.0, 300.0, 900.0)
    bootstrap_backoff_s: tuple[float, ...] = (30.0, 120.0, 600.0)
    other_backoff_s: tuple[float, ...] = (10.0, 60.0, 300.0)
    setup_timeout_s: float = 3600.0
    setup_tries: int = 3
    """On one instance; then another is launched."""
    rollout_failures: int = 3
    """Bring-ups of the new version that may fail before a software update rolls back."""
    bringup_failures: int = 3
    """In a row, outside of software updates: then the group asks for no more machines."""
    bringup_failures_per_hour: int = 5
    bringup_fraction: float = 0.1
    """In a large group both are at least this share of it."""
    backup_deadline_s: float = 600.0
    has_backup: bool = False
    has_alarm_command: bool = False
    has_provider: bool = False
    """Somebody makes the machines of groups that have no pool."""
    owned_partitions: frozenset[str] = frozenset()
    """Partitions of the site's own slurm.conf that were handed over to us."""
    has_include: bool = False
    """Partitions that the site's slurm.conf does not know are written into our own include file."""
    pools: Mapping[str, Pool] = field(default_factory=lambda: MappingProxyType({}))
    types: Mapping[str, MachineType] = field(default_factory=lambda: MappingProxyType({}))
    region: str = "local-cluster-1"
    account: str = "000000000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """`slots` are the nodes we may repair, by name; a node without a slot is only watched."""

    resume: ResumePolicy = field(default_factory=ResumePolicy)
    repair: RepairPolicy = field(default_factory=RepairPolicy)
    capacity: CapacityPolicy = field(default_factory=CapacityPolicy)
    deep: DeepPolicy = field(default_factory=DeepPolicy)
    health: HealthPolicy = field(default_factory=HealthPolicy)
    elastic: ElasticPolicy = field(default_factory=ElasticPolicy)
    quota: QuotaPolicy = field(default_factory=QuotaPolicy)
    slots: Mapping[NodeName, Slot] = field(default_factory=lambda: MappingProxyType({}))
    modes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """check id -> off | report | drain."""
    slurm_user: str = "slurm"
    """Whose login name Slurm's own daemons write reasons under."""
    unrepaired: frozenset[str] = frozenset()
    """Groups of which faults are told, but whose nodes are not touched unless a person asks for it."""
    hot_spares: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Group -> its own number in place of `resume.hot_spares`."""
    page_url: str = ""
    """Where people open the status page; empty: messages have no link to it."""
    spares: frozenset[NodeName] = frozenset()
    """Nodes kept out of service until they stand in for a broken one whose machine is fixed."""
    agent_socket: str = "/run/steward/agent.sock"
    """Where programs on a node reach its agent."""
