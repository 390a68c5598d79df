"""CurrentCount: how many nodes of each group are really there for work."""

from collections import Counter
from collections.abc import Collection, Mapping

from steward.model.group import Group, Role
from steward.model.ids import NodeName
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.slot import SlotRecord, SlotStep
from steward.policy.draft import Draft


def current_counts(memory: Memory, seen: Observed) -> Mapping[str, int]:
    """By group; one that has none is missing (a Counter answers 0 for it)."""
    repaired = frozenset(case.node for case in memory.cases.values() if case.is_open)
    return Counter(
        slot.group
        for slot in memory.slots.values()
        if slot.group in memory.groups and is_current(slot, memory.groups[slot.group], seen, repaired)
    )


def is_current(slot: SlotRecord, group: Group, seen: Observed, repaired: Collection[NodeName]) -> bool:
    """In service, and neither drained, silent nor under repair now. `repaired` are the nodes with an open case."""
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


# The slots of a group: how many serve now, and which ones nobody sends away.


def serves(record: SlotRecord, group: Group, draft: Draft) -> bool:
    """Whether the slot counts now, in what was decided so far."""
    return is_current(record, group, draft.seen, draft.cases.nodes_in_repair)


def current(group: Group, draft: Draft) -> int:
    """The number that the API shows as CurrentCount, and that MinCount is compared with."""
    return sum(serves(record, group, draft) for record in draft.slots.members(group.name))


def staying(group: Group, draft: Draft) -> list[SlotRecord]:
    """The slots that nobody sends away, the oldest first."""
    return [record for record in draft.slots.members(group.name) if not record.is_leaving]
