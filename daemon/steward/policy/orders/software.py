"""UpdateClusterSoftware: the wish for another version; `groups/rollout.py` brings it to the nodes batch by batch."""

from dataclasses import replace

from steward.model.group import BatchSize, Cluster, ClusterStatus, Group, GroupStatus, Role, Rollout, RolloutState
from steward.model.order import Answer, UpdateSoftware
from steward.policy.orders.desk import Desk
from steward.policy.orders.refuse import check_not_busy, check_open_for_nodes, check_repeated, group_of, invalid


def update_software(order: UpdateSoftware, desk: Desk) -> Answer:
    """Without groups: all whose machines can be made anew. Scripts run again also where image and release stay."""
    cluster = desk.the(order.cluster)
    check_not_busy(cluster, "UpdateClusterSoftware")
    _check(order, desk)
    for group, release in _groups(order, desk, cluster):
        check_open_for_nodes(group, "UpdateClusterSoftware")
        desk.keep(_begun(group, release, order, desk))
        shown = " ".join(word for word in (order.image, release) if word) or "its present image"
        desk.tell(
            "rollout.ordered", f"{desk.who} ordered a software update of {group.name} to {shown}", group=group.name
        )
    if not cluster.continuous:
        desk.cluster = replace(desk.the(order.cluster), status=ClusterStatus.SYSTEM_UPDATING)
    return Answer(cluster_id=cluster.id)


def _check(order: UpdateSoftware, desk: Desk) -> None:
    check_repeated((name for name, _ in order.groups), "InstanceGroups")
    for batch in (order.batch, order.rollback_batch):
        if batch is not None and not _is_sane(batch):
            raise invalid("DeploymentConfig: a batch is at least one node, and at most 100 percent.")
    if order.wait_s < 0:
        raise invalid("DeploymentConfig: WaitIntervalInSeconds must not be negative.")
    if order.alarms and not desk.rules.has_alarm_command:
        raise invalid("AutoRollbackConfiguration: this head asks nobody about alarms; set capacity.alarms.")


def _is_sane(batch: BatchSize) -> bool:
    return (batch.count >= 1 and batch.percent == 0) or (batch.count == 0 and 1 <= batch.percent <= 100)


def _groups(order: UpdateSoftware, desk: Desk, cluster: Cluster) -> list[tuple[Group, str]]:
    """What is updated, and to which release (empty: as it is). The controller's machine is the head's own."""
    if not order.groups:
        found = [(group, "") for group in desk.staying() if group.role is not Role.CONTROLLER]
        if not found:
            raise invalid(f"Cluster {cluster.name} has no instance group whose software Steward updates.")
        return found
    named = [(group_of(desk, name, cluster), release) for name, release in order.groups]
    for group, _ in named:
        if group.role is Role.CONTROLLER:
            raise invalid(f"Instance group {group.name} is the controller: its machine is updated by its admin.")
    return named


def _begun(group: Group, release: str, order: UpdateSoftware, desk: Desk) -> Group:
    old = group.version
    wanted = replace(old, image=order.image or old.image, release=release or old.release, serial=desk.next_serial())
    rollout = Rollout(
        state=RolloutState.PENDING,
        wanted=wanted,
        previous=old,
        started=desk.now,
        batch=order.batch,
        rollback_batch=order.rollback_batch,
        wait_s=order.wait_s,
        alarms=order.alarms,
    )
    return replace(group, version=wanted, status=GroupStatus.SYSTEM_UPDATING, rollout=rollout)
