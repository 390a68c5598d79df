"""CreateClusterSchedulerConfig, UpdateClusterSchedulerConfig, DeleteClusterSchedulerConfig: how teams share."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

from steward.model.order import Answer
from steward.model.quota import QuotaStatus, SchedulerConfig
from steward.model.quota_order import CreateScheduler, DeleteScheduler, SchedulerWish, UpdateScheduler
from steward.policy.orders.cluster import check_tags
from steward.policy.orders.desk import Desk
from steward.policy.orders.quota import check_cluster, check_version, new_id, said
from steward.policy.orders.refuse import check_repeated, conflict, limit, not_found


def create_scheduler(order: CreateScheduler, desk: Desk) -> Answer:
    """Raises Refusal where there is one already."""
    check_cluster(order.cluster, desk)
    check_tags(order.tags)
    return Answer(made=make(order.name, order.wish, desk, tags=order.tags).id)


def update_scheduler(order: UpdateScheduler, desk: Desk) -> Answer:
    """Members that the call does not give stay as they are. The answer has the new version."""
    present = scheduler_of(order.id, desk)
    check_version(present, order.version, f"Scheduler configuration {present.name}")
    return Answer(made=present.id, version=change(present, order.wish, desk).version)


def delete_scheduler(order: DeleteScheduler, desk: Desk) -> Answer:
    """Then the defaults count. Nothing of it is in Slurm, so it is gone at once."""
    present = scheduler_of(order.id, desk)
    desk.scheduler = None
    desk.tell("quota.scheduler", f"{desk.who} deleted scheduler configuration {present.name}: the defaults apply")
    return Answer(made=present.id)


def make(name: str, wish: SchedulerWish, desk: Desk, *, tags: Any = MappingProxyType({})) -> SchedulerConfig:
    present = desk.scheduler
    if present is not None and present.name == name:
        raise conflict(f"Scheduler configuration {name} exists already (id {present.id}).")
    if present is not None:
        raise limit(f"A cluster has one scheduler configuration: {present.name} (id {present.id}); update that.")
    made = SchedulerConfig(
        id=new_id("scheduler", name, desk.now),
        name=name,
        tags=MappingProxyType(dict(tags)),
        status=QuotaStatus.CREATED,
        created=desk.now,
        created_by=desk.who,
        modified=desk.now,
        modified_by=desk.who,
    )
    made = replace(made, **said(wish))
    _check(made)
    desk.scheduler = made
    desk.tell("quota.scheduler", f"{desk.who} created scheduler configuration {name}")
    return made


def change(present: SchedulerConfig, wish: SchedulerWish, desk: Desk) -> SchedulerConfig:
    """The next version of it."""
    changed = replace(
        present,
        **said(wish),
        version=present.version + 1,
        status=QuotaStatus.UPDATED,
        failure="",
        modified=desk.now,
        modified_by=desk.who,
    )
    _check(changed)
    desk.scheduler = changed
    text = f"{desk.who} changed scheduler configuration {present.name} (version {changed.version})"
    desk.tell("quota.scheduler", text)
    return changed


def scheduler_of(id: str, desk: Desk) -> SchedulerConfig:
    """Raises Refusal where there is none of this id."""
    if desk.scheduler is None or desk.scheduler.id != id:
        raise not_found(f"Cluster scheduler configuration {id} not found.")
    return desk.scheduler


def _check(config: SchedulerConfig) -> None:
    check_repeated((each.name for each in config.classes), "PriorityClasses")
