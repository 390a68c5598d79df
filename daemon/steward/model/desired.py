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
from steward.model.resume_policy import ResumePolicy

FINAL_CODE = 93
"""A job that exits with it is not tried again, whatever else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderPolicy:
    """How often each rung is tried for one machine, and for how long; seconds unless the name says otherwise."""

    restarts_per_hour: int = 2
    resets_per_day: int = 1
    reboots_per_day: int = 2
    restart_timeout_s: float = 120.0
    reset_timeout_s: float = 300.0
    reboot_timeout_s: float = 1500.0
    hardware_repairs: int = 3
    """Cases in which one piece of hardware was reset, rebooted or replaced within `hardware_window_s`; the next one is
    left to a person."""
    hardware_window_s: float = 7 * 86400.0
    replacements_per_day: int = 2
    """Of one node's machine; the next one is left to a person."""
    probation_s: float = 86400.0
    """A fault within this time of a repair skips a rung."""
    cooldown_s: float = 300.0
    """From a return to the next repair of the node that a check asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPolicy:
    """Deadlines and blast radius of repairs; seconds unless the name says otherwise."""

    act: bool = True
    """False: report only, no node is touched."""
    ask: bool = False
    """Nodes are drained, and nothing more is done to them before a person approves."""
    settle_s: float = 0.2
    witness_fresh_s: float = 3.0
    settle_degraded_s: float = 10.0
    """How long a check's degraded finding must stand before its node is drained; 0: not at all."""
    suspect_deadline_s: float = 30.0
    drain_deadline_s: float = 60.0
    release_deadline_s: float = 86400.0
    launch_timeout_s: float = 2700.0
    provision_timeout_s: float = 2700.0
    verify_timeout_s: float = 300.0
    return_timeout_s: float = 60.0
    retry_s: float = 5.0
    max_launches: int = 5
    """Instances, and refused calls for one, before a person is needed (want of capacity is waited out)."""
    capacity_backoff_s: tuple[float, ...] = (60.0, 120.0, 300.0, 600.0)
    concurrent_fraction: float = 0.05
    concurrent_min: int = 1
    concurrent_all_count: int = 20
    """In the whole cluster."""
    breaker_fraction: float = 0.20
    breaker_min: int = 2
    check_breaker_fraction: float = 0.10
    check_breaker_min: int = 2
    check_breaker_window_s: float = 600.0
    """Nodes that one check takes out within this time count against its breaker."""
    breaker_patience_s: float = 1800.0
    """From a breaker's trip to the one repair that is let through; doubled, up to a day, when that ends badly."""
    correlated_fraction: float = 0.05
    correlated_min: int = 3
    correlated_window_s: float = 300.0
    """Nodes that fail the same check within this time have a cause in common."""
    correlated_span_s: float = 30.0
    """Agents that fall silent within this time of each other have a cause in common."""
    replacements_per_hour: int = 10
    node_repairs: int = 3
    """Repairs of one node within `node_repairs_window_s`; the next one is left to a person."""
    node_repairs_window_s: float = 7 * 86400.0
    budgets: LadderPolicy = field(default_factory=LadderPolicy)
    agents_grace_s: float = 15.0
    """After the head's start, and after a node that was away on purpose is there again, agents that have not come yet
    are not called lost for this long."""


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
