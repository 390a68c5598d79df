"""A group's status, and the clock of its minimum: gated until that is there, rolled back when it never comes."""

from dataclasses import replace

from steward.model.events import Level
from steward.model.group import Goal, Group, GroupStatus
from steward.model.slot import Hitch, Purpose, SlotRecord
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.groups.members import current, serves, staying
from steward.policy.node.bring_up import why_paused

MISSING = "missing"
"""How a message begins that tells what is not there yet; such a one is kept up to date, others stand."""


def keep_status(group: Group, draft: Draft) -> None:
    """Move the group's status by its count and its clock."""
    if group.status in (GroupStatus.DELETING, GroupStatus.SYSTEM_UPDATING, GroupStatus.FAILED):
        return
    if group.status.is_gated:
        _while_gated(group, current(group, draft), draft)
    elif group.goal != group.good:
        _on_new_goal(group, current(group, draft), draft)
    _tell_missing(draft.groups[group.name], draft)


def needed(group: Group, draft: Draft) -> int:
    """The number of nodes that must be there before the group is in service: without continuous provisioning all of
    it."""
    is_continuous = draft.cluster is None or draft.cluster.continuous
    return group.goal.minimum if is_continuous else max(group.goal.minimum, group.goal.target)


def _while_gated(group: Group, here: int, draft: Draft) -> None:
    if here >= needed(group, draft) and not _waits_for_others(group, draft):
        _serve(group, here, draft)
        return
    since = group.minimum_since if group.minimum_since is not None else draft.now
    draft.groups[group.name] = replace(group, minimum_since=since)
    until = since + draft.want.capacity.minimum_timeout_s
    draft.wake(until)
    if draft.now >= until:
        hours = draft.want.capacity.minimum_timeout_s / 3600
        roll_back(group, f"{here} of at least {needed(group, draft)} instances were there after {hours:g} h", draft)


def _waits_for_others(group: Group, draft: Draft) -> bool:
    """Without continuous provisioning all groups come into service together, or none does."""
    if draft.cluster is None or draft.cluster.continuous:
        return False
    if any(draft.noted.get(rolled_key(name)) == draft.now for name in draft.groups):
        return True
    others = (g for g in draft.groups.values() if g.status.is_gated and g.name != group.name)
    return any(current(other, draft) < needed(other, draft) for other in others)


def _serve(group: Group, here: int, draft: Draft) -> None:
    draft.groups[group.name] = replace(
        group, status=GroupStatus.IN_SERVICE, good=group.goal, minimum_since=None, message=""
    )
    text = f"group {group.name} is in service: {here} instances, minimum {needed(group, draft)}"
    draft.tell("group.minimum_reached", f"{text}, target {group.goal.target}", group=group.name)


def _on_new_goal(group: Group, here: int, draft: Draft) -> None:
    """A new minimum that is not there closes the gate; every other new goal is good at once."""
    is_same = group.good is not None and group.good.minimum == group.goal.minimum
    is_continuous = draft.cluster is None or draft.cluster.continuous
    if is_continuous and (is_same or here >= needed(group, draft)):
        draft.groups[group.name] = replace(group, good=group.goal)
        return
    status = GroupStatus.CREATING if group.good is None else GroupStatus.UPDATING
    draft.groups[group.name] = replace(group, status=status, minimum_since=draft.now)
    draft.wake(draft.now + draft.want.capacity.minimum_timeout_s)


def roll_back(group: Group, text: str, draft: Draft) -> None:
    """The goal of the last time in service (a new group: none), at once; what is too much leaves, the useless first."""
    good = group.good or Goal(target=0)
    said = f"{text}: rolled back to {good.target} instances, minimum {good.minimum}"
    back = replace(
        group, goal=good, good=good, status=GroupStatus.IN_SERVICE, minimum_since=None, message=f"rollback: {said}"
    )
    draft.groups[group.name] = back
    draft.noted[rolled_key(group.name)] = draft.now
    draft.tell("group.rollback", f"group {group.name}: {said}", level=Level.WARNING, group=group.name)
    here = staying(back, draft)
    why = Why(rule="group.rollback", text=f"group {group.name}: {said}", evidence=(f"{len(here)} slots",))
    for record in sorted(here, key=lambda r: _worth(r, back, draft), reverse=True)[good.target :]:
        draft.keep_slot(replace(record, purpose=Purpose.LEAVE, why=why))


def rolled_key(group: str) -> str:
    """Under which it is noted when the group was last rolled back."""
    return f"rolled:{group}"


def _worth(record: SlotRecord, group: Group, draft: Draft) -> tuple[bool, bool, float, int]:
    """Healthy before unhealthy, served before never in service, then the older one."""
    return serves(record, group, draft), record.has_served, -record.created, -record.serial


def _tell_missing(group: Group, draft: Draft) -> None:
    """The message names what the last tries came to while instances are missing."""
    troubled = [r for r in draft.members(group.name) if r.hitch is not Hitch.NONE and r.is_coming and not r.is_leaving]
    if group.message and not group.message.startswith(MISSING):
        return
    text = ""
    if troubled:
        newest = max(troubled, key=lambda r: (r.next_try, r.logical))
        text = f"{MISSING} {len(troubled)} of {group.goal.target}: {newest.node}: {newest.trouble}"
        text += f"; {paused}" if (paused := why_paused(group.name, draft)) else ""
    if text != group.message:
        draft.groups[group.name] = replace(group, message=text)
