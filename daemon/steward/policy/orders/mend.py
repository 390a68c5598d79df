"""Reboot and replace of single nodes: a node in service is repaired as on an admin's command, another one made anew."""

from collections.abc import Sequence
from dataclasses import replace

from steward.model.case import Case, Step, Trigger
from steward.model.group import Role
from steward.model.health import Advice
from steward.model.node import Node
from steward.model.order import NodeRefusal, NodeWish
from steward.model.slot import Purpose, SlotRecord, SlotStep
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.groups.slot_of import pool_of
from steward.policy.node.suspicion import new_case
from steward.policy.node.verdict import Fault
from steward.policy.orders.desk import Desk

_RUNGS = {NodeWish.REBOOT: Advice.REBOOT, NodeWish.REPLACE: Advice.REPLACE}
_YIELDING = (Step.SUSPECT, Step.HELD)
"""A case in these steps, or that waits for a yes, gives way to a person's command; any other repair is under way."""


def mend_refusal(wish: NodeWish, slot: SlotRecord, desk: Desk) -> tuple[NodeRefusal, str] | None:
    """Why this slot is not rebooted or replaced now."""
    pool, node = pool_of(slot.group, desk.want), desk.seen.nodes.get(slot.node)
    if wish is NodeWish.REPLACE and pool is not None and pool.fixed:
        return NodeRefusal.BAD_STATUS, f"the machine of {slot.node} is fixed hardware: no other one can take its place"
    if slot.purpose is not Purpose.STAY:
        return NodeRefusal.BAD_STATUS, f"{slot.node} is being replaced already"
    is_compute = desk.groups[slot.group].role is Role.COMPUTE
    if wish is NodeWish.REPLACE and (slot.step is not SlotStep.SERVING or not is_compute):
        return None
    if slot.step is not SlotStep.SERVING:
        return NodeRefusal.BAD_STATUS, f"{slot.node} is not in service yet ({slot.step.value})"
    if not is_compute:
        return NodeRefusal.BAD_STATUS, f"{slot.node} is no node of Slurm: Steward can replace it, not reboot it"
    return _repair_refusal(slot, node, desk)


def _repair_refusal(slot: SlotRecord, node: Node | None, desk: Desk) -> tuple[NodeRefusal, str] | None:
    if node is None:
        return NodeRefusal.BAD_STATUS, f"Slurm does not know {slot.node}"
    case = _open_case(slot, desk)
    if case is not None and ((case.step not in _YIELDING and not case.waits_for_person) or case.is_stood_in):
        return NodeRefusal.BAD_STATUS, f"{slot.node} is under repair already (case {case.id}: {case.step.value})"
    if case is None and node.is_foreign:
        reason = node.reason.text if node.reason else "no reason given"
        return NodeRefusal.BAD_STATUS, f"somebody else took {slot.node} out of service ({reason})"
    return None


def _open_case(slot: SlotRecord, desk: Desk) -> Case | None:
    return next((case for case in desk.cases.values() if case.node == slot.node and case.is_open), None)


def mend(wish: NodeWish, chosen: Sequence[SlotRecord], desk: Desk) -> None:
    """Open a case for each node in service; have the others made anew."""
    draft = Draft(desk.seen, desk.want, desk.memory(), desk.now)
    for slot in chosen:
        text = f"{desk.who} ordered a {wish.value} through the API"
        why = Why(
            rule="node.ordered", text=text, evidence=(f"slot {slot.logical} on {slot.instance or 'no instance'}",)
        )
        if slot.step is SlotStep.SERVING and desk.groups[slot.group].role is Role.COMPUTE:
            _repair(slot, _RUNGS[wish], why, draft)
        else:
            desk.slots[slot.node] = _anew(slot, why, desk)
        desk.tell(f"node.{wish.value}", f"{slot.node}: {why.text}", node=slot.node, group=slot.group)
    desk.cases, desk.next_case = draft.cases, draft.next_case


def _repair(slot: SlotRecord, rung: Advice, why: Why, draft: Draft) -> None:
    before = draft.open_case(slot.node)
    if before is not None and before.step is Step.SUSPECT:
        draft.forget(before)
    elif before is not None:
        by = Why(rule="case.by_person", text=why.text, evidence=(str(before.why),))
        draft.close(before, by)
    fault = Fault(trigger=Trigger.ADMIN, check="admin", rung=rung, why=why, at=draft.now)
    new_case(draft.seen.nodes[slot.node], fault, draft)


def _anew(slot: SlotRecord, why: Why, desk: Desk) -> SlotRecord:
    """A slot without an instance is tried at once; any other gets another instance."""
    if slot.step is SlotStep.WAITING:
        return replace(slot, next_try=desk.now, why=why)
    return replace(slot, purpose=Purpose.RENEW, deadline=desk.now, why=why)
