"""Orders of API callers about quotas. Each is carried out in full or not at all (`policy/orders`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from steward.model.quota import PreemptTeamTasks, PriorityClass, Share, Strategy


def _none() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaWish:
    """The requested values of one quota. None: not given; a new quota takes the default, another keeps its value."""

    team: str | None = None
    weight: int | None = None
    shares: tuple[Share, ...] | None = None
    strategy: Strategy | None = None
    borrow_percent: int | None = None
    borrow_absolute: tuple[Share, ...] | None = None
    preempt: PreemptTeamTasks | None = None
    enabled: bool | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateQuota:
    """The order to create a quota in `cluster` (an ARN); the answer's `made` is the new quota's id."""

    who: str
    cluster: str
    name: str
    wish: QuotaWish
    tags: Mapping[str, str] = field(default_factory=_none)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateQuota:
    """The order to change a quota; refused unless `version` is the current one, so that no change is overwritten."""

    who: str
    id: str
    version: int
    wish: QuotaWish


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteQuota:
    """The order to delete a quota."""

    who: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerWish:
    """The requested values of how teams share; None as in QuotaWish."""

    classes: tuple[PriorityClass, ...] | None = None
    fair_share: bool | None = None
    idle_sharing: bool | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateScheduler:
    """The order to create the cluster's only scheduler configuration."""

    who: str
    cluster: str
    name: str
    wish: SchedulerWish
    tags: Mapping[str, str] = field(default_factory=_none)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateScheduler:
    """The order to change the scheduler configuration; `version` as in UpdateQuota."""

    who: str
    id: str
    version: int
    wish: SchedulerWish


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteScheduler:
    """The order to delete the scheduler configuration."""

    who: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyQuotas:
    """The order to apply a whole document of `steward quota apply`: quotas by name, and how they share (None: as is).

    A value that the document does not give takes its default. `prune`: delete the quotas that it does not name.
    `based_on` is the `fingerprint` that its writer saw: the order is refused if the quotas changed since; empty: any.
    """

    who: str
    quotas: tuple[tuple[str, QuotaWish], ...] = ()
    scheduler: tuple[str, SchedulerWish] | None = None
    prune: bool = False
    based_on: str = ""


QuotaOrder = CreateQuota | UpdateQuota | DeleteQuota | CreateScheduler | UpdateScheduler | DeleteScheduler | ApplyQuotas
