"""BatchDelete, BatchReboot and BatchReplace of nodes, each of which is accepted or refused by itself.

A case reboots or replaces a node in service, as on an admin's command; of any other node, the instance is replaced.
"""

from collections.abc import Sequence
from dataclasses import replace

from steward.model.case import Case, CaseStep, Trigger
from steward.model.group import Cluster, ClusterStatus, Goal, Role
from steward.model.health import Advice
from steward.model.node import Node
from steward.model.node_names import fold
from steward.model.order import NodeOutcome, NodeRefusal, NodeWish, OrderAnswer, TouchNodes
from steward.model.slot import Hitch, Purpose, SlotRecord, SlotStep
from steward.model.why import Why
from steward.policy.case.suspicion import new_case
from steward.policy.draft import Draft
from steward.policy.facts.slurm_faults import still_has_reason
from steward.policy.facts.verdict import Fault
from steward.policy.groups.slot_save import hurried
from steward.policy.orders.order_draft import OrderDraft, is_going
from steward.policy.orders.refuse import check_not_busy, conflict, invalid
from steward.policy.slot_of import pool_of

MOST_INSTANCES = 99
MOST_LOGICAL = 50
MOST_MENDED = 25

No = tuple[NodeRefusal, str]
"""The refusal, and the sentence for it."""
_RUNGS = {NodeWish.REBOOT: Advice.REBOOT, NodeWish.REPLACE: Advice.REPLACE}
_MAY_BE_ENDED = (CaseStep.SUSPECT, CaseStep.HELD)
"""Steps in which a person's command ends a case, like a case that waits for approval; any other repair goes on."""


def touch(order: TouchNodes, draft: OrderDraft) -> OrderAnswer:
    """Carry out the order. The answer has one line for each id. Raises Refusal if a deletion accepted no node."""
    cluster = draft.cluster_named(order.cluster)
    _check(order, cluster, draft)
    named = [(id, False) for id in _distinct(order.ids)] + [(id, True) for id in _distinct(order.logical_ids)]
    by_id = _by_id(draft)
    found = {name: by_id.get(name) for name in named}
    refused = {name: _refusal(order.wish, slot, draft) for name, slot in found.items()}
    if order.wish is NodeWish.DELETE and all(refused.values()):
        lines = "; ".join(f"{id}: {no[1]}" for (id, _), no in refused.items() if no)
        raise invalid(f"None of these nodes can be deleted: {lines}")
    accepted = {slot.node: slot for name, slot in found.items() if slot and not refused[name]}
    chosen = [accepted[node] for node in sorted(accepted)]
    if chosen:
        _carry_out(order.wish, chosen, draft)
    return OrderAnswer(cluster_id=cluster.id, nodes=tuple(_outcome(*name, no) for name, no in refused.items()))


def _distinct(ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))


def _outcome(id: str, is_logical: bool, no: No | None) -> NodeOutcome:
    return NodeOutcome(id=id, is_logical=is_logical, refused=no[0] if no else None, text=no[1] if no else "")


def _check(order: TouchNodes, cluster: Cluster, draft: OrderDraft) -> None:
    ids, logical = len(set(order.ids)), len(set(order.logical_ids))
    if not ids and not logical:
        raise invalid("Give at least one of NodeIds and NodeLogicalIds.")
    if logical and not cluster.continuous:
        raise invalid(f"Cluster {cluster.name}: NodeLogicalIds need NodeProvisioningMode Continuous.")
    if order.wish is NodeWish.DELETE:
        check_not_busy(cluster, "BatchDeleteClusterNodes")
        _check_most(ids + logical, MOST_INSTANCES, "node ids in all")
        _check_most(logical, MOST_LOGICAL, "NodeLogicalIds")
        return
    if cluster.status is ClusterStatus.DELETING:
        raise conflict(f"Cluster {cluster.name} is being deleted.")
    _check_most(max(ids, logical), MOST_MENDED, "ids")
    if not draft.want.repair.act:
        raise conflict("Repairs are set to report only (repair.mode): no node is rebooted or replaced.")


def _check_most(count: int, most: int, what: str) -> None:
    if count > most:
        raise invalid(f"{count} {what}; one call takes at most {most}.")


