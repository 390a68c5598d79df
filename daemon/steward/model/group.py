"""The cluster and its instance groups as they are wanted through the API. Kept in memory, changed by orders only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from steward.model.setup import Lifecycle


class Role(Enum):
    """CONTROLLER is the machine of the head itself; LOGIN machines take no jobs; COMPUTE nodes do."""

    CONTROLLER = "Controller"
    LOGIN = "Login"
    COMPUTE = "Compute"


class GroupStatus(Enum):
    """The API's own words."""

    CREATING = "Creating"
    UPDATING = "Updating"
    IN_SERVICE = "InService"
    FAILED = "Failed"
    DEGRADED = "Degraded"
    SYSTEM_UPDATING = "SystemUpdating"
    DELETING = "Deleting"

    @property
    def is_gated(self) -> bool:
        """The minimum has not been there yet: the partition is closed."""
        return self in (GroupStatus.CREATING, GroupStatus.UPDATING)


class ClusterStatus(Enum):
    CREATING = "Creating"
    UPDATING = "Updating"
    IN_SERVICE = "InService"
    FAILED = "Failed"
    DELETING = "Deleting"
    ROLLING_BACK = "RollingBack"
    SYSTEM_UPDATING = "SystemUpdating"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """How many instances: 0 <= minimum <= target."""

    target: int
    minimum: int = 0


class RolloutState(Enum):
    """SoftwareUpdateStatus of the API."""

    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ROLLBACK_IN_PROGRESS = "RollbackInProgress"
    ROLLBACK_COMPLETE = "RollbackComplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The image and release that an instance is made from. Two versions that differ need another instance (or its root
    volume written anew).

    `serial` grows with each UpdateClusterSoftware, so that one without a new image still runs the scripts anew.
    """

    image: str = ""
    release: str = ""
    serial: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSize:
    """The size of a batch of a rolling update: a number of nodes, or a percentage of the group (rounded up, at least
    one)."""

    count: int = 0
    percent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """A software update under way (or the last one). Times in Unix seconds, waits in seconds."""

    state: RolloutState
    wanted: Version
    previous: Version
    started: float
    batch: BatchSize | None = None
    """None: all at once."""
    rollback_batch: BatchSize | None = None
    wait_s: float = 0.0
    alarms: tuple[str, ...] = ()
    """Names handed to the site's alarm command; any that it calls firing rolls back."""
    next_batch_at: float = 0.0
    failures: int = 0
    counted: frozenset[str] = frozenset()
    """The tries of nodes among them, so that each counts once."""
    finished: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """A machine that was given up before it served, at `at` (Unix s): its token, and a digest of what it was made
    from."""

    token: str
    recipe: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One instance group. `partition` is empty for none; `good` is the goal at the last InService (None: never).

    `minimum_since`: when the MinCount clock was started (Unix s); None while it does not run. `extras` is the JSON text
    of what the API was given and gives back and no decision depends on. `logical` counts logical ids ever minted.
    """

    name: str
    role: Role
    types: tuple[str, ...]
    goal: Goal
    status: GroupStatus
    created: float
    partition: str = ""
    features: frozenset[str] = frozenset()
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    version: Version = field(default_factory=Version)
    on_start_checks: tuple[str, ...] = ()
    threads_per_core: int = 0
    good: Goal | None = None
    minimum_since: float | None = None
    message: str = ""
    """Why it is not as wanted (rollback, failure), for people."""
    rolled_back: float | None = None
    """When it last was (Unix s)."""
    given_up: tuple[GivenUp, ...] = ()
    """Of a day."""
    rollout: Rollout | None = None
    extras: str = "{}"
    logical: int = 0

    @property
    def turn(self) -> tuple[int, float, str]:
        """By which groups are sorted: controllers first, compute nodes last, the older before the younger."""
        return list(Role).index(self.role), self.created, self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One wish of scaling, for ListClusterOperations and events: goals per group before and after.

    `superseded` are its groups for which a later wish was made before this one was reached.
    """

    id: str
    at: float
    before: Mapping[str, Goal] = field(default_factory=lambda: MappingProxyType({}))
    after: Mapping[str, Goal] = field(default_factory=lambda: MappingProxyType({}))
    superseded: frozenset[str] = frozenset()
    finished: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The one API cluster of this head. `id` is the last part of its ARN (12 of a-z0-9).

    `recovery` False (NodeRecovery None): no node of its groups is repaired by itself.
    """

    name: str
    id: str
    created: float
    status: ClusterStatus
    continuous: bool = True
    recovery: bool = True
    message: str = ""
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    extras: str = "{}"
    serial: int = 0
    """Counts slots, operations and software updates ever made: ids never come twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientToken:
    """A call that may be repeated: the same answer for the same call, a refusal for another one."""

    digest: str
    answer: str
    at: float
