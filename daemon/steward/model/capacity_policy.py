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
from steward.model.setting_types import HOUR_S, SIGNAL_OR_NONE, Durations, NodeCommand, Program, ProviderName, Words


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
        description="Provider of groups without a `[[groups]]` table; none: every group needs one.",
    )
    max_groups: int = Field(default=100, ge=1, le=1000, description="Instance groups at most.")
    max_instances: int = Field(default=6758, ge=1, le=100_000, description="Instances of all groups at most.")
    launches_at_once: int = Field(default=50, ge=1, le=10_000, description="Launches at a time.")
    minimum_timeout_h: float = Field(
        default=3.0,
        gt=0,
        le=720,
        description="A group without its MinCount by then goes back to its last good size.",
    )
    gate: GateRule = Field(
        default=GateRule.FIRST,
        description='"first": a partition opens when MinCount was there once; "strict": only while it is.',
    )
    owned_partitions: Words = Field(
        default=(),
        description="Partitions of slurm.conf whose state Steward may set.",
    )
    slurm_include: Path | None = Field(
        default=None,
        description="File included by slurm.conf, for partitions of API groups; none: slurm.conf has them.",
    )
    victims: Victims = Field(
        default=Victims.LEAST_HARM,
        description='Which nodes leave a smaller group: "least_harm" or "random" (HyperPod).',
    )
    drain_deadline_s: float = Field(
        default=0.0, ge=0, le=2_592_000, description="How long a leaving node waits for its jobs."
    )
    update_drain_deadline_s: float = Field(
        default=86400.0, ge=0, le=2_592_000, description="The same for a software update."
    )
    checkpoint_signal: str = Field(
        default="",
        pattern=SIGNAL_OR_NONE,
        examples=["USR1"],
        description="Signal for resumable jobs on a leaving node, such as USR1.",
    )
    checkpoint_grace_s: float = Field(
        default=60.0, ge=0, le=3600, description="How long these jobs may run after the signal."
    )
    capacity_backoff_s: Durations = Field(
        default=(30.0, 60.0, 120.0, 300.0), description='Waits after "no capacity"; the last one repeats.'
    )
    quota_backoff_s: Durations = Field(default=(600.0, 1800.0), description="The same after a quota was hit.")
    script_backoff_s: Durations = Field(
        default=(60.0, 300.0, 900.0), description="The same after a lifecycle script failed."
    )
    bootstrap_backoff_s: Durations = Field(
        default=(30.0, 120.0, 600.0), description="The same when an agent never came."
    )
    other_backoff_s: Durations = Field(default=(10.0, 60.0, 300.0), description="The same after any other failure.")
    setup_timeout_s: float = Field(default=3600.0, ge=1, le=86400, description="Time limit of all lifecycle scripts.")
    setup_tries: int = Field(default=3, ge=1, le=100, description="Tries of the scripts on one instance.")
    rollout_failures: int = Field(default=3, ge=1, le=1000, description="Failed bring-ups before an update rolls back.")
    bringup_failures: int = Field(
        default=3,
        ge=1,
        le=1000,
        description="New machines of a group that may fail in a row (or 10 %); then none "
        "is launched until `steward breaker reset`.",
    )
    backup: NodeCommand = Field(
        default=(),
        description="argv that saves node `%n` of instance `%i` before its end; a failure stops that.",
    )
    restore: NodeCommand = Field(default=(), description="argv that restores it on an update's new instance.")
    backup_deadline_s: float = Field(
        default=600.0, ge=1, le=86400, description="Time limit of `backup`, and of `restore`."
    )
    alarms: Program | None = Field(
        default=None,
        description="argv that is given alarm names and prints those that fire; asked during updates.",
    )
    setup_logs_days: float = Field(default=30.0, ge=0, le=3650, description="The head keeps logs of setups this long.")

    @property
    def minimum_timeout_s(self) -> float:
        """Return `minimum_timeout_h` in seconds."""
        return self.minimum_timeout_h * HOUR_S

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
