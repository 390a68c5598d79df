"""The case table as a page with a diagram: `python -m steward.policy.case.diagram > docs/case.md`."""

from steward.model.case import Step
from steward.model.repair_policy import RepairPolicy
from steward.policy.case.table import TABLE, deadline
from steward.policy.fact_table import page_tables

_HEAD = """# A case: one node's repair

Made from the table in `daemon/steward/policy/case/table.py` by `python -m steward.policy.case.diagram`; a test
compares. In each step the facts are tried in the order of the first table; the first that is true decides the next
step. Facts come from the picture of the world alone, never from what a call returned. The deadline of release is for
the jobs on the node; its turn, or a person's approval, is waited for without limit.

"""


def page() -> str:
    """The whole of docs/case.md."""
    return _HEAD + _diagram() + "\n" + page_tables(TABLE, _limit)


def _diagram() -> str:
    arrows = [f"    {a.name} --> {b.name}: {fact.name.lower()}" for (a, fact), b in TABLE.items()]
    ends = ["    [*] --> SUSPECT", *arrows, "    CLOSED --> [*]"]
    return "\n".join(["```mermaid", "stateDiagram-v2", *ends, "```", ""])


def _limit(step: Step) -> str:
    seconds = deadline(step, RepairPolicy())
    return "a person" if seconds is None else f"{seconds:.0f} s"


if __name__ == "__main__":
    print(page(), end="")
