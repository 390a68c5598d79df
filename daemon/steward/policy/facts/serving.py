"""The slots that serve (CurrentCount), and how slots and repairs work together.

A node has a case only while its slot serves, and a slot keeps the instance that a repair made.
"""

from collections import Counter
from collections.abc import Collection, Mapping

from steward.model.group import Group, Role
from steward.model.ids import NodeName
from steward.model.memory import Memory
from steward.model.node import Node
from steward.model.observed import Observed
from steward.model.slot import Purpose, SlotRecord, SlotStep
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


def count_serving(group: Group, draft: Draft) -> int:
    """Return the number that the API shows as CurrentCount, and that MinCount is compared with."""
    return sum(serves(record, group, draft) for record in draft.slots.members(group.name))


def slots_that_stay(group: Group, draft: Draft) -> list[SlotRecord]:
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
