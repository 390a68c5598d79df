"""Apply a document of quotas as a whole: create, change or (with prune) delete quotas, all or nothing."""

import hashlib
from collections.abc import Mapping
from dataclasses import fields, replace

from steward.model.order import OrderAnswer
from steward.model.quota import ComputeQuota, QuotaStatus, SchedulerConfig
from steward.model.quota_order import ApplyQuotas, QuotaWish, SchedulerWish
from steward.policy.orders import quota, scheduler
from steward.policy.orders.order_draft import OrderDraft
from steward.policy.orders.refuse import check_repeated, conflict, invalid


def apply_quotas(order: ApplyQuotas, draft: OrderDraft) -> OrderAnswer:
    """Apply the document.

    Raises Refusal if a part of the document is refused, or if a quota was changed since the differences were shown.
    """
    if order.based_on not in ("", fingerprint(draft.quotas, draft.scheduler)):
        raise conflict("The quotas changed since this was shown: look at the difference again.")
    check_repeated((name for name, _ in order.quotas), "ComputeQuotas")
    if order.scheduler is not None:
        _apply_scheduler(*order.scheduler, draft)
    wanted = dict(order.quotas)
    present = {each.name: each for each in draft.quotas.values()}
    for name in sorted(present.keys() - wanted.keys()) if order.prune else ():
        quota.mark_as_deleting(present[name], draft)
    for name, wish in wanted.items():
        _apply_quota(name, wish, present.get(name), draft)
    return OrderAnswer()


def fingerprint(quotas: Mapping[str, ComputeQuota], present: SchedulerConfig | None) -> str:
    """Return a fingerprint of the versions of all quotas and of the scheduler configuration."""
    words = [f"{each.id}:{each.version}:{each.status is QuotaStatus.DELETING}" for each in quotas.values()]
    if present is not None:
        words.append(f"{present.id}:{present.version}")
    return hashlib.sha256(" ".join(sorted(words)).encode()).hexdigest()[:16]


def _apply_quota(name: str, wish: QuotaWish, present: ComputeQuota | None, draft: OrderDraft) -> None:
    """Create or change one quota; members that the document leaves out get their defaults."""
    if present is None or (present.status is QuotaStatus.DELETING and wish.team in (None, present.team)):
        quota.make(name, replace(wish, team=wish.team or (present.team if present is not None else None)), draft)
        return
    if wish.team not in (None, present.team):
        raise invalid(f"Quota {name} is of team {present.team}: give the quota of {wish.team} another name.")
    whole = _with_defaults(wish, ComputeQuota(id="", name=name, team=present.team, shares=()))
    same = all(getattr(present, one.name) == getattr(whole, one.name) for one in fields(QuotaWish))
    if not same:
        quota.changed_quota(present, whole, draft)


def _with_defaults(wish: QuotaWish, default: ComputeQuota) -> QuotaWish:
    said = {one.name: getattr(wish, one.name) for one in fields(QuotaWish)}
    return replace(wish, **{name: getattr(default, name) for name, value in said.items() if value is None})


def _apply_scheduler(name: str, wish: SchedulerWish, draft: OrderDraft) -> None:
    present = draft.scheduler
    if present is None:
        scheduler.make(name, wish, draft)
        return
    if present.name != name:
        raise invalid(f"The cluster's scheduler configuration is called {present.name}: call it so in the document.")
    default = SchedulerConfig()
    said = {one.name: getattr(wish, one.name) for one in fields(SchedulerWish)}
    whole = replace(wish, **{key: getattr(default, key) for key, value in said.items() if value is None})
    if any(getattr(present, one.name) != getattr(whole, one.name) for one in fields(SchedulerWish)):
        scheduler.changed_scheduler(present, whole, draft)
