"""CreateCluster and DeleteCluster: the one cluster of this head."""

from dataclasses import replace
from types import MappingProxyType

from steward.model.events import Level
from steward.model.group import Cluster, ClusterStatus, Goal, GroupStatus
from steward.model.order import Answer, CreateCluster, DeleteCluster, Refusal, RefusalKind
from steward.policy.orders.desk import Desk, new_cluster_id
from steward.policy.orders.groups import new_group
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
from steward.policy.orders.tags import check_tags
from steward.policy.orders.touch import is_stuck, try_again


def create(order: CreateCluster, desk: Desk) -> Answer:
    """Remember the cluster and its groups; their machines come with the next cycles."""
    _check_new(order, desk)
    groups = [new_group(wish, desk) for wish in order.groups]
    for group, wish in zip(groups, order.groups, strict=True):
        check_group(group, desk, continuous=order.continuous, minimum=wish.minimum)
    check_roles(groups, order.name, has_slurm_config=has_slurm_config(order.groups))
    check_limits(groups, desk.rules)
    desk.cluster = Cluster(
        name=order.name,
        id=new_cluster_id(order.name, desk.now),
        created=desk.now,
        status=ClusterStatus.CREATING,
        continuous=order.continuous,
        recovery=order.recovery,
        tags=MappingProxyType(dict(order.tags)),
        extras=order.extras,
    )
    desk.operations, desk.client_tokens = {}, {}
    desk.groups = {group.name: replace(group, goal=replace(group.goal, target=0, minimum=0)) for group in groups}
    operation = desk.set_goals({group.name: group.goal for group in groups})
    sizes = ", ".join(f"{group.name} {group.goal.target}" for group in groups)
    text = f"{desk.who} created cluster {order.name}: {sizes}"
    desk.tell("cluster.created", text, operation=operation.id if operation else "")
    return Answer(cluster_id=desk.cluster.id)


def _check_new(order: CreateCluster, desk: Desk) -> None:
    if not desk.rules.enabled:
        raise invalid("This head makes no clusters: capacity.enabled is false in steward.toml.")
    if desk.cluster is not None and desk.cluster.name == order.name:
        raise Refusal(RefusalKind.IN_USE, f"Cluster {order.name} exists already.")
    if desk.cluster is not None:
        raise limit(f"This head looks after one Slurm cluster: {desk.cluster.name}.")
    if not order.groups:
        raise invalid("InstanceGroups: a cluster needs at least one instance group.")
    check_repeated((wish.name for wish in order.groups), "InstanceGroups")
    check_classic(order.groups)
    check_tags(order.tags)


def delete(order: DeleteCluster, desk: Desk) -> Answer:
    """Allowed in every state; while it is being deleted already, only to try again what failed. Instances end with the
    next cycles."""
    cluster = desk.the(order.cluster)
    if cluster.status is ClusterStatus.DELETING:
        return _again(cluster, desk)
    desk.cluster = replace(cluster, status=ClusterStatus.DELETING)
    for group in list(desk.groups.values()):
        desk.keep(replace(group, status=GroupStatus.DELETING))
    operation = desk.set_goals({name: Goal(target=0) for name in desk.groups})
    text = f"{desk.who} deleted cluster {cluster.name}: {len(desk.groups)} groups go"
    desk.tell("cluster.deleting", text, level=Level.WARNING, operation=operation.id if operation else "")
    return Answer(cluster_id=cluster.id)


def _again(cluster: Cluster, desk: Desk) -> Answer:
    stuck = [desk.slots[node] for node in sorted(desk.slots) if is_stuck(desk.slots[node])]
    if not stuck:
        raise conflict(f"Cluster {cluster.name} is being deleted already.")
    try_again(stuck, desk)
    return Answer(cluster_id=cluster.id)
