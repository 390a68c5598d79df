"""The slots that serve (CurrentCount), and how slots and repairs work together.

A node has a case only while its slot serves, and a slot keeps the instance that a repair made.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from steward.model.case import Step
from steward.model.group import Group, Role
from steward.model.ids import NodeName
from steward.model.memory import Memory
from steward.model.node import Node
from steward.model.observed import Observed
from steward.model.slot import Purpose, SlotRecord, SlotStep
from steward.model.why import Why
from steward.policy.draft import Draft


def current_counts(memory: Memory, seen: Observed) -> Mapping[str, int]:
    """Return how many slots serve, by group; a group without any is missing (the Counter answers 0)."""
    repaired = frozenset(case.node for case in memory.cases.values() if case.is_open)
    return Counter(
        slot.group
        for slot in memory.slots.values()
        if slot.group in memory.groups and is_current(slot, memory.groups[slot.group], seen, repaired)
    )


def is_current(slot: SlotRecord, group: Group, seen: Observed, repaired: Collection[NodeName]) -> bool:
    """Return whether the slot serves now: neither drained, silent nor under repair.

    `repaired` are the nodes with an open case.
    """
    if slot.step is not SlotStep.SERVING or slot.node in repaired:
        return False
    match group.role:
        case Role.CONTROLLER:
            return True
        case Role.LOGIN:
            view = seen.agents.get(slot.node)
            return view is not None and view.connected
        case Role.COMPUTE:
            node = seen.nodes.get(slot.node)
            return node is not None and node.is_schedulable


# The slots of a group: how many serve now, and which stay.


def serves(record: SlotRecord, group: Group, draft: Draft) -> bool:
    """Return whether the slot serves now, by the decisions so far."""
    return is_current(record, group, draft.seen, draft.cases.nodes_in_repair)


def current(group: Group, draft: Draft) -> int:
    """Return the number that the API shows as CurrentCount, and that MinCount is compared with."""
    return sum(serves(record, group, draft) for record in draft.slots.members(group.name))


def staying(group: Group, draft: Draft) -> list[SlotRecord]:
    """Return the slots that are not leaving, the oldest first."""
    return [record for record in draft.slots.members(group.name) if not record.is_leaving]


def belongs_to_slot(node: Node, draft: Draft) -> bool:
    """Return whether groups, and not repairs, decide about the node: it comes, leaves, or has no slot in its group.

    That stays so for a node that left and whose group was deleted, until a person or another group takes the node.
    """
    record = draft.slots.get(node.name)
    if record is None:
        slot = draft.want.slots.get(node.name)
        has_left = node.mark is not None and node.mark.is_slots
        return has_left or (slot is not None and slot.group in draft.groups)
    has_just_come = record.served == draft.now
    return record.step is not SlotStep.SERVING or record.purpose is not Purpose.STAY or has_just_come


def is_being_verified(node: NodeName, draft: Draft) -> bool:
    """Return whether a slot's own machine is prepared, and only has to pass its checks."""
    record, view = draft.slots.get(node), draft.seen.agents.get(node)
    if record is None or record.purpose is not Purpose.STAY or view is None or view.incarnation is None:
        return False
    return record.step in (SlotStep.VERIFY, SlotStep.RETURN) and view.incarnation.instance == record.instance


def close_case(record: SlotRecord, draft: Draft) -> None:
    """Close the node's open case: a slot that comes, leaves, or gets another instance takes over from the repair."""
    case = draft.cases.open_of(record.node)
    if case is None:
        return
    if case.step is Step.SUSPECT:
        draft.cases.forget(case)
        return
    why = Why(rule="case.slot", text=f"group {record.group} replaces {record.node} now", evidence=(str(case.why),))
    draft.cases.close(case, why, draft.now)
    draft.tell("case.closed", why.text, node=record.node, case=case.id, group=record.group)


def follow_repair(record: SlotRecord, draft: Draft) -> SlotRecord:
    """Return the slot with the instance that a repair gave its node."""
    if record.step is not SlotStep.SERVING or draft.instance(record.instance) is not None:
        return record
    repaired = [c for c in draft.cases.of(record.node) if c.new_instance is not None]
    last = max(repaired, key=lambda c: (c.opened, c.id), default=None)
    if last is None or draft.instance(last.new_instance) is None:
        return record
    version = draft.groups[record.group].version
    return draft.slots.keep(replace(record, instance=last.new_instance, missing=None, version=version))
