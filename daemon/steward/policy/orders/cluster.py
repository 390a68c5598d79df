"""Orders about the one cluster of this head: CreateCluster, DeleteCluster, AddTags, DeleteTags."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from steward.model.arn import quota_arn, scheduler_arn
from steward.model.events import Level
from steward.model.group import Cluster, ClusterStatus, Goal, GroupStatus
from steward.model.order import ChangeTags, CreateCluster, DeleteCluster, OrderAnswer, Refusal, RefusalKind
from steward.policy.orders.groups import new_group
from steward.policy.orders.order_draft import OrderDraft, new_cluster_id
from steward.policy.orders.refuse import (
    check_classic,
    check_group,
    check_limits,
    check_repeated,
    check_roles,
    conflict,
    has_slurm_config,
    invalid,
    limit,
)
from steward.policy.orders.touch import is_stuck, retry_backups


def create(order: CreateCluster, draft: OrderDraft) -> OrderAnswer:
    """Create the cluster and its groups; the next turns launch their instances."""
    _check_new(order, draft)
    groups = [new_group(wish, draft) for wish in order.groups]
    for group, wish in zip(groups, order.groups, strict=True):
        check_group(group, draft, continuous=order.continuous, minimum=wish.minimum)
    check_roles(groups, order.name, has_slurm_config=has_slurm_config(order.groups))
    check_limits(groups, draft.rules)
    draft.cluster = Cluster(
        name=order.name,
        id=new_cluster_id(order.name, draft.now),
        created=draft.now,
        status=ClusterStatus.CREATING,
        continuous=order.continuous,
        recovery=order.recovery,
        tags=MappingProxyType(dict(order.tags)),
        extras=order.extras,
    )
    for table in (draft.operations, draft.client_tokens, draft.groups):
        table.clear()
    for group in groups:
        draft.keep_group(replace(group, goal=replace(group.goal, target=0, minimum=0)))
    operation = draft.set_goals({group.name: group.goal for group in groups})
    sizes = ", ".join(f"{group.name} {group.goal.target}" for group in groups)
    text = f"{draft.who} created cluster {order.name}: {sizes}"
    draft.tell("cluster.created", text, operation=operation.id if operation else "")
    return OrderAnswer(cluster_id=draft.cluster.id)


def _check_new(order: CreateCluster, draft: OrderDraft) -> None:
    if not draft.rules.enabled:
        raise invalid("This head makes no clusters: capacity.enabled is false in steward.toml.")
    if draft.cluster is not None and draft.cluster.name == order.name:
        raise Refusal(RefusalKind.IN_USE, f"Cluster {order.name} exists already.")
    if draft.cluster is not None:
        raise limit(f"This head looks after one Slurm cluster: {draft.cluster.name}.")
    if not order.groups:
        raise invalid("InstanceGroups: a cluster needs at least one instance group.")
    check_repeated((wish.name for wish in order.groups), "InstanceGroups")
    check_classic(order.groups)
    check_tags(order.tags)


def delete(order: DeleteCluster, draft: OrderDraft) -> OrderAnswer:
    """Delete the cluster in any state; the next turns end its instances.

    If the cluster is being deleted already, retry the backups that failed. Raises Refusal if none failed.
    """
    cluster = draft.cluster_named(order.cluster)
    if cluster.status is ClusterStatus.DELETING:
        return _retry_stuck(cluster, draft)
    draft.cluster = replace(cluster, status=ClusterStatus.DELETING)
    for group in list(draft.groups.values()):
        draft.keep_group(replace(group, status=GroupStatus.DELETING))
    operation = draft.set_goals({name: Goal(target=0) for name in draft.groups})
    text = f"{draft.who} deleted cluster {cluster.name}: {len(draft.groups)} groups go"
    draft.tell("cluster.deleting", text, level=Level.WARNING, operation=operation.id if operation else "")
    return OrderAnswer(cluster_id=cluster.id)


def _retry_stuck(cluster: Cluster, draft: OrderDraft) -> OrderAnswer:
    stuck = [draft.slots[node] for node in sorted(draft.slots) if is_stuck(draft.slots[node])]
    if not stuck:
        raise conflict(f"Cluster {cluster.name} is being deleted already.")
    retry_backups(stuck, draft)
    return OrderAnswer(cluster_id=cluster.id)


MOST_TAGS = 50
RESERVED = "aws:"


def change_tags(order: ChangeTags, draft: OrderDraft) -> OrderAnswer:
    """Change the tags of a cluster, a quota or a scheduler configuration. The answer has all tags after the change."""
    quota = next((each for each in draft.quotas.values() if quota_arn(each.id, draft.rules) == order.arn), None)
    if quota is not None:
        tags = _changed(quota.tags, order)
        draft.quotas[quota.id] = replace(quota, tags=tags)
        _tell("quota.tags", f"quota {quota.name}", quota.tags, tags, draft)
        return OrderAnswer(made=quota.id, tags=tags)
    scheduler = draft.scheduler
    if scheduler is not None and scheduler_arn(scheduler.id, draft.rules) == order.arn:
        tags = _changed(scheduler.tags, order)
        draft.scheduler = replace(scheduler, tags=tags)
        _tell("scheduler.tags", f"scheduler config {scheduler.name}", scheduler.tags, tags, draft)
        return OrderAnswer(made=scheduler.id, tags=tags)
    cluster = draft.cluster_named(order.arn)
    tags = _changed(cluster.tags, order)
    draft.cluster = replace(cluster, tags=tags)
    _tell("cluster.tags", f"cluster {cluster.name}", cluster.tags, tags, draft)
    return OrderAnswer(cluster_id=cluster.id, tags=tags)


def _changed(has: Mapping[str, str], order: ChangeTags) -> Mapping[str, str]:
    kept = {key: value for key, value in has.items() if key not in order.drop}
    tags = kept | dict(order.put)
    check_keys(order.put)
    check_number(tags)
    return MappingProxyType(tags)


def _tell(kind: str, what: str, before: Mapping[str, str], tags: Mapping[str, str], draft: OrderDraft) -> None:
    if dict(tags) != dict(before):
        draft.tell(kind, f"{draft.who} changed the tags of {what}")


def check_tags(tags: Mapping[str, str]) -> None:
    """Check the tags of a new resource. Raises Refusal."""
    check_keys(tags)
    check_number(tags)


def check_number(tags: Mapping[str, str]) -> None:
    if len(tags) > MOST_TAGS:
        raise limit(f"{len(tags)} tags; a resource has at most {MOST_TAGS}.")


def check_keys(tags: Iterable[str]) -> None:
    """Check that no key of new tags is reserved, ignoring case as AWS does. Raises Refusal."""
    reserved = sorted(key for key in tags if key.lower().startswith(RESERVED))
    if reserved:
        raise invalid(f"Tag keys that begin with {RESERVED} are reserved: {', '.join(reserved)}.")
