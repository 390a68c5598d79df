"""Keep every group at its goal: as many slots as wanted, the right ones sent away, its status and its clock."""

from dataclasses import replace

from steward.model.events import Level
from steward.model.group import Cluster, ClusterStatus, Group, GroupStatus
from steward.model.slot import Purpose, SlotRecord
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.groups.cluster_status import keep_cluster
from steward.policy.groups.members import staying
from steward.policy.groups.mint import mint, taken_names
from steward.policy.groups.slot_cases import close_case
from steward.policy.groups.status import keep_status
from steward.policy.groups.victims import choose

_MOVE_S = 0.02
"""New slots that no step of this plan moves any more are moved by the next one, at once."""


def keep_groups(draft: Draft) -> None:
    """Status first (a rollback changes the goal), then slots up or down to the target, controllers first."""
    if draft.cluster is None:
        return
    _say_if_idle(draft)
    for name in sorted(draft.groups):
        keep_status(draft.groups[name], draft)
    keep_cluster(draft)
    for group in sorted(draft.groups.values(), key=lambda group: group.turn):
        _keep_count(group, draft)
    _heed_interruptions(draft)
    _drop_ended(draft)


def _say_if_idle(draft: Draft) -> None:
    """Groups stand still while a person paused us: said once."""
    if draft.may_provision:
        draft.noted.pop("groups:idle", None)
        return
    text = "no instance is launched or ended for any group: actions are paused"
    draft.tell("group.idle", text, once="groups:idle")


def _keep_count(group: Group, draft: Draft) -> None:
    wanted = 0 if group.status is GroupStatus.DELETING else group.goal.target
    here = staying(group, draft)
    if len(here) < wanted:
        _add(group, wanted - len(here), draft)
    elif len(here) > wanted:
        for record in choose(here, len(here) - wanted, draft):
            send_away(record, f"group {group.name} has {len(here)} slots and is to have {wanted}", draft)


def _add(group: Group, many: int, draft: Draft) -> None:
    cluster = draft.cluster
    if cluster is None:
        return
    text = f"group {group.name} is to have {group.goal.target} instances"
    why = Why(rule="group.target", text=text, evidence=(f"{many} more than there are slots",))
    taken = taken_names(group.name, draft.records, draft.seen, draft.want)
    draft.cluster, slots = mint(group, many, taken, cluster, draft.want, why, draft.now)
    for record in slots:
        close_case(record, draft)
        draft.keep_slot(record)
    draft.wake(draft.now + _MOVE_S)
    if len(slots) < many:
        text = f"group {group.name}: its [[groups]] table names {many - len(slots)} nodes too few for its target"
        draft.tell("group.no_names", text, once=f"names:{group.name}:{group.goal.target}", group=group.name)


def send_away(record: SlotRecord, text: str, draft: Draft) -> None:
    """The slot leaves: drained, backed up, ended."""
    why = Why(rule="slot.leave", text=text, evidence=(f"slot {record.logical} since {record.created:.0f}",))
    draft.keep_slot(replace(record, purpose=Purpose.LEAVE, why=why))


def _heed_interruptions(draft: Draft) -> None:
    """A machine that its provider is about to take away is replaced while its jobs can still save their state."""
    for instance in draft.seen.instances.values():
        record = draft.records.get(instance.node) if instance.interrupted else None
        if record is None or record.instance != instance.id or record.purpose is not Purpose.STAY:
            continue
        text = f"its provider takes {record.node} away: {instance.interrupted}"
        why = Why(rule="slot.interrupted", text=text, evidence=(f"instance {instance.id}",))
        draft.keep_slot(replace(record, purpose=Purpose.RENEW, why=why))
        draft.tell("instance.interrupted", text, level=Level.WARNING, node=record.node, group=record.group)


def _drop_ended(draft: Draft) -> None:
    """A deleted group goes with its last slot, a deleted cluster with its last group."""
    for group in list(draft.groups.values()):
        if group.status is GroupStatus.DELETING and not draft.members(group.name):
            draft.drop_group(group.name)
            draft.tell("group.deleted", f"group {group.name} is deleted", group=group.name)
    cluster: Cluster | None = draft.cluster
    if cluster is not None and cluster.status is ClusterStatus.DELETING and not draft.groups:
        draft.cluster = None
        draft.tell("cluster.deleted", f"cluster {cluster.name} is deleted")