def _by_id(draft: OrderDraft) -> dict[tuple[str, bool], SlotRecord]:
    """Return the slots by (id, whether the id is a logical one)."""
    slots = [draft.slots[node] for node in sorted(draft.slots, reverse=True)]
    by_instance = {(str(slot.instance), False): slot for slot in slots if slot.instance}
    return by_instance | {(slot.logical, True): slot for slot in slots}


def _refusal(wish: NodeWish, slot: SlotRecord | None, draft: OrderDraft) -> No | None:
    if slot is None:
        return NodeRefusal.NOT_FOUND, "there is no such node in the cluster"
    group = draft.groups[slot.group]
    if group.role is Role.CONTROLLER:
        return NodeRefusal.IN_USE, f"{slot.node} is the controller's machine"
    if is_asked_again(wish, slot):
        return None
    if slot.is_leaving or is_going(group):
        return NodeRefusal.BAD_STATUS, f"{slot.node} is being deleted already"
    is_wish_given_up = wish is NodeWish.DELETE and slot.is_coming and slot.instance is None
    if group.rollout is not None and group.rollout.finished is None and not is_wish_given_up:
        return NodeRefusal.BAD_STATUS, f"the software of its group {group.name} is being updated"
    if wish is not NodeWish.DELETE:
        return mend_refusal(wish, slot, draft)
    if group.status.is_gated:
        return NodeRefusal.BAD_STATUS, f"its group {group.name} is {group.status.value}"
    return None


def _carry_out(wish: NodeWish, chosen: Sequence[SlotRecord], draft: OrderDraft) -> None:
    stuck = [slot for slot in chosen if is_asked_again(wish, slot)]
    retry_backups(stuck, draft)
    fresh = [slot for slot in chosen if slot not in stuck]
    if fresh and wish is NodeWish.DELETE:
        _delete(fresh, draft)
    elif fresh:
        mend(wish, fresh, draft)


def _delete(chosen: Sequence[SlotRecord], draft: OrderDraft) -> None:
    retry_backups([slot for slot in chosen if is_stuck(slot)], draft)
    for slot in chosen:
        text = f"{draft.who} deleted node {slot.node}"
        why = Why(
            rule="slot.deleted", text=text, evidence=(f"slot {slot.logical} on {slot.instance or 'no instance'}",)
        )
        draft.slots.keep(hurried(replace(draft.slots[slot.node], purpose=Purpose.LEAVE, why=why), draft))
    goals = {name: _smaller_goal(name, chosen, draft) for name in {slot.group for slot in chosen}}
    operation = draft.set_goals(goals)
    text = f"{draft.who} deleted {fold(slot.node for slot in chosen)}"
    draft.tell("nodes.deleted", text, operation=operation.id if operation else "")


def _smaller_goal(group: str, chosen: Sequence[SlotRecord], draft: OrderDraft) -> Goal:
    """Return the goal without the chosen slots, so that no new ones are made; a minimum above it is lowered."""
    goal = draft.groups[group].goal
    target = max(0, goal.target - sum(slot.group == group for slot in chosen))
    return Goal(target=target, minimum=min(goal.minimum, target))


def mend_refusal(wish: NodeWish, slot: SlotRecord, draft: OrderDraft) -> tuple[NodeRefusal, str] | None:
    """Return why this slot may not be rebooted or replaced now; None if it may."""
    pool, node = pool_of(slot.group, draft.want), draft.seen.nodes.get(slot.node)
    if wish is NodeWish.REPLACE and pool is not None and pool.fixed:
        return NodeRefusal.BAD_STATUS, f"the machine of {slot.node} is fixed hardware: no other one can take its place"
    if wish is NodeWish.REBOOT and pool is not None and not pool.reboots:
        return NodeRefusal.BAD_STATUS, f"the provider of {slot.node} has no command that reboots a machine"
    if slot.purpose is not Purpose.STAY:
        return NodeRefusal.BAD_STATUS, f"{slot.node} is being replaced already"
    is_compute = draft.groups[slot.group].role is Role.COMPUTE
    if wish is NodeWish.REPLACE and (slot.step is not SlotStep.SERVING or not is_compute):
        return None
    if slot.step is not SlotStep.SERVING:
        return NodeRefusal.BAD_STATUS, f"{slot.node} is not in service yet ({slot.step.value})"
    if not is_compute:
        return NodeRefusal.BAD_STATUS, f"{slot.node} is not a node of Slurm: Steward can replace it, not reboot it"
    return _repair_refusal(slot, node, draft)


