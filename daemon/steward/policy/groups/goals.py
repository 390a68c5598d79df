"""Bring every group to its goal: add or remove slots, and move the status of groups and of the cluster.

A cluster with continuous provisioning is in service with its controller; without it, as a whole or not at all.
"""

from dataclasses import replace

from steward.model.events import Level
from steward.model.group import Cluster, ClusterStatus, Goal, Group, GroupStatus, Role
from steward.model.slot import Hitch, Purpose, SlotRecord, SlotStep
from steward.model.text import count_noun
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.serving import count_serving, serves, slots_that_stay
from steward.policy.groups.slot_save import hurried
from steward.policy.groups.slots import close_case
from steward.policy.groups.victims import choose_victims
from steward.policy.guards.bring_up import why_paused
from steward.policy.slot_of import new_slots, taken_names

_MOVE_S = 0.02
"""The wait until the next plan: new slots are moved only there."""


def keep_groups(draft: Draft) -> None:
    """Move the status of each group, then add or remove slots, controllers first."""
    # status first: a rollback changes the goal
    if draft.cluster is None:
        return
    _say_if_idle(draft)
    for name in sorted(draft.groups):
        keep_status(draft.groups[name], draft)
    keep_cluster(draft)
    for group in sorted(draft.groups.values(), key=lambda group: group.turn):
        _adjust_slots(group, draft)
    _replace_interrupted(draft)
    _forget_deleted(draft)


def _say_if_idle(draft: Draft) -> None:
    """Report once that no group changes while actions are paused."""
    if draft.may_provision:
        draft.forget_told("groups:idle")
        return
    text = "no instance is launched or ended for any group: actions are paused"
    draft.tell("group.idle", text, once="groups:idle")


def _adjust_slots(group: Group, draft: Draft) -> None:
    wanted = 0 if group.status is GroupStatus.DELETING else group.goal.target
    here = slots_that_stay(group, draft)
    if len(here) < wanted:
        _add(group, wanted - len(here), draft)
    elif len(here) > wanted:
        for record in choose_victims(here, len(here) - wanted, draft):
            send_away(record, f"group {group.name} has {count_noun(len(here), 'slot')}, its target is {wanted}", draft)


def _add(group: Group, many: int, draft: Draft) -> None:
    cluster = draft.cluster
    if cluster is None:
        return
    text = f"the target of group {group.name} is {group.goal.target} instances"
    why = Why(rule="group.target", text=text, evidence=(f"{many} slots are missing",))
    taken = taken_names(group.name, draft.slots, draft.seen, draft.want)
    draft.cluster, slots = new_slots(group, many, taken, cluster, draft.want, why, draft.now)
    for record in slots:
        close_case(record, draft)
        draft.slots.keep(record)
    draft.wake(draft.now + _MOVE_S)
    if len(slots) < many:
        text = f"group {group.name}: its [[groups]] table has {many - len(slots)} nodes too few for its target"
        draft.tell("group.no_names", text, once=f"names:{group.name}:{group.goal.target}", group=group.name)


def send_away(record: SlotRecord, text: str, draft: Draft) -> None:
    """Send the slot away: its node is drained and backed up, and its instance ended."""
    why = Why(rule="slot.leave", text=text, evidence=(f"slot {record.logical} since {record.created:.0f}",))
    _mark_as_leaving(record, why, draft)


def _mark_as_leaving(record: SlotRecord, why: Why, draft: Draft) -> None:
    draft.slots.keep(hurried(replace(record, purpose=Purpose.LEAVE, why=why), draft))


def _replace_interrupted(draft: Draft) -> None:
    """Replace each machine that its provider announced to take away, while its jobs can still save their state."""
    for instance in draft.seen.instances.values():
        record = draft.slots.get(instance.node) if instance.interrupted else None
        if record is None or record.instance != instance.id:
            continue
        text = f"its provider takes {record.node} away: {instance.interrupted}"
        why = Why(rule="slot.interrupted", text=text, evidence=(f"instance {instance.id}",))
        goes = replace(record, purpose=Purpose.RENEW, why=why) if record.purpose is Purpose.STAY else record
        goes = hurried(goes, draft)
        if goes is record:
            continue
        draft.slots.keep(goes)
        draft.tell("instance.interrupted", text, level=Level.WARNING, node=record.node, group=record.group)


def _forget_deleted(draft: Draft) -> None:
    """Forget a deleted group after its last slot, and a deleted cluster after its last group."""
    for group in list(draft.groups.values()):
        if group.status is GroupStatus.DELETING and not draft.slots.members(group.name):
            draft.slots.drop_group(group.name)
            draft.tell("group.deleted", f"group {group.name} is deleted", group=group.name)
    cluster: Cluster | None = draft.cluster
    if cluster is not None and cluster.status is ClusterStatus.DELETING and not draft.groups:
        draft.cluster = None
        draft.ended[cluster.id] = draft.now
        draft.tell("cluster.deleted", f"cluster {cluster.name} is deleted")


