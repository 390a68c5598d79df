"""Orders of the API's callers about quotas. Each is carried out in full or not at all, like every other order
(`policy/orders`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from steward.model.quota import PreemptTeamTasks, PriorityClass, Share, Strategy


def _none() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaWish:
    """The wish for one quota. None: not said; a new quota takes the default, another keeps what it has."""

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
    """`cluster` is an ARN. The id of the new quota is the answer's `made`."""

    who: str
    cluster: str
    name: str
    wish: QuotaWish
    tags: Mapping[str, str] = field(default_factory=_none)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateQuota:
    """`version` must be the present one: nobody overwrites what somebody else has just changed."""

    who: str
    id: str
    version: int
    wish: QuotaWish


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteQuota:
    who: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerWish:
    """The wish for how teams share; None as in QuotaWish."""

    classes: tuple[PriorityClass, ...] | None = None
    fair_share: bool | None = None
    idle_sharing: bool | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateScheduler:
    """There is one for the cluster at most."""

    who: str
    cluster: str
    name: str
    wish: SchedulerWish
    tags: Mapping[str, str] = field(default_factory=_none)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateScheduler:
    who: str
    id: str
    version: int
    wish: SchedulerWish


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteScheduler:
    who: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyQuotas:
    """A whole document, as `steward quota apply` reads it: quotas by their names, and how they share (None: as it is).

    What the document does not say of a quota takes its default. `prune`: quotas that it does not name are deleted.
    `based_on` is what its writer was shown (`fingerprint`): refused when somebody has changed it since; empty: any.
    """

    who: str
    quotas: tuple[tuple[str, QuotaWish], ...] = ()
    scheduler: tuple[str, SchedulerWish] | None = None
    prune: bool = False
    based_on: str = ""


QuotaOrder = CreateQuota | UpdateQuota | DeleteQuota | CreateScheduler | UpdateScheduler | DeleteScheduler | ApplyQuotas
