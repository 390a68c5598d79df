"""CreateClusterSchedulerConfig, UpdateClusterSchedulerConfig, DeleteClusterSchedulerConfig: change how teams share."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

from steward.model.order import OrderAnswer
from steward.model.quota import QuotaStatus, SchedulerConfig
from steward.model.quota_order import CreateScheduler, DeleteScheduler, SchedulerWish, UpdateScheduler
from steward.policy.orders.cluster import check_tags
from steward.policy.orders.order_draft import OrderDraft
from steward.policy.orders.quota import check_cluster, check_version, given_fields, new_id
from steward.policy.orders.refuse import check_repeated, conflict, limit, not_found


def create_scheduler(order: CreateScheduler, draft: OrderDraft) -> OrderAnswer:
    """Create the scheduler configuration. Raises Refusal if there is one already."""
    check_cluster(order.cluster, draft)
    check_tags(order.tags)
    return OrderAnswer(made=make(order.name, order.wish, draft, tags=order.tags).id)


def update_scheduler(order: UpdateScheduler, draft: OrderDraft) -> OrderAnswer:
    """Change the scheduler configuration; members that are left out stay unchanged. The answer has the new version."""
    present = scheduler_of(order.id, draft)
    check_version(present, order.version, f"Scheduler configuration {present.name}")
    return OrderAnswer(made=present.id, version=changed_scheduler(present, order.wish, draft).version)


def delete_scheduler(order: DeleteScheduler, draft: OrderDraft) -> OrderAnswer:
    """Delete the scheduler configuration at once (Slurm has no part of it); the defaults apply from then on."""
    present = scheduler_of(order.id, draft)
    draft.scheduler = None
    draft.tell("quota.scheduler", f"{draft.who} deleted scheduler configuration {present.name}: the defaults apply")
    return OrderAnswer(made=present.id)


def make(name: str, wish: SchedulerWish, draft: OrderDraft, *, tags: Any = MappingProxyType({})) -> SchedulerConfig:
    present = draft.scheduler
    if present is not None and present.name == name:
        raise conflict(f"Scheduler configuration {name} exists already (id {present.id}).")
    if present is not None:
        raise limit(f"A cluster has one scheduler configuration: {present.name} (id {present.id}); update that.")
    made = SchedulerConfig(
        id=new_id("scheduler", name, draft.now),
        name=name,
        tags=MappingProxyType(dict(tags)),
        status=QuotaStatus.CREATED,
        created=draft.now,
        created_by=draft.who,
        modified=draft.now,
        modified_by=draft.who,
    )
    made = replace(made, **given_fields(wish))
    _check(made)
    draft.scheduler = made
    draft.tell("quota.scheduler", f"{draft.who} created scheduler configuration {name}")
    return made


def changed_scheduler(present: SchedulerConfig, wish: SchedulerWish, draft: OrderDraft) -> SchedulerConfig:
    """Return the next version of the configuration."""
    changed = replace(
        present,
        **given_fields(wish),
        version=present.version + 1,
        status=QuotaStatus.UPDATED,
        failure="",
        modified=draft.now,
        modified_by=draft.who,
    )
    _check(changed)
    draft.scheduler = changed
    text = f"{draft.who} changed scheduler configuration {present.name} (version {changed.version})"
    draft.tell("quota.scheduler", text)
    return changed


def scheduler_of(id: str, draft: OrderDraft) -> SchedulerConfig:
    """Return the configuration. Raises Refusal if there is none of this id."""
    if draft.scheduler is None or draft.scheduler.id != id:
        raise not_found(f"Cluster scheduler configuration {id} not found.")
    return draft.scheduler


def _check(config: SchedulerConfig) -> None:
    check_repeated((each.name for each in config.classes), "PriorityClasses")
