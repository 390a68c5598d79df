"""The settings as the numbers that decisions use; made from the settings file elsewhere."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import Field

from steward.model.capacity_policy import CapacityPolicy
from steward.model.deep import DeepKind
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.model.repair_policy import RepairPolicy
from steward.model.resume_policy import ResumePolicy
from steward.model.setting_types import HOUR_S, Program, Section, Words

# `[elastic]`: how training runs grow into idle nodes and give them back.


class ElasticPolicy(Section):
    """Elastic runs (`sbatch --elastic`). A run's own options override these keys."""

    enabled: bool = Field(default=True, description="false: no run grows; nodes that others need are still given back.")
    grace_s: float = Field(
        default=600.0,
        ge=1,
        le=86400,
        description="How long all ranks may take to save a checkpoint before a change of size (`grace=`).",
    )
    settle_s: float = Field(
        default=60.0,
        ge=0,
        le=86400,
        description="How long the first new node that is ready waits for others, so that they join together "
        "(`settle=`).",
    )
    faulty_s: float = Field(
        default=30.0,
        ge=0,
        le=86400,
        description="How long a run waits for the replacement of a lost node, where one is on its way (`faulty=`).",
    )
    snooze_s: float = Field(
        default=300.0, ge=0, le=86400, description="No growth for this long after any change of size (`snooze=`)."
    )
    backoff_s: float = Field(
        default=300.0,
        ge=0,
        le=86400,
        description="No growth for this long after one that did not last (`backoff=`); each further one doubles "
        "the time ...",
    )
    backoff_most_s: float = Field(default=3600.0, ge=0, le=604_800, description="... up to this.")
    form_s: float = Field(
        default=900.0,
        ge=10,
        le=86400,
        description="A change of size has failed when the first step at the new size is not made within this time.",
    )
    pause_s: float = Field(
        default=60.0,
        ge=1,
        le=86400,
        description="Assumed cost of a change of size, for a run that has made none yet; a run grows only where "
        "it gains more.",
    )
    growths_at_once: int = Field(default=4, ge=1, le=1000, description="At most this many runs grow at the same time.")
    replica_limit_s: float = Field(
        default=14_400.0,
        ge=60,
        le=604_800,
        description="How long replica jobs may work; a short time lets Slurm fit them into gaps. Their time limit has "
        "`grace=` and a minute on top.",
    )


# `[deep]`: deep checks of nodes that no job uses.