def _repair_refusal(slot: SlotRecord, node: Node | None, draft: OrderDraft) -> tuple[NodeRefusal, str] | None:
    if node is None:
        return NodeRefusal.BAD_STATUS, f"Slurm does not know {slot.node}"
    case = _open_case(slot, draft)
    if case is not None and ((case.step not in _MAY_BE_ENDED and not case.waits_for_person) or case.is_stood_in):
        return NodeRefusal.BAD_STATUS, f"{slot.node} is under repair already (case {case.id}: {case.step.value})"
    if case is None and node.is_foreign:
        reason = node.reason.text if node.reason else "no reason given"
        return NodeRefusal.BAD_STATUS, f"{slot.node} is out of service, and not by Steward ({reason}): resume it first"
    return None


def _open_case(slot: SlotRecord, draft: OrderDraft) -> Case | None:
    return next((case for case in draft.cases.values() if case.node == slot.node and case.is_open), None)


def mend(wish: NodeWish, chosen: Sequence[SlotRecord], draft: OrderDraft) -> None:
    """Open a case for each node in service; have the instances of the others replaced."""
    for slot in chosen:
        text = f"{draft.who} ordered a {wish.value} through the API"
        why = Why(
            rule="node.ordered", text=text, evidence=(f"slot {slot.logical} on {slot.instance or 'no instance'}",)
        )
        if slot.step is SlotStep.SERVING and draft.groups[slot.group].role is Role.COMPUTE:
            _repair(slot, _RUNGS[wish], why, draft)
        else:
            draft.slots.keep(_with_another_instance(slot, why, draft))
        draft.tell(f"node.{wish.value}", f"{slot.node}: {why.text}", node=slot.node, group=slot.group)


def _repair(slot: SlotRecord, rung: Advice, why: Why, draft: Draft) -> None:
    """Open a case for the node in place of the present one."""
    before, node = draft.cases.open_of(slot.node), draft.seen.nodes[slot.node]
    # if the node has another reason in place of the old case's mark, the new case must accept that reason, too
    reason = before.command if before is not None and still_has_reason(before, node, draft) else ""
    if before is not None and before.step is CaseStep.SUSPECT:
        draft.cases.forget(before)
    elif before is not None:
        by = Why(rule="case.by_person", text=why.text, evidence=(str(before.why),))
        draft.cases.close(before, by, draft.now)
    fault = Fault(trigger=Trigger.ADMIN, check="admin", rung=rung, why=why, at=draft.now, command=reason)
    new_case(node, fault, draft)


def _with_another_instance(slot: SlotRecord, why: Why, draft: OrderDraft) -> SlotRecord:
    """Return the slot so that it gets another instance; a slot that waits for its first launch is tried at once."""
    if slot.step is SlotStep.WAITING:
        return replace(slot, next_try=draft.now, why=why)
    return replace(slot, purpose=Purpose.RENEW, deadline=draft.now, why=why)


# Slots whose end waits for a person, because their backup failed: the same order once more retries the backup.

_PURPOSE_OF = {NodeWish.DELETE: Purpose.LEAVE, NodeWish.REPLACE: Purpose.RENEW}


def is_stuck(slot: SlotRecord) -> bool:
    return slot.step is SlotStep.BACKUP and bool(slot.trouble)


def is_asked_again(wish: NodeWish, slot: SlotRecord) -> bool:
    """Return whether the slot's backup failed and the wish repeats the order that the backup belongs to."""
    return is_stuck(slot) and _PURPOSE_OF.get(wish) is slot.purpose


def retry_backups(slots: Sequence[SlotRecord], draft: OrderDraft) -> None:
    """Retry the backups of these slots."""
    for slot in slots:
        # another number of tries gives the retry its own key: the last failure is not taken for its outcome
        draft.slots.keep(replace(slot, tries=slot.tries + 1, hitch=Hitch.NONE, trouble=""))
        draft.tell("slot.again", f"{draft.who} has {slot.node} backed up again", node=slot.node, group=slot.group)
