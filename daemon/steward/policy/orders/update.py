"""UpdateCluster: groups added, resized, changed and deleted, all in one operation."""

from dataclasses import replace

from steward.model.group import BatchSize, Cluster, ClusterStatus, Goal, Group, GroupStatus, Role, Rollout, RolloutState
from steward.model.order import Answer, GroupWish, UpdateCluster, UpdateSoftware
from steward.policy.groups.serving import current_counts
from steward.policy.orders.desk import Desk, is_going
from steward.policy.orders.groups import changed_goal, changed_group, new_group, with_extras
from steward.policy.orders.refuse import (
    check_group,
    check_limits,
    check_not_busy,
    check_open_for_nodes,
    check_repeated,
    check_roles,
    conflict,
    group_of,
    has_slurm_config,
    invalid,
)


def update(order: UpdateCluster, desk: Desk) -> Answer:
    """A name that is new adds a group, a known one changes it. Members that are not given stay."""
    cluster = desk.the(order.cluster)
    check_not_busy(cluster, "UpdateCluster")
    check_repeated((wish.name for wish in order.groups), "InstanceGroups")
    cluster = desk.cluster = replace(
        cluster,
        recovery=cluster.recovery if order.recovery is None else order.recovery,
        continuous=cluster.continuous if order.continuous is None else order.continuous,
        extras=with_extras(cluster.extras, order.extras),
    )
    goals = _delete_groups(order, desk, cluster)
    for wish in order.groups:
        goals[wish.name] = _wish(wish, desk, cluster)
    _check_whole(goals, order, desk, cluster)
    operation = desk.set_goals(goals)
    if operation is not None and not cluster.continuous:
        desk.cluster = replace(desk.cluster, status=ClusterStatus.UPDATING)
    desk.tell("cluster.updated", _text(order, goals, desk), operation=operation.id if operation else "")
    return Answer(cluster_id=cluster.id)


def _wish(wish: GroupWish, desk: Desk, cluster: Cluster) -> Goal:
    """Carry out one entry, all but its goal, which it returns."""
    group = desk.groups.get(wish.name)
    if group is None:
        made = new_group(wish, desk)
        check_group(made, desk, continuous=cluster.continuous, minimum=wish.minimum)
        desk.keep(replace(made, goal=Goal(target=0)))
        return made.goal
    if is_going(group):
        raise conflict(f"Instance group {group.name} is being deleted.")
    goal = changed_goal(group, wish)
    changed = changed_group(group, wish, desk)
    check_group(replace(changed, goal=goal), desk, continuous=cluster.continuous, minimum=wish.minimum)
    desk.keep(with_clock(changed, goal, desk))
    return goal


def with_clock(group: Group, goal: Goal, desk: Desk) -> Group:
    """A changed minimum starts the MinCount clock anew; while a raised one is not there, the group is Updating. With
    another goal what became of the last one is told no more."""
    if goal != group.goal:
        group = replace(group, message="")
    if goal.minimum == group.goal.minimum:
        return group
    if group.status is GroupStatus.CREATING:
        return replace(group, minimum_since=desk.now)
    is_raised = goal.minimum > (group.good or Goal(target=0)).minimum
    if is_raised and goal.minimum > current_counts(desk.memory(), desk.seen).get(group.name, 0):
        return replace(group, status=GroupStatus.UPDATING, minimum_since=desk.now)
    return group


def _delete_groups(order: UpdateCluster, desk: Desk, cluster: Cluster) -> dict[str, Goal]:
    """Mark groups as going; their goal is nothing. Their slots leave with the next cycles."""
    check_repeated(order.delete, "InstanceGroupsToDelete")
    both = sorted({wish.name for wish in order.groups} & set(order.delete))
    if both:
        raise invalid(f"{', '.join(both)}: in InstanceGroups and in InstanceGroupsToDelete; take one of them out.")
    for name in order.delete:
        group = group_of(desk, name, cluster)
        if group.role is Role.CONTROLLER:
            raise invalid(f"Instance group {name} is the controller: it cannot be deleted.")
        desk.keep(replace(group, status=GroupStatus.DELETING))
    return {name: Goal(target=0) for name in order.delete}


def _check_whole(goals: dict[str, Goal], order: UpdateCluster, desk: Desk, cluster: Cluster) -> None:
    """Rules of all groups together, as they will be."""
    staying = [replace(group, goal=goals.get(group.name, group.goal)) for group in desk.staying()]
    if not staying:
        raise invalid("InstanceGroupsToDelete: at least one instance group must stay; DeleteCluster deletes them all.")
    had_roles = any(group.role is not Role.COMPUTE for group in desk.before.groups.values())
    check_roles(staying, cluster.name, has_slurm_config=had_roles or has_slurm_config(order.groups))
    check_limits(staying, desk.rules)


def _text(order: UpdateCluster, goals: dict[str, Goal], desk: Desk) -> str:
    before = desk.before.groups
    sizes = [
        f"{name} {before[name].goal.target if name in before else 0} -> {goals[name].target}"
        for name in sorted(goals)
        if name not in order.delete
    ]
    gone = [f"{name} deleted" for name in order.delete]
    what = ", ".join([*sizes, *gone]) or "settings"
    return f"{desk.who} updated cluster {order.cluster}: {what}"


# UpdateClusterSoftware: the wish for another version; `groups/rollout.py` brings it to the nodes batch by batch.


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
    """The groups that are updated, and to which release (empty: as it is). The controller's machine is the head's
    own."""
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
