"""DeleteCluster: every group goes, then the cluster."""

from dataclasses import replace

from steward.model.events import Level
from steward.model.group import Cluster, ClusterStatus, Goal, GroupStatus
from steward.model.order import Answer, DeleteCluster
from steward.policy.orders.desk import Desk
from steward.policy.orders.refuse import conflict
from steward.policy.orders.stuck import is_stuck, try_again


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
