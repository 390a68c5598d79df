"""UpdateCluster: add, resize, change and delete groups, all in one operation. UpdateClusterSoftware is here, too."""

from dataclasses import replace

from steward.model.group import BatchSize, Cluster, ClusterStatus, Goal, Group, GroupStatus, Role, Rollout, RolloutState
from steward.model.order import GroupWish, OrderAnswer, UpdateCluster, UpdateSoftware
from steward.policy.facts.serving import current_counts
from steward.policy.orders.groups import changed_goal, changed_group, new_group, with_extras
from steward.policy.orders.order_draft import OrderDraft, is_going
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


def update(order: UpdateCluster, draft: OrderDraft) -> OrderAnswer:
    """Change the cluster: a new name adds a group, a known name changes one; members that are left out stay."""
    cluster = draft.cluster_named(order.cluster)
    check_not_busy(cluster, "UpdateCluster")
    check_repeated((wish.name for wish in order.groups), "InstanceGroups")
    cluster = draft.cluster = replace(
        cluster,
        recovery=cluster.recovery if order.recovery is None else order.recovery,
        continuous=cluster.continuous if order.continuous is None else order.continuous,
        extras=with_extras(cluster.extras, order.extras),
    )
    goals = _delete_groups(order, draft, cluster)
    for wish in order.groups:
        goals[wish.name] = _apply_wish(wish, draft, cluster)
    _check_whole(goals, order, draft, cluster)
    operation = draft.set_goals(goals)
    if operation is not None and not cluster.continuous:
        draft.cluster = replace(draft.cluster, status=ClusterStatus.UPDATING)
    draft.tell("cluster.updated", _text(order, goals, draft), operation=operation.id if operation else "")
    return OrderAnswer(cluster_id=cluster.id)


def _apply_wish(wish: GroupWish, draft: OrderDraft, cluster: Cluster) -> Goal:
    """Add or change one group, except its goal, and return the goal."""
    group = draft.groups.get(wish.name)
    if group is None:
        made = new_group(wish, draft)
        check_group(made, draft, continuous=cluster.continuous, minimum=wish.minimum)
        draft.keep_group(replace(made, goal=Goal(target=0)))
        return made.goal
    if is_going(group):
        raise conflict(f"Instance group {group.name} is being deleted.")
    goal = changed_goal(group, wish)
    changed = changed_group(group, wish, draft)
    check_group(replace(changed, goal=goal), draft, continuous=cluster.continuous, minimum=wish.minimum)
    draft.keep_group(with_clock(changed, goal, draft))
    return goal


def with_clock(group: Group, goal: Goal, draft: OrderDraft) -> Group:
    """Return the group with the time limit for its minimum started anew if the minimum changed.

    The group is Updating while a raised minimum is not reached. A new goal removes the message about the last goal.
    """
    if goal != group.goal:
        group = replace(group, message="")
    if goal.minimum == group.goal.minimum:
        return group
    if group.status is GroupStatus.CREATING:
        return replace(group, minimum_since=draft.now)
    is_raised = goal.minimum > (group.good or Goal(target=0)).minimum
    if is_raised and goal.minimum > current_counts(draft.memory(), draft.seen).get(group.name, 0):
        return replace(group, status=GroupStatus.UPDATING, minimum_since=draft.now)
    return group


def _delete_groups(order: UpdateCluster, draft: OrderDraft, cluster: Cluster) -> dict[str, Goal]:
    """Mark groups as being deleted, and return their goals, which are 0; the next turns remove their slots."""
    check_repeated(order.delete, "InstanceGroupsToDelete")
    both = sorted({wish.name for wish in order.groups} & set(order.delete))
    if both:
        raise invalid(f"{', '.join(both)}: in InstanceGroups and in InstanceGroupsToDelete; take one of them out.")
    for name in order.delete:
        group = group_of(draft, name, cluster)
        if group.role is Role.CONTROLLER:
            raise invalid(f"Instance group {name} is the controller: it cannot be deleted.")
        draft.keep_group(replace(group, status=GroupStatus.DELETING))
    return {name: Goal(target=0) for name in order.delete}


