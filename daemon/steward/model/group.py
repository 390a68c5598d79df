"""The API's cluster and its instance groups, as requested. Kept in memory, changed by orders only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from steward.model.ids import UnixTime
from steward.model.setup import Lifecycle


class Role(Enum):
    """The role of a group: the head's own machine (CONTROLLER), machines without jobs (LOGIN), nodes (COMPUTE)."""

    CONTROLLER = "Controller"
    LOGIN = "Login"
    COMPUTE = "Compute"


class GroupStatus(Enum):
    """The status of a group, in the API's words."""

    CREATING = "Creating"
    UPDATING = "Updating"
    IN_SERVICE = "InService"
    FAILED = "Failed"
    DEGRADED = "Degraded"
    SYSTEM_UPDATING = "SystemUpdating"
    DELETING = "Deleting"

    @property
    def is_gated(self) -> bool:
        """Return whether the minimum has not been reached yet, so that the partition is closed."""
        return self in (GroupStatus.CREATING, GroupStatus.UPDATING)


class ClusterStatus(Enum):
    """The status of the cluster, in the API's words."""

    CREATING = "Creating"
    UPDATING = "Updating"
    IN_SERVICE = "InService"
    FAILED = "Failed"
    DELETING = "Deleting"
    ROLLING_BACK = "RollingBack"
    SYSTEM_UPDATING = "SystemUpdating"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The requested number of instances: 0 <= minimum <= target."""

    target: int
    minimum: int = 0


class RolloutState(Enum):
    """The state of a software update (the API's SoftwareUpdateStatus)."""

    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ROLLBACK_IN_PROGRESS = "RollbackInProgress"
    ROLLBACK_COMPLETE = "RollbackComplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The image and release of an instance; another version needs another instance (or a rewritten root volume).

    `serial` grows with each UpdateClusterSoftware, so that an update without a new image still runs the scripts again.
    """

    image: str = ""
    release: str = ""
    serial: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSize:
    """The batch size of a rolling update: a number of nodes, or a percentage of the group (rounded up, at least 1)."""

    count: int = 0
    percent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The current or last software update of a group. Times are Unix seconds, waits seconds."""

    state: RolloutState
    wanted: Version
    previous: Version
    started: UnixTime
    batch: BatchSize | None = None
    """The size of a batch; None: all at once."""
    rollback_batch: BatchSize | None = None
    wait_s: float = 0.0
    alarms: tuple[str, ...] = ()
    """The names for the site's alarm command; a firing alarm rolls the update back."""
    next_batch_at: UnixTime = 0.0
    failures: int = 0
    counted: frozenset[str] = frozenset()
    """The failed tries that were counted, so that each counts once."""
    finished: UnixTime | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """A machine that was given up before it served, at `at` (Unix s): its token, and a digest of its recipe."""

    token: str
    recipe: str
    at: UnixTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One instance group. `partition` is empty for none; `good` is the goal at the last InService (None: never).

    `minimum_since` is when the MinCount clock started (Unix s); None while it does not run. `extras` is the JSON text
    of values that the API stores and returns, without an effect on decisions. `logical` counts all logical ids so far.
    """

    name: str
    role: Role
    types: tuple[str, ...]
    goal: Goal
    status: GroupStatus
    created: UnixTime
    partition: str = ""
    features: frozenset[str] = frozenset()
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    version: Version = field(default_factory=Version)
    on_start_checks: tuple[str, ...] = ()
    threads_per_core: int = 0
    good: Goal | None = None
    minimum_since: UnixTime | None = None
    message: str = ""
    """Why the group is not as requested (rollback, failure), for people."""
    rolled_back: UnixTime | None = None
    """When the group was last rolled back (Unix s)."""
    given_up: tuple[GivenUp, ...] = ()
    """The machines given up within a day."""
    rollout: Rollout | None = None
    extras: str = "{}"
    logical: int = 0

    @property
    def turn(self) -> tuple[int, float, str]:
        """Return the sort key of groups: controllers first, compute nodes last, older groups before younger ones."""
        return list(Role).index(self.role), self.created, self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One scaling operation, for ListClusterOperations and events: the goals of groups before and after.

    `superseded` holds the groups for which a later operation came before this one was reached.
    """

    id: str
    at: UnixTime
    before: Mapping[str, Goal] = field(default_factory=lambda: MappingProxyType({}))
    after: Mapping[str, Goal] = field(default_factory=lambda: MappingProxyType({}))
    superseded: frozenset[str] = frozenset()
    finished: UnixTime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The one API cluster of this head. `id` is the last part of its ARN (12 of a-z0-9).

    `recovery` False (NodeRecovery None): no node of its groups is repaired automatically.
    """

    name: str
    id: str
    created: UnixTime
    status: ClusterStatus
    continuous: bool = True
    recovery: bool = True
    message: str = ""
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    extras: str = "{}"
    serial: int = 0
    """The count of all slots, operations and software updates so far, for unique ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientToken:
    """The answer to a call with a client token: the same for the same call; another call is refused."""

    digest: str
    answer: str
    at: UnixTime
