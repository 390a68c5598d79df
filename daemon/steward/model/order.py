"""Orders of API callers for the cluster: values that the cycle carries out, each in full or not at all.

Every order is checked against the memory and the picture of its cycle (`policy/orders`): it is carried out, or refused
with a Refusal and without an effect. `who` is the caller's name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from steward.model.events import Event
from steward.model.group import BatchSize, Role
from steward.model.memory import Memory
from steward.model.quota_order import QuotaOrder
from steward.model.setup import Lifecycle

# Orders of people for an elastic run.


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRun:
    """The order to change an elastic run: at most `size` nodes (0: no limit), paused or not; None: unchanged."""

    who: str
    run: int
    size: int | None = None
    paused: bool | None = None


class RefusalKind(Enum):
    """The kind of a refusal, in the API's error codes."""

    VALIDATION = "ValidationException"
    NOT_FOUND = "ResourceNotFound"
    IN_USE = "ResourceInUse"
    CONFLICT = "ConflictException"
    LIMIT = "ResourceLimitExceeded"


class Refusal(Exception):
    """A refused order, without an effect; `str()` is one clear line."""

    def __init__(self, kind: RefusalKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWish:
    """One entry of InstanceGroups. None: not given (an update keeps the current value)."""

    name: str
    count: int
    minimum: int | None = None
    types: tuple[str, ...] = ()
    role: Role | None = None
    partition: str | None = None
    lifecycle: Lifecycle | None = None
    on_start_checks: tuple[str, ...] | None = None
    threads_per_core: int | None = None
    image: str | None = None
    release: str | None = None
    extras: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCluster:
    """The order to create the cluster."""

    who: str
    name: str
    groups: tuple[GroupWish, ...]
    continuous: bool = True
    recovery: bool = True
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    extras: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateCluster:
    """The order to change, add and delete groups of the cluster."""

    who: str
    cluster: str
    groups: tuple[GroupWish, ...] = ()
    delete: tuple[str, ...] = ()
    recovery: bool | None = None
    continuous: bool | None = None
    extras: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteCluster:
    """The order to delete the cluster."""

    who: str
    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddNodes:
    """The order to add nodes; `token` is the client token, `wishes` are pairs of a group and a number of nodes."""

    who: str
    cluster: str
    wishes: tuple[tuple[str, int], ...]
    token: str = ""


class NodeWish(Enum):
    """The requested action on nodes."""

    DELETE = "delete"
    REBOOT = "reboot"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchNodes:
    """The order to delete, reboot or replace nodes, by instance ids and by logical ids."""

    who: str
    cluster: str
    wish: NodeWish
    ids: tuple[str, ...] = ()
    logical_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSoftware:
    """The order for a software update: `groups` are pairs of a name and a release (or empty); empty: every group.

    `batch` None: all nodes at once.
    """

    who: str
    cluster: str
    groups: tuple[tuple[str, str], ...] = ()
    image: str = ""
    batch: BatchSize | None = None
    rollback_batch: BatchSize | None = None
    wait_s: float = 0.0
    alarms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StartHealthCheck:
    """The order for deep checks of groups: `wishes` are triples of group, instance ids (empty: all) and checks."""

    who: str
    cluster: str
    wishes: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDeep:
    """The order for a deep check of nodes by name; without kinds: all kinds."""

    who: str
    nodes: tuple[str, ...]
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    """The approval of repairs that wait for it (`repair.mode = "ask"`), each by its case or its node."""

    who: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTags:
    """The order to change the tags of a resource."""

    who: str
    arn: str
    put: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    drop: tuple[str, ...] = ()


ClusterOrder = (
    CreateCluster
    | UpdateCluster
    | DeleteCluster
    | AddNodes
    | TouchNodes
    | UpdateSoftware
    | StartHealthCheck
    | CheckDeep
    | ChangeTags
    | QuotaOrder
)
Order = ClusterOrder | ChangeRun | Approve


class NodeRefusal(Enum):
    """The reason why one node of a batch was refused; each operation of the API has its own word for it."""

    NOT_FOUND = "not found"
    BAD_STATUS = "bad status"
    IN_USE = "in use"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutcome:
    """One line of a batch's answer; `refused` None: accepted."""

    id: str
    is_logical: bool
    refused: NodeRefusal | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """One new slot of AddNodes, or a group that could not grow (`logical` empty, `refused` says why)."""

    group: str
    logical: str = ""
    refused: str = ""
    count: int = 1
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAnswer:
    """The answer to the caller of an order, beyond success."""

    cluster_id: str = ""
    nodes: tuple[NodeOutcome, ...] = ()
    added: tuple[Added, ...] = ()
    runs: tuple[str, ...] = ()
    """The ids of the deep checks that were started."""
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    made: str = ""
    """The id of a new quota or scheduler configuration."""
    version: int = 0
    """The version after a change."""


# The result of an order.


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The result of a carried-out order: the new memory, events, and the caller's answer."""

    memory: Memory
    events: tuple[Event, ...] = ()
    answer: OrderAnswer = field(default_factory=OrderAnswer)
