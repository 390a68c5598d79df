"""The document that `steward quota apply` reads: quotas and how they share, in the service's own words."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from steward.api.json11 import validate
from steward.api.json11.errors import ApiError
from steward.api.json11.service import Service
from steward.api.operations.quota_wish import quota_wish, scheduler_wish
from steward.model.order import Refusal, RefusalKind
from steward.model.quota_order import ApplyQuotas, QuotaWish, SchedulerWish
from steward.model.text import shown

QUOTAS, SCHEDULER = "ComputeQuotas", "ClusterSchedulerConfig"
_SCHEDULER_NAME = "scheduler"
_KNOWN = MappingProxyType({QUOTAS: list, SCHEDULER: dict})


def order_of(document: Any, service: Service, *, who: str, arn: str, prune: bool, based_on: str) -> ApplyQuotas:
    """Each entry is an input of CreateComputeQuota, or the one of CreateClusterSchedulerConfig, without ClusterArn; a
    quota without a Name is called as its team. Raises Refusal: one line for everything that is wrong with an entry."""
    found = _outline(document)
    quotas = [
        _quota(entry, f"{QUOTAS}.{number}", service, arn) for number, entry in enumerate(found.get(QUOTAS, ()), 1)
    ]
    scheduler = _scheduler(found[SCHEDULER], service, arn) if SCHEDULER in found else None
    return ApplyQuotas(who=who, quotas=tuple(quotas), scheduler=scheduler, prune=prune, based_on=based_on)


def _outline(document: Any) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise _invalid(f"the document is no table with {QUOTAS} and {SCHEDULER}")
    if unknown := sorted(set(document) - _KNOWN.keys()):
        raise _invalid(f"{shown(unknown[0])} is not known at the top: there are {QUOTAS} and {SCHEDULER}")
    for name, kind in _KNOWN.items():
        if name in document and not isinstance(document[name], kind):
            raise _invalid(f"{name} is no {'list' if kind is list else 'table'}")
    return document


def _quota(entry: Any, place: str, service: Service, arn: str) -> tuple[str, QuotaWish]:
    if not isinstance(entry, dict):
        raise _invalid(f"{place} is no table")
    target = entry.get("ComputeQuotaTarget")
    team = target.get("TeamName") if isinstance(target, dict) else None
    members = _read("CreateComputeQuota", {"Name": team, **entry}, place, service, arn)
    return members["Name"], quota_wish(members)


def _scheduler(entry: Any, service: Service, arn: str) -> tuple[str, SchedulerWish]:
    members = _read("CreateClusterSchedulerConfig", {"Name": _SCHEDULER_NAME, **entry}, SCHEDULER, service, arn)
    return members["Name"], scheduler_wish(members)


def _read(operation: str, entry: Mapping[str, Any], place: str, service: Service, arn: str) -> dict[str, Any]:
    """Tags belong to a call of the API: they are not in a document."""
    for name in ("ClusterArn", "Tags"):
        if name in entry:
            raise _invalid(f"{place}: leave {name} out")
    try:
        return validate.read(service.input_shape(operation), {**entry, "ClusterArn": arn})
    except ApiError as error:
        raise _invalid(f"{place}: {error.message}") from error


def _invalid(text: str) -> Refusal:
    return Refusal(RefusalKind.VALIDATION, text)