class DeepPolicy(Section):
    """Deep checks of idle nodes: when they run, and on how many nodes at once."""

    enabled: bool = Field(default=True, description="false: deep checks are disabled, also on request.")
    command: Program | None = Field(
        default=None,
        description="The runner, by its path on the nodes; none: `-m steward.deep` with the Python that runs the head.",
    )
    on_start: tuple[DeepKind, ...] = Field(
        default=(),
        strict=False,
        description="What new and repaired machines of `[[groups]]` must pass before they serve: InstanceStress, "
        "InstanceConnectivity. Groups of the API have OnStartDeepHealthChecks of their own.",
    )
    suspects: bool = Field(
        default=True, description="Deep-check a node with a suspected, unproven fault as soon as it is idle."
    )
    sweep_period_h: float = Field(
        default=0.0, ge=0, le=8760, description="Every idle node is deep-checked once in this time; 0: never."
    )
    budget_s: float = Field(default=900.0, ge=10, le=86400, description="How long one deep check may run on its nodes.")
    start_timeout_s: float = Field(
        default=120.0,
        ge=5,
        le=3600,
        description="A deep check whose job Slurm does not start within this time is given up.",
    )
    busy_wait_s: float = Field(
        default=600.0, ge=0, le=86400, description="How long a busy node is waited for before it is skipped."
    )
    gather_s: float = Field(
        default=15.0, ge=0, le=3600, description="How long free nodes wait for the other nodes of their check."
    )
    at_once_percent: float = Field(
        default=10.0, gt=0, le=100, description="At most this share of the idle nodes is under a deep check at once ..."
    )
    at_once_min: int = Field(
        default=2, ge=1, le=10000, description="... but at least this many; a single node cannot measure the network."
    )
    output: str = Field(
        default="/dev/null",
        pattern=r"^/[^\s'\"]*$",
        max_length=255,
        description="Where the runner's output goes on the first node of a check; `%j` is the job's number.",
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


# `[health]`: when a bad state counts, trials of checks that may change, and node features for Slurm's users.


class HealthPolicy(Section):
    """When a bad state counts. Events (a kernel-log line) count at once."""

    bad_samples: int = Field(default=2, ge=1, le=20, description="This many bad samples ...")
    last_samples: int = Field(
        default=3, ge=1, le=20, description="... among this many of the latest make a state count as bad."
    )
    clear_after_s: float = Field(
        default=600.0, ge=0, le=86400, description="A bad state is over when its check has passed for this long."
    )
    features: bool = Field(
        default=True,
        description="Nodes get one of the features `HealthCheck:Passed`, `HealthCheck:Failed` and "
        "`HealthCheck:Skipped` in Slurm, so that users can choose with `-C HealthCheck:Passed`.",
    )
    canary_node_count: int = Field(
        default=5,
        ge=0,
        le=10000,
        description="A new or changed site check only reports until this many nodes had results (0: no trial) ...",
    )
    canary_h: float = Field(default=4.0, ge=0, le=720, description="... for this long, ...")
    canary_failing_percent: float = Field(
        default=5.0,
        ge=0,
        le=100,
        description="... and the share that failed is at most this much above that of its earlier version.",
    )

    @property
    def canary_s(self) -> float:
        """Return `canary_h` in seconds."""
        return self.canary_h * HOUR_S

    @property
    def canary_failing_fraction(self) -> float:
        """Return `canary_failing_percent` as a fraction."""
        return self.canary_failing_percent / 100.0


# `[quota]`: how quotas of teams are kept in Slurm.


class QuotaPolicy(Section):
    """Quotas of teams, created through the API or with `steward quota apply`; without a quota nothing is done."""

    enabled: bool = Field(default=True, description="false: quotas are kept and shown, but not written to Slurm.")
    count_filled: bool = Field(
        default=False,
        description="true: vCPUs and memory that a quota did not name and that were filled in limit the team, "
        "too (as on HyperPod).",
    )
    grace_s: float = Field(
        default=60.0,
        ge=0,
        le=65533,
        description="How long a job that is evicted runs on after its signal; also GraceTime of the QOS of "
        "borrowed jobs.",
    )
    patience_s: float = Field(
        default=15.0,
        ge=1,
        le=3600,
        description="How long after that Steward waits for Slurm's own preemption before it requeues the job itself.",
    )
    backoff_s: float = Field(
        default=60.0,
        ge=0,
        le=86400,
        description="A job that was evicted twice may borrow again only after this long, doubled each further time ...",
    )
    backoff_most_s: float = Field(default=3600.0, ge=0, le=604_800, description="... up to this.")
    rebalance: bool = Field(
        default=False,
        description="true: a borrowed job is evicted also for a team that has borrowed less than its own.",
    )
    rebalance_after_s: float = Field(
        default=600.0,
        ge=10,
        le=604_800,
        description="With `rebalance`: only jobs that ran this long are evicted, and at most one within this time.",
    )
    borrow_priority: int | None = Field(
        default=None,
        ge=0,
        le=101,
        description="A borrowed job whose priority class is below this weight is evicted for any job of a higher "
        "class; none: this rule is off.",
    )
    strict: Words = Field(
        default=(), description="Teams whose jobs start strictly in order: a job that waits holds up those behind it."
    )
    limit_others: bool = Field(
        default=True,
        description="Where a team has a quota: accounts without one may use only what no team owns. false: no limit.",
    )
    edits_at_once: int = Field(
        default=8, ge=1, le=100, description="At most this many changes to Slurm's accounting in one cycle."
    )


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
    slurm_user: str = "slurm"
    """The login name under which Slurm's own daemons write reasons."""
    unrepaired: frozenset[str] = frozenset()
    """The groups whose faults are reported, but whose nodes are repaired only when a person asks for it."""
    hot_spares: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """The number of hot spares of a group in place of `resume.hot_spares`."""
    page_url: str = ""
    """The URL of the status page for people; empty: messages have no link to it."""
    spares: frozenset[NodeName] = frozenset()
    """The nodes kept out of service until they stand in for a broken node with a fixed machine."""
    agent_socket: str = "/run/steward/agent.sock"
    """The socket on which programs on a node reach its agent."""
