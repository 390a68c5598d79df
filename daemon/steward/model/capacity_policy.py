"""`[capacity]`: groups that are created and changed through the API."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType

from pydantic import Field

from steward.model.ids import NodeName
from steward.model.machine_types import MachineType
from steward.model.section import Section
from steward.model.setting_types import HOUR_S, SIGNAL_OR_NONE, Durations, NodeCommand, ProviderName, Words


class GateRule(Enum):
    """When a gate is closed. FIRST: until the minimum was reached once (HyperPod). STRICT: whenever it is missed."""

    FIRST = "first"
    STRICT = "strict"


class Victims(Enum):
    """The choice of the nodes that leave when a group shrinks."""

    LEAST_HARM = "least_harm"
    RANDOM = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The source of a group's nodes. `fixed` and `reboots` as in Slot.

    `nodes` are the only names that its slots may have, in order; empty: NAME-1, NAME-2, ... for nodes that Slurm learns
    of when they register.
    """

    group: str
    nodes: tuple[NodeName, ...] = ()
    fixed: bool = False
    reboots: bool = True


class CapacitySettings(Section):
    """Groups through the API: their provider, the MinCount gate, scaling down, software updates."""

    enabled: bool = Field(default=True, description="false: the API cannot create a cluster.")
    provider: ProviderName | None = Field(
        default=None,
        description="Provider of groups that have no `[[groups]]` table; none: every group needs one.",
    )
    max_groups: int = Field(default=100, ge=1, le=1000, description="Instance groups at most.")
    max_instances: int = Field(default=6758, ge=1, le=100_000, description="Instances of all groups at most.")
    launches_at_once: int = Field(default=50, ge=1, le=10_000, description="Launches asked of the provider at a time.")
    minimum_timeout_h: float = Field(
        default=3.0,
        gt=0,
        le=720,
        description="A group whose MinCount is not there by then goes back to its last good size; restarts with each "
        "change of MinCount.",
    )
    gate: GateRule = Field(
        default=GateRule.FIRST,
        description='"first": a partition is closed until MinCount was there once; "strict": also whenever it is not.',
    )
    owned_partitions: Words = Field(
        default=(),
        description="Partitions of the site's slurm.conf whose state Steward may set. Others are never touched.",
    )
    slurm_include: Path | None = Field(
        default=None,
        description="A file that slurm.conf includes and only Steward writes: partitions of API groups; none: they "
        "must be in slurm.conf.",
    )
    victims: Victims = Field(
        default=Victims.LEAST_HARM,
        description='Which nodes leave when a group gets smaller: "least_harm" or "random" (as HyperPod).',
    )
    drain_deadline_s: float = Field(
        default=0.0, ge=0, le=2_592_000, description="A node that leaves waits this long for its jobs; 0: not at all."
    )
    update_drain_deadline_s: float = Field(
        default=86400.0, ge=0, le=2_592_000, description="The same for a software update."
    )
    checkpoint_signal: str = Field(
        default="",
        pattern=SIGNAL_OR_NONE,
        description="Signal for opted-in jobs on a node that leaves, for example USR1.",
    )
    checkpoint_grace_s: float = Field(
        default=60.0, ge=0, le=3600, description="How long such jobs may run after the signal."
    )
    capacity_backoff_s: Durations = Field(
        default=(30.0, 60.0, 120.0, 300.0), description='Waits after "no capacity"; the last one repeats.'
    )
    quota_backoff_s: Durations = Field(default=(600.0, 1800.0), description="The same after a quota was hit.")
    script_backoff_s: Durations = Field(
        default=(60.0, 300.0, 900.0), description="The same after a lifecycle script failed."
    )
    bootstrap_backoff_s: Durations = Field(
        default=(30.0, 120.0, 600.0), description="The same after an instance whose agent never came."
    )
    other_backoff_s: Durations = Field(default=(10.0, 60.0, 300.0), description="The same after any other failure.")
    setup_timeout_s: float = Field(default=3600.0, ge=1, le=86400, description="Time limit of all lifecycle scripts.")
    setup_tries: int = Field(
        default=3, ge=1, le=100, description="Tries of the scripts on one instance before another is launched."
    )
    rollout_failures: int = Field(
        default=3, ge=1, le=1000, description="Bring-ups that may fail before a software update rolls back."
    )
    bringup_failures: int = Field(
        default=3,
        ge=1,
        le=1000,
        description="New machines of a group that may fail in a row, outside of software updates; then no more are "
        "asked for until `steward breaker reset bringup:GROUP` or another version.",
    )
    bringup_failures_per_hour: int = Field(default=5, ge=1, le=1000, description="The same within an hour.")
    bringup_percent: float = Field(
        default=10.0, ge=0, le=100, description="In a large group both limits are at least this share of its instances."
    )
    backup: NodeCommand = Field(
        default=(),
        description="argv that saves a node before its instance goes, `%n` its name, `%i` its instance id; failure "
        "stops the deletion.",
    )
    restore: NodeCommand = Field(default=(), description="argv that restores it on the new instance of an update.")
    backup_deadline_s: float = Field(default=600.0, ge=1, le=86400, description="Time limit of both.")
    alarms: tuple[str, ...] = Field(
        default=(),
        description="argv that is given the names of alarms and prints those that fire, one a line; asked during "
        "software updates.",
    )
    setup_logs_days: float = Field(default=30.0, ge=0, le=3650, description="The head keeps logs of setups this long.")

    @property
    def minimum_timeout_s(self) -> float:
        """Return `minimum_timeout_h` in seconds."""
        return self.minimum_timeout_h * HOUR_S

    @property
    def bringup_fraction(self) -> float:
        """Return `bringup_percent` as a fraction."""
        return self.bringup_percent / 100.0

    @property
    def has_provider(self) -> bool:
        """Return whether a provider makes the machines of groups that have no pool."""
        return self.provider is not None

    @property
    def has_include(self) -> bool:
        """Return whether Steward writes partitions that slurm.conf lacks into its own include file."""
        return self.slurm_include is not None

    @property
    def has_backup(self) -> bool:
        """Return whether a node is backed up before its instance is ended."""
        return bool(self.backup)

    @property
    def has_alarm_command(self) -> bool:
        """Return whether a command for alarms during software updates is configured."""
        return bool(self.alarms)


class CapacityPolicy(CapacitySettings):
    """The settings for decisions about groups: the table `[capacity]`, and the parts of other tables about groups."""

    pools: Mapping[str, Pool] = Field(default_factory=lambda: MappingProxyType({}))
    types: Mapping[str, MachineType] = Field(default_factory=lambda: MappingProxyType({}))
    region: str = "local-cluster-1"
    account: str = "000000000000"