def keep_cluster(draft: Draft) -> None:
    """Move the cluster's status by its groups."""
    cluster = draft.cluster
    if cluster is None or cluster.status in (ClusterStatus.DELETING, ClusterStatus.FAILED):
        return
    status = _continuous(cluster, draft) if cluster.continuous else _classic(cluster, draft)
    if draft.cluster is not None and status is not draft.cluster.status:
        draft.cluster = replace(draft.cluster, status=status)
        level = Level.ERROR if status is ClusterStatus.FAILED else Level.INFO
        draft.tell("cluster.status", f"cluster {cluster.name} is {status.value}", level=level)


def _continuous(cluster: Cluster, draft: Draft) -> ClusterStatus:
    """Return InService, for good, once one controller serves (and one login node if there is a login group)."""
    if cluster.status is not ClusterStatus.CREATING:
        return cluster.status
    needed = [_of_role(role, draft) for role in (Role.CONTROLLER, Role.LOGIN)]
    is_there = all(not groups or any(count_serving(g, draft) for g in groups) for groups in needed)
    return ClusterStatus.IN_SERVICE if is_there else cluster.status


def _of_role(role: Role, draft: Draft) -> list[Group]:
    wanted = (g for g in draft.groups.values() if g.role is role and g.goal.target > 0)
    return [g for g in wanted if g.status is not GroupStatus.DELETING]


def _classic(cluster: Cluster, draft: Draft) -> ClusterStatus:
    """Return the status without continuous provisioning; roll all groups back if one failed."""
    if cluster.status is ClusterStatus.ROLLING_BACK:
        return _after_rollback(cluster, draft)
    gated = [g for g in draft.groups.values() if g.status.is_gated]
    is_new = cluster.status is ClusterStatus.CREATING
    failed = _why_failed(draft)
    if failed:
        for name in sorted(g.name for g in gated):
            roll_back(draft.groups[name], failed, draft)
        draft.cluster = replace(draft.cluster or cluster, message=failed)
        return ClusterStatus.ROLLING_BACK
    if gated:
        return ClusterStatus.CREATING if is_new else ClusterStatus.UPDATING
    is_updated = any(g.status is GroupStatus.SYSTEM_UPDATING for g in draft.groups.values())
    return ClusterStatus.SYSTEM_UPDATING if is_updated else ClusterStatus.IN_SERVICE


def _why_failed(draft: Draft) -> str:
    """Return which group's timeout rolled it back, or which launch failed too often; empty if none."""
    for group in sorted(draft.groups.values(), key=lambda g: g.name):
        if group.message.startswith("rollback") and group.rolled_back == draft.now:
            return f"group {group.name}: {group.message}"
        for record in slots_that_stay(group, draft) if group.status.is_gated else ():
            if record.hitch in (Hitch.REFUSED, Hitch.OTHER) and record.tries >= draft.want.repair.max_launches:
                return f"{record.node} of group {group.name}: {record.trouble}"
    return ""


def _after_rollback(cluster: Cluster, draft: Draft) -> ClusterStatus:
    """Return RollingBack until all surplus slots are gone; then InService, or Failed if all goals are 0."""
    if any(record.is_leaving for record in draft.slots.values()):
        return ClusterStatus.ROLLING_BACK
    has_any = any(g.goal.target for g in draft.groups.values())
    return ClusterStatus.IN_SERVICE if has_any else ClusterStatus.FAILED


# The status of a group: its partition's gate is closed until the minimum is there; rolled back if that takes too long.

MISSING = "missing"
"""The first word of a group's message about missing instances: only such a message is updated."""


def keep_status(group: Group, draft: Draft) -> None:
    """Move the group's status by its number of nodes and its timeout."""
    if group.status in (GroupStatus.DELETING, GroupStatus.SYSTEM_UPDATING, GroupStatus.FAILED):
        return
    if group.status.is_gated:
        _while_gated(group, count_serving(group, draft), draft)
    elif group.goal != group.good:
        _on_new_goal(group, count_serving(group, draft), draft)
    _tell_missing(draft.groups[group.name], draft)


def needed(group: Group, draft: Draft) -> int:
    """Return how many nodes the group must have to be in service; without continuous provisioning, its target."""
    return _needed(group.goal, draft)


def _needed(goal: Goal, draft: Draft) -> int:
    return goal.minimum if _is_continuous(draft) else max(goal.minimum, goal.target)


def _is_continuous(draft: Draft) -> bool:
    return draft.cluster is None or draft.cluster.continuous


