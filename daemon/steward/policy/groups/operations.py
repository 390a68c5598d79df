"""When a wish of scaling is over: each of its groups has what was wished, or is meant to have something else by now."""

from dataclasses import replace

from steward.model.group import Goal
from steward.model.slot import SlotStep
from steward.policy.draft import Draft


def finish_operations(draft: Draft) -> None:
    """Note the time on operations that are done; a rollback ends them, too."""
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
    members = draft.members(name)
    return len(members) == goal.target and all(slot.step is SlotStep.SERVING for slot in members)
