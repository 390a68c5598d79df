"""The settings that decisions use."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import Field

from steward.model.agent_tables import AgentSettings, ClusterSettings, HealthPolicy
from steward.model.capacity_policy import CapacityPolicy
from steward.model.deep import DeepKind
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.model.repair_policy import RepairPolicy
from steward.model.resume_policy import ResumePolicy
from steward.model.section import Section
from steward.model.setting_types import HOUR_S, Program, Words

# `[elastic]`: how training runs grow into idle nodes and give them back.


class ElasticPolicy(Section):
    """Elastic runs (`sbatch --elastic`). A run's own options override these keys."""

    enabled: bool = Field(default=True, description="false: no run grows; nodes are still given back.")
    grace_s: float = Field(
        default=600.0,
        ge=1,
        le=86400,
        description="How long all ranks may take to save before a change of size (`grace=`).",
    )
    settle_s: float = Field(
        default=60.0,
        ge=0,
        le=86400,
        description="How long the first new node waits for others (`settle=`).",
    )
    faulty_s: float = Field(
        default=30.0,
        ge=0,
        le=86400,
        description="How long a run waits for a lost node's replacement (`faulty=`).",
    )
    snooze_s: float = Field(
        default=300.0, ge=0, le=86400, description="No growth for this long after a change of size (`snooze=`)."
    )
    backoff_s: float = Field(
        default=300.0,
        ge=0,
        le=86400,
        description="The same after a growth that did not last (`backoff=`); doubled each time ...",
    )
    backoff_most_s: float = Field(default=3600.0, ge=0, le=604_800, description="... up to this.")
    form_s: float = Field(
        default=900.0,
        ge=10,
        le=86400,
        description="Time limit for the first step at a new size.",
    )
    pause_s: float = Field(
        default=60.0,
        ge=1,
        le=86400,
        description="Assumed cost of a run's first change of size.",
    )
    replica_limit_s: float = Field(
        default=14_400.0,
        ge=60,
        le=604_800,
        description="How long replica jobs may work; a short time fits into Slurm's gaps.",
    )


# `[deep]`: deep checks of nodes that no job uses.


class DeepPolicy(Section):
    """Deep checks of idle nodes: when they run, and on how many nodes at once."""

    enabled: bool = Field(default=True, description="false: no deep checks, also on request.")
    command: Program | None = Field(
        default=None,
        description="The runner on the nodes; none: `-m steward.deep` with the head's Python.",
    )
    on_start: tuple[DeepKind, ...] = Field(
        default=(),
        strict=False,
        description="InstanceStress, InstanceConnectivity: what machines of `[[groups]]` must pass before they serve.",
    )
    suspects: bool = Field(default=True, description="Deep-check a suspected node as soon as it is idle.")
    sweep_period_h: float = Field(
        default=0.0, ge=0, le=8760, description="Deep-check every idle node once in this time; 0: never."
    )
    budget_s: float = Field(default=900.0, ge=10, le=86400, description="Time limit of one deep check.")
    start_timeout_s: float = Field(
        default=120.0,
        ge=5,
        le=3600,
        description="Time limit for Slurm to start the job of a deep check.",
    )
    busy_wait_s: float = Field(default=600.0, ge=0, le=86400, description="How long to wait for a busy node.")
    gather_s: float = Field(
        default=15.0, ge=0, le=3600, description="How long free nodes wait for the others of their check."
    )
    at_once_percent: float = Field(
        default=10.0, gt=0, le=100, description="Share of the idle nodes under deep checks at once; 2 always may be."
    )
    output: str = Field(
        default="/dev/null",
        pattern=r"^/[^\s'\"]*$",
        examples=["/var/log/steward/deep-%j.out"],
        max_length=255,
        description="The runner's output on the first node; `%j` is the job's number.",
    )

    @property
    def runner(self) -> tuple[str, ...]:
        """Return the program that runs on the nodes: `command`, or else this Python."""
        return self.command or (sys.executable, "-m", "steward.deep")

    @property
    def sweep_period_s(self) -> float:
        """Return `sweep_period_h` in seconds."""
        return self.sweep_period_h * HOUR_S

    @property
    def at_once_fraction(self) -> float:
        """Return `at_once_percent` as a fraction."""
        return self.at_once_percent / 100.0


# `[quota]`: how quotas of teams are kept in Slurm.


class QuotaPolicy(Section):
    """Quotas of teams, created through the API or with `steward quota apply`; without a quota nothing is done."""

    enabled: bool = Field(default=True, description="false: quotas are kept, but not written to Slurm.")
    count_filled: bool = Field(
        default=False,
        description="true: vCPUs and memory that were filled in limit a team, too (HyperPod).",
    )
    grace_s: float = Field(
        default=60.0,
        ge=0,
        le=65533,
        description="How long an evicted job runs on after its signal (GraceTime of its QOS).",
    )
    patience_s: float = Field(
        default=15.0,
        ge=1,
        le=3600,
        description="How long after that Steward waits for Slurm's preemption before it requeues the job.",
    )
    backoff_s: float = Field(
        default=60.0,
        ge=0,
        le=86400,
        description="A job evicted twice may borrow again after this long, doubled each time ...",
    )
    backoff_most_s: float = Field(default=3600.0, ge=0, le=604_800, description="... up to this.")
    rebalance: bool = Field(
        default=False,
        description="true: borrowed jobs are also evicted for teams that borrow less.",
    )
    borrow_priority: int | None = Field(
        default=None,
        ge=0,
        le=101,
        description="Borrowed jobs of a priority class below this weight are evicted for any higher class; none: off.",
    )
    strict: Words = Field(default=(), description="Teams whose jobs start strictly in order.")
    limit_others: bool = Field(
        default=True,
        description="false: accounts without a quota may use what teams own.",
    )
    edits_at_once: int = Field(default=8, ge=1, le=100, description="Changes to Slurm's accounting in one cycle.")


FINAL_CODE = 93
"""The exit code after which a job is never tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """The settings for decisions: `slots` are the nodes that may be repaired; a node without a slot is only watched."""

    resume: ResumePolicy = field(default_factory=ResumePolicy)
    repair: RepairPolicy = field(default_factory=RepairPolicy)
    capacity: CapacityPolicy = field(default_factory=CapacityPolicy)
    deep: DeepPolicy = field(default_factory=DeepPolicy)
    health: HealthPolicy = field(default_factory=HealthPolicy)
    elastic: ElasticPolicy = field(default_factory=ElasticPolicy)
    quota: QuotaPolicy = field(default_factory=QuotaPolicy)
    slots: Mapping[NodeName, Slot] = field(default_factory=lambda: MappingProxyType({}))
    modes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The mode (off, report or drain) of a check id, or of a pattern such as `ib.*`."""
    slurm_user: str = field(default_factory=lambda: ClusterSettings().slurm_user)
    """The login name under which Slurm's own daemons write reasons."""
    unrepaired: frozenset[str] = frozenset()
    """The groups whose faults are reported, but whose nodes are repaired only when a person asks for it."""
    hot_spares: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """The number of hot spares of a group in place of `resume.hot_spares`."""
    page_url: str = ""
    """The URL of the status page for people; empty: messages have no link to it."""
    spares: frozenset[NodeName] = frozenset()
    """The nodes kept out of service until they stand in for a broken node with a fixed machine."""
    agent_socket: str = field(default_factory=lambda: str(AgentSettings().socket))
    """The socket on which programs on a node reach its agent."""
