"""What the site wants, as numbers the decisions use. Made from the settings; nothing here is read from a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from steward.model.capacity_policy import CapacityPolicy
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
