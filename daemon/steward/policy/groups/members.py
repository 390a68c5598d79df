"""The slots of a group: how many serve now, and which ones nobody sends away."""

from steward.model.group import Group
from steward.model.slot import SlotRecord
from steward.policy.draft import Draft
from steward.policy.groups.count import is_current


def serves(record: SlotRecord, group: Group, draft: Draft) -> bool:
    """Whether the slot counts now, in what was decided so far."""
    return is_current(record, group, draft.seen, draft.nodes_in_repair)


def current(group: Group, draft: Draft) -> int:
    """The number that the API shows as CurrentCount, and that MinCount is compared with."""
    return sum(serves(record, group, draft) for record in draft.members(group.name))


def staying(group: Group, draft: Draft) -> list[SlotRecord]:
    """The slots that nobody sends away, the oldest first."""
    return [record for record in draft.members(group.name) if not record.is_leaving]
