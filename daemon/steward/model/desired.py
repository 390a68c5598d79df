"""The site's wishes, as numbers that the decisions use. Made from the settings; nothing here is read from a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import Field

from steward.model.capacity_policy import CapacityPolicy
from steward.model.deep_policy import DeepPolicy
from steward.model.elastic_policy import ElasticPolicy
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.model.repair_policy import RepairPolicy
from steward.model.resume_policy import ResumePolicy
from steward.model.setting_types import Section, Words

# `[health]`: when a bad state counts, trials of checks that may change, and what Slurm's users are told of a node.

_HOUR_S = 3600.0


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
        """Such a check is armed at the earliest so long after enough nodes had results of it."""
        return self.canary_h * _HOUR_S

    @property
    def canary_failing_fraction(self) -> float:
        """A check is armed when no larger share of its nodes failed than this, above the share of its earlier
        version."""
        return self.canary_failing_percent / 100.0


# `[quota]`: how quotas of teams are kept in Slurm.


class QuotaPolicy(Section):
    """Quotas of teams, which are made through the API or with `steward quota apply`; nothing is done where none is."""

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
        description="How long a job that must give way runs on after its signal; also GraceTime of the QOS of "
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
        description="A job that gave way twice may borrow again only after this long, doubled each further time ...",
    )
    backoff_most_s: float = Field(default=3600.0, ge=0, le=604_800, description="... up to this.")
    rebalance: bool = Field(
        default=False,
        description="true: a borrowed job also gives way to a job of a team that has borrowed less than its own team.",
    )
    rebalance_after_s: float = Field(
        default=600.0,
        ge=10,
        le=604_800,
        description="With `rebalance`: only jobs that have run this long give way, and at most one within this time.",
    )
    borrow_priority: int | None = Field(
        default=None,
        ge=0,
        le=101,
        description="A borrowed job whose priority class is below this weight gives way to any job of a higher "
        "class; none: this rule is off.",
    )
    strict: Words = Field(
        default=(), description="Teams whose jobs start strictly in order: a job that waits holds up those behind it."
    )
    edits_at_once: int = Field(
        default=8, ge=1, le=100, description="At most this many changes to Slurm's accounting in one cycle."
    )


FINAL_CODE = 93
"""A job that exits with it is not tried again, whatever else."""


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
    """check id, or pattern such as `ib.*` -> off | report | drain."""
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
