"""The quotas of teams and how teams share, as requested through the API. Kept in memory, changed by orders only.

A team is a Slurm account. Machine types turn a quota into numbers (`policy/quota/fill_in.py`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import NewType

from steward.model.ids import UnixTime

Resource = NewType("Resource", str)
"""`TYPE/KIND`: a kind of resource of a machine type, for example `ml.p5.48xlarge/gpu`. Kinds: `gpu` (whole
accelerators), `cpu` (logical CPUs), `mem` (MiB), and a MIG profile (`gpu:1g.10gb`)."""

GPU, CPU, MEM = "gpu", "cpu", "mem"
_PROFILE = re.compile(r"(?:^|[_-])(\d+g\.\d+gb.*)")


def resource(machine_type: str, kind: str) -> Resource:
    """Return the resource of this kind of a machine type."""
    return Resource(f"{machine_type}/{kind}")


def machine_type_of(name: Resource) -> str:
    """Return the machine type of a resource."""
    return name.rpartition("/")[0]


def kind_of(name: Resource) -> str:
    """Return the kind of a resource."""
    return name.rpartition("/")[2]


def profile_of(type: str) -> str:
    """Return the MIG profile in Slurm's type of an accelerator: `1g.5gb` of `a100_1g.5gb`; empty for a whole one."""
    match = _PROFILE.search(type)
    return match[1] if match else ""


class QuotaStatus(Enum):
    """The status of a quota, in the API's words (SchedulerResourceStatus)."""

    CREATING = "Creating"
    CREATE_FAILED = "CreateFailed"
    CREATE_ROLLBACK_FAILED = "CreateRollbackFailed"
    CREATED = "Created"
    UPDATING = "Updating"
    UPDATE_FAILED = "UpdateFailed"
    UPDATE_ROLLBACK_FAILED = "UpdateRollbackFailed"
    UPDATED = "Updated"
    DELETING = "Deleting"
    DELETE_FAILED = "DeleteFailed"
    DELETE_ROLLBACK_FAILED = "DeleteRollbackFailed"
    DELETED = "Deleted"


class Strategy(Enum):
    """Whether a team lends its idle share, and whether it may borrow; DONT_LEND does neither."""

    DONT_LEND = "DontLend"
    LEND = "Lend"
    LEND_AND_BORROW = "LendAndBorrow"

    @property
    def lends(self) -> bool:
        """Return whether the team lends its idle share."""
        return self is not Strategy.DONT_LEND

    @property
    def borrows(self) -> bool:
        """Return whether the team may borrow."""
        return self is Strategy.LEND_AND_BORROW


class PreemptTeamTasks(Enum):
    """Whether a team's job may preempt jobs of its own team that have a lower priority class."""

    LOWER_PRIORITY = "LowerPriority"
    NEVER = "Never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A quota's share of one machine type, as requested; None: not given, filled in.

    `partition` is a MIG profile, in Slurm's spelling, and its count.
    """

    machine_type: str
    count: int | None = None
    accelerators: int | None = None
    vcpu: float | None = None
    memory_gib: float | None = None
    partition: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEntry:
    """The record fields of a quota or a scheduler configuration: its authors, times and status."""

    description: str = ""
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 1
    status: QuotaStatus = QuotaStatus.CREATING
    failure: str = ""
    """Why the entry is not in force (FailureReason); empty if it is."""
    created: UnixTime = 0.0
    created_by: str = ""
    modified: UnixTime = 0.0
    modified_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeQuota(QuotaEntry):
    """A team's part of the cluster, and how the team shares it. `id` is the key in `Memory.quotas`.

    `borrow_percent` is a share of the team's own quota, for each resource, rounded down; `borrow_absolute` replaces it
    for the machine types that it names. A disabled quota has no limits and owns no resources.
    """

    id: str
    name: str
    team: str
    shares: tuple[Share, ...]
    strategy: Strategy = Strategy.LEND_AND_BORROW
    borrow_percent: int = 50
    borrow_absolute: tuple[Share, ...] = ()
    weight: int = 0
    preempt: PreemptTeamTasks = PreemptTeamTasks.LOWER_PRIORITY
    enabled: bool = True
    emptied: UnixTime | None = None
    """When its team's account, which is deleted with the quota, was first seen empty (Unix s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    """A priority class, which a job names in its `--comment` (docs/quotas.md); weight 0 (lowest) to 100."""

    name: str
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig(QuotaEntry):
    """How teams share: one configuration for the cluster; without one the defaults of this class count."""

    id: str = ""
    name: str = ""
    classes: tuple[PriorityClass, ...] = ()
    fair_share: bool = True
    """Whether borrowers get fair shares; otherwise first come, first served."""
    idle_sharing: bool = False
    """Whether resources that no team owns may be borrowed, too."""


class Reclaimed(Enum):
    """The reason of an eviction, in the words of the event and of `explain`."""

    RECLAIM = "reclaim"
    """The job's team had borrowed the resources, and their owner reclaims them."""
    IN_TEAM = "in_team"
    """A job of the same team has a higher priority class."""
    PRIORITY = "priority"
    """The resources were borrowed, and a job of another team that may borrow has a higher priority class."""
    REBALANCE = "rebalance"
    """The job's team had borrowed more than its fair share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """The eviction of one run of a job (`restart` is its restart count) in favour of `to_job` of team `to_team`.

    `due` is when the run's grace ends (Unix s) and Steward ends it; None: Slurm's own preemption ends it. `over` is
    when the run ended. `text` is one sentence for the job's owner.
    """

    at: UnixTime
    restart: int
    cause: Reclaimed
    to_team: str
    to_job: int
    text: str
    due: UnixTime | None = None
    over: UnixTime | None = None
    signal: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaJob:
    """The quota book's memory of a job, beyond Slurm's own record."""

    team: str
    evictions: tuple[Eviction, ...] = ()
    """The last evictions, oldest first."""
    count: int = 0
    """The number of all its evictions: each doubles the time until the next one."""
    marked: int | None = None
    """The priority that Steward gave the running job to spare it from Slurm's preemption, and will take back."""
    mark_seen: bool = False
    """Whether Slurm showed that priority: any other priority is then a person's."""

    @property
    def yielding(self) -> Eviction | None:
        """Return the eviction under way; None if there is none."""
        return self.evictions[-1] if self.evictions and self.evictions[-1].over is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote:
    """Steward's writes to one field of Slurm's accounting: written values and the original one, the newest first.

    Any other value is a person's (`foreign`, seen since `since`): Steward obeys and reports it.
    """

    values: tuple[str, ...]
    foreign: str | None = None
    since: UnixTime | None = None
