"""How many of a group are there: what the API shows as CurrentCount, and what MinCount is compared with."""

from steward.model.group import Group, Role
from steward.model.slot import SlotRecord, SlotStep
from steward.policy.draft import Draft


def current(group: Group, draft: Draft) -> int:
    """Slots in service whose node takes jobs or runs some (compute), or whose agent is connected (login)."""
    return sum(1 for record in draft.members(group.name) if is_current(record, group, draft))


def is_current(record: SlotRecord, group: Group, draft: Draft) -> bool:
    if record.step is not SlotStep.SERVING or group.role is Role.CONTROLLER:
        return record.step is SlotStep.SERVING
    if group.role is Role.LOGIN:
        view = draft.seen.agents.get(record.node)
        return view is not None and view.connected
    node = draft.seen.nodes.get(record.node)
    in_service = node is not None and node.is_schedulable
    return in_service and draft.case_in_work(record.node) is None


def staying(group: Group, draft: Draft) -> list[SlotRecord]:
    """The slots that nobody sends away, the oldest first."""
    return [record for record in draft.members(group.name) if not record.is_leaving]
