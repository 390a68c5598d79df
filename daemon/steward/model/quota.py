"""Quotas of teams and how they share: as they are wanted through the API. Kept in memory, changed by orders only.

A team is a Slurm account. What a quota is worth in numbers comes from machine types (`policy/quota/fill_in.py`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import NewType

Resource = NewType("Resource", str)
"""`TYPE/KIND`: what of which machine type, for example `ml.p5.48xlarge/gpu`. Kinds: `gpu` (whole accelerators), `cpu`
(logical CPUs), `mem` (MiB), and a MIG profile (`gpu:1g.10gb`)."""

GPU, CPU, MEM = "gpu", "cpu", "mem"
_PROFILE = re.compile(r"(?:^|[_-])(\d+g\.\d+gb.*)")


def resource(machine_type: str, kind: str) -> Resource:
    return Resource(f"{machine_type}/{kind}")


def machine_type_of(name: Resource) -> str:
    return name.rpartition("/")[0]


def kind_of(name: Resource) -> str:
    return name.rpartition("/")[2]


def profile_of(type: str) -> str:
    """The MIG profile in Slurm's word for an accelerator, which NVML puts behind the model's name: `1g.5gb` of
    `a100_1g.5gb`. Empty: it is a whole one."""
    match = _PROFILE.search(type)
    return match[1] if match else ""


class QuotaStatus(Enum):
    """The API's own words (SchedulerResourceStatus)."""

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
    """Whether a team's idle share is lent, and whether the team may borrow. DONT_LEND does neither."""

    DONT_LEND = "DontLend"
    LEND = "Lend"
    LEND_AND_BORROW = "LendAndBorrow"

    @property
    def lends(self) -> bool:
        return self is not Strategy.DONT_LEND

    @property
    def borrows(self) -> bool:
        return self is Strategy.LEND_AND_BORROW


class PreemptTeamTasks(Enum):
    """Whether a team's job may push out jobs of its own team that have a lower priority class."""

    LOWER_PRIORITY = "LowerPriority"
    NEVER = "Never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A quota's share of one machine type, as it was asked for; None: not said, filled in. `partition` is (MIG profile
    as Slurm types it, count)."""

    machine_type: str
    count: int | None = None
    accelerators: int | None = None
    vcpu: float | None = None
    memory_gib: float | None = None
    partition: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEntry:
    """What is kept of a quota, and of how teams share: who made and changed it when, and whether it is in force."""

    description: str = ""
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 1
    status: QuotaStatus = QuotaStatus.CREATING
    failure: str = ""
    """Why it is not in force (FailureReason)."""
    created: float = 0.0
    created_by: str = ""
    modified: float = 0.0
    modified_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeQuota(QuotaEntry):
    """A team's part of the cluster, and how the team shares it. `id` is the key in `Memory.quotas`.

    `borrow_percent` is of the team's own quota, for each resource, rounded down; `borrow_absolute` takes its place for
    the machine types that it names. A disabled quota limits nothing and owns nothing.
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
    emptied: float | None = None
    """When its team's account, which goes with it, was first seen empty (Unix s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    """A job is of a class when its QOS list or its `--comment` says so (docs/quotas.md); weight 0 (lowest) to 100."""

    name: str
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig(QuotaEntry):
    """How teams share: one for the cluster. Without one the defaults of this class count."""

    id: str = ""
    name: str = ""
    classes: tuple[PriorityClass, ...] = ()
    fair_share: bool = True
    """False: first come, first served among those who borrow."""
    idle_sharing: bool = False
    """Whether resources that no team owns may be borrowed, too."""


class Reclaimed(Enum):
    """Why a job had to give way, in the words of the event and of `explain`."""

    RECLAIM = "reclaim"
    """The job's team had borrowed, and the owner wants it back."""
    IN_TEAM = "in_team"
    """A job of its own team has a higher priority class."""
    PRIORITY = "priority"
    """The resources were borrowed, and a job of another team that may borrow has a higher priority class."""
    REBALANCE = "rebalance"
    """The job's team had borrowed more than its fair share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """One run of a job that gives way. `restart` is that run's restart count; `to_job` waits for it, of team `to_team`.

    `due` is when its grace ends (Unix s) and we end it; None: Slurm's own preemption is left to do it. `over` is when
    the run was. `text` is the one sentence for its owner.
    """

    at: float
    restart: int
    cause: Reclaimed
    to_team: str
    to_job: int
    text: str
    due: float | None = None
    over: float | None = None
    signal: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaJob:
    """The quota book's memory of a job: nothing that Slurm knows."""

    team: str
    evictions: tuple[Eviction, ...] = ()
    """Oldest first, the last ones."""
    count: int = 0
    """All of them: what an eviction costs doubles the time until the next one."""
    marked: int | None = None
    """The priority that we gave the running job so that Slurm's preemption spares it, and that must go again."""
    mark_seen: bool = False
    """Slurm showed it: another priority is a person's from then on."""

    @property
    def yielding(self) -> Eviction | None:
        """The one that is not over yet."""
        return self.evictions[-1] if self.evictions and self.evictions[-1].over is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote:
    """Our writes to one field of Slurm's accounting: the values that we wrote there and found when we began, the newest
    first. Any other value is a person's (`foreign`, seen since `since`): it is obeyed and told of."""

    values: tuple[str, ...]
    foreign: str | None = None
    since: float | None = None