def _check_whole(goals: dict[str, Goal], order: UpdateCluster, draft: OrderDraft, cluster: Cluster) -> None:
    """Check all groups together, in their state after the order. Raises Refusal."""
    staying = [replace(group, goal=goals.get(group.name, group.goal)) for group in draft.groups_that_stay()]
    if not staying:
        raise invalid("InstanceGroupsToDelete: at least one instance group must stay; DeleteCluster deletes them all.")
    had_roles = any(group.role is not Role.COMPUTE for group in draft.before.groups.values())
    check_roles(staying, cluster.name, has_slurm_config=had_roles or has_slurm_config(order.groups))
    check_limits(staying, draft.rules)


def _text(order: UpdateCluster, goals: dict[str, Goal], draft: OrderDraft) -> str:
    before = draft.before.groups
    sizes = [
        f"{name} {before[name].goal.target if name in before else 0} -> {goals[name].target}"
        for name in sorted(goals)
        if name not in order.delete
    ]
    gone = [f"{name} deleted" for name in order.delete]
    what = ", ".join([*sizes, *gone]) or "settings"
    return f"{draft.who} updated cluster {order.cluster}: {what}"


# UpdateClusterSoftware: set the wanted version; `groups/rollout.py` brings it to the nodes batch by batch.


def update_software(order: UpdateSoftware, draft: OrderDraft) -> OrderAnswer:
    """Order the update of the named groups, or of all but the controller's if none is named.

    The lifecycle scripts run again, even if image and release stay the same.
    """
    cluster = draft.cluster_named(order.cluster)
    check_not_busy(cluster, "UpdateClusterSoftware")
    _check(order, draft)
    for group, release in _groups(order, draft, cluster):
        check_open_for_nodes(group, "UpdateClusterSoftware")
        draft.keep_group(_with_rollout(group, release, order, draft))
        shown = " ".join(word for word in (order.image, release) if word) or "its present image"
        draft.tell(
            "rollout.ordered", f"{draft.who} ordered a software update of {group.name} to {shown}", group=group.name
        )
    if not cluster.continuous:
        draft.cluster = replace(draft.cluster_named(order.cluster), status=ClusterStatus.SYSTEM_UPDATING)
    return OrderAnswer(cluster_id=cluster.id)


def _check(order: UpdateSoftware, draft: OrderDraft) -> None:
    check_repeated((name for name, _ in order.groups), "InstanceGroups")
    for batch in (order.batch, order.rollback_batch):
        if batch is not None and not _is_sane(batch):
            raise invalid("DeploymentConfig: a batch is at least one node, and at most 100 percent.")
    if order.wait_s < 0:
        raise invalid("DeploymentConfig: WaitIntervalInSeconds must not be negative.")
    if order.alarms and not draft.rules.has_alarm_command:
        raise invalid("AutoRollbackConfiguration: no alarm command is configured; set capacity.alarms.")


def _is_sane(batch: BatchSize) -> bool:
    return (batch.count >= 1 and batch.percent == 0) or (batch.count == 0 and 1 <= batch.percent <= 100)


def _groups(order: UpdateSoftware, draft: OrderDraft, cluster: Cluster) -> list[tuple[Group, str]]:
    """Return the groups to update, each with its release (empty: unchanged).

    Raises Refusal for the controller group, which is the head's own machine, and if no group is left.
    """
    if not order.groups:
        found = [(group, "") for group in draft.groups_that_stay() if group.role is not Role.CONTROLLER]
        if not found:
            raise invalid(f"Cluster {cluster.name} has no instance group whose software Steward updates.")
        return found
    named = [(group_of(draft, name, cluster), release) for name, release in order.groups]
    for group, _ in named:
        if group.role is Role.CONTROLLER:
            raise invalid(f"Instance group {group.name} is the controller: its machine is updated by its admin.")
    return named


def _with_rollout(group: Group, release: str, order: UpdateSoftware, draft: OrderDraft) -> Group:
    old = group.version
    wanted = replace(old, image=order.image or old.image, release=release or old.release, serial=draft.next_serial())
    rollout = Rollout(
        state=RolloutState.PENDING,
        wanted=wanted,
        previous=old,
        started=draft.now,
        batch=order.batch,
        rollback_batch=order.rollback_batch,
        wait_s=order.wait_s,
        alarms=order.alarms,
    )
    return replace(group, version=wanted, status=GroupStatus.SYSTEM_UPDATING, rollout=rollout)