def _while_gated(group: Group, here: int, draft: Draft) -> None:
    is_taken_back = _is_continuous(draft) and not _needs_more(group, draft)
    if is_taken_back or (here >= needed(group, draft) and not _waits_for_others(group, draft)):
        _put_in_service(group, here, draft)
        return
    since = group.minimum_since if group.minimum_since is not None else draft.now
    draft.groups[group.name] = replace(group, minimum_since=since)
    until = since + draft.want.capacity.minimum_timeout_s
    draft.wake(until)
    if draft.now >= until:
        hours = draft.want.capacity.minimum_timeout_s / 3600
        roll_back(group, f"{here} of at least {needed(group, draft)} instances were there after {hours:g} h", draft)


def _waits_for_others(group: Group, draft: Draft) -> bool:
    """Return whether the group must wait: without continuous provisioning, all groups come into service together."""
    if _is_continuous(draft):
        return False
    if any(each.rolled_back == draft.now for each in draft.groups.values()):
        return True
    others = (g for g in draft.groups.values() if g.status.is_gated and g.name != group.name)
    return any(count_serving(other, draft) < needed(other, draft) for other in others)


def _put_in_service(group: Group, here: int, draft: Draft) -> None:
    draft.groups[group.name] = replace(
        group, status=GroupStatus.IN_SERVICE, good=group.goal, minimum_since=None, message=""
    )
    text = f"group {group.name} is in service: {here} instances, minimum {needed(group, draft)}"
    draft.tell("group.minimum_reached", f"{text}, target {group.goal.target}", group=group.name)


def _on_new_goal(group: Group, here: int, draft: Draft) -> None:
    """Apply a new goal: close the gate for a raised minimum that is not there yet; accept any other goal at once."""
    waits = _needs_more(group, draft) and here < needed(group, draft)
    if not _is_continuous(draft):  # all groups wait if one of them must have more nodes
        waits = any(_needs_more(each, draft) for each in draft.groups.values())
    if not waits:
        draft.groups[group.name] = replace(group, good=group.goal)
        return
    status = GroupStatus.CREATING if group.good is None else GroupStatus.UPDATING
    draft.groups[group.name] = replace(group, status=status, minimum_since=draft.now)
    draft.wake(draft.now + draft.want.capacity.minimum_timeout_s)


def _needs_more(group: Group, draft: Draft) -> bool:
    """Return whether the group must have more nodes than it needed when last in service."""
    return needed(group, draft) > _needed(group.good or Goal(target=0), draft)


def roll_back(group: Group, text: str, draft: Draft) -> None:
    """Restore the goal of the last time in service (0 for a new group), and remove the least useful surplus slots."""
    good = group.good or Goal(target=0)
    said = f"{text}: rolled back to {good.target} instances, minimum {good.minimum}"
    back = replace(
        group,
        goal=good,
        good=good,
        status=GroupStatus.IN_SERVICE,
        minimum_since=None,
        message=f"rollback: {said}",
        rolled_back=draft.now,
    )
    draft.groups[group.name] = back
    draft.tell("group.rollback", f"group {group.name}: {said}", level=Level.WARNING, group=group.name)
    here = slots_that_stay(back, draft)
    why = Why(rule="group.rollback", text=f"group {group.name}: {said}", evidence=(f"{len(here)} slots",))
    for record in sorted(here, key=lambda r: _worth(r, back, draft), reverse=True)[good.target :]:
        _mark_as_leaving(record, why, draft)


def _worth(record: SlotRecord, group: Group, draft: Draft) -> tuple[bool, bool, float, int]:
    """Return the sort key of a slot's worth: it serves, it served before, it is older."""
    return serves(record, group, draft), record.has_served, -record.created, -record.serial


def _tell_missing(group: Group, draft: Draft) -> None:
    """Keep the group's message about missing instances up to date: how many, and why the last try failed."""
    troubled = [
        r for r in draft.slots.members(group.name) if r.hitch is not Hitch.NONE and r.is_coming and not r.is_leaving
    ]
    if group.message and not group.message.startswith(MISSING):
        return
    text = ""
    if troubled:
        newest = max(troubled, key=lambda r: (r.next_try, r.logical))
        text = f"{MISSING} {len(troubled)} of {group.goal.target}: {newest.node}: {newest.trouble}"
        text += f"; {paused}" if (paused := why_paused(group.name, draft)) else ""
    if text != group.message:
        draft.groups[group.name] = replace(group, message=text)


# A scaling operation ends when each of its groups has reached the operation's goal, or got another goal since.


def finish_operations(draft: Draft) -> None:
    """Note the end time of finished operations; a rollback finishes an operation, too."""
    for id in sorted(id for id, each in draft.operations.items() if each.finished is None):
        operation = draft.operations[id]
        waiting = [
            name
            for name, goal in operation.after.items()
            if name not in operation.superseded and not _is_over(name, goal, draft)
        ]
        if not waiting:
            draft.operations[id] = replace(operation, finished=draft.now)


def _is_over(name: str, goal: Goal, draft: Draft) -> bool:
    group = draft.groups.get(name)
    if group is None or group.goal != goal:
        return True
    members = draft.slots.members(name)
    return len(members) == goal.target and all(slot.step is SlotStep.SERVING for slot in members)
