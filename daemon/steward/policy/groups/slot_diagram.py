"""The slot table as a page with a diagram: `python -m steward.policy.groups.slot_diagram > docs/slot.md`."""

from steward.model.desired import Desired
from steward.model.slot import SlotStep
from steward.policy.fact_table import page_tables
from steward.policy.groups.slot_table import TABLE, deadline

_HEAD = """# A slot: one place in a group, from the wish to a node in service and out again

Made from the table in `daemon/steward/policy/groups/slot_table.py` by `python -m steward.policy.groups.slot_diagram`;
a test compares. In each step the facts are tried in the order of the first table; the first that is true decides the
next step. Facts come from the picture of the world alone, never from what a call returned.

A slot leaves when its group shrinks or is deleted, or when a person deletes its node; a software update makes it anew.
A node takes no job before its scripts ran and its checks passed. While a slot serves, faults of its node are
repaired by a [case](case.md).

"""


def page() -> str:
    """The whole of docs/slot.md."""
    return _HEAD + _diagram() + "\n" + page_tables(TABLE, _limit, "meaning (it: the slot)")


def _diagram() -> str:
    arrows = [f"    {a.name} --> {_name(b)}: {fact.name.lower()}" for (a, fact), b in TABLE.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> WAITING", *arrows, "```", ""])


def _name(step: SlotStep | None) -> str:
    return step.name if step else "[*]"


def _limit(step: SlotStep) -> str:
    seconds = deadline(step, Desired())
    return _NO_LIMIT[step] if seconds is None else f"{seconds:.0f} s"


_NO_LIMIT = {
    SlotStep.WAITING: "asks again for ever",
    SlotStep.SERVING: "none",
    SlotStep.DRAIN: "`drain_deadline_s`, `update_drain_deadline_s`",
    SlotStep.BACKUP: "the command's; then a person",
    SlotStep.END: "the provider's",
}


if __name__ == "__main__":
    print(page(), end="")
