"""The case table as a page with a diagram: `python -m steward.policy.case.diagram > docs/case.md`."""

from steward.model.case import Step
from steward.model.desired import RepairPolicy
from steward.policy.case.table import TABLE, deadline

_HEAD = """# A case: one node's repair

Made from the table in `daemon/steward/policy/case/table.py` by `python -m steward.policy.case.diagram`; a test
compares. In each step the facts are tried in the order of the table below; the first that is true decides. Facts come
from the picture of the world alone, never from what a call returned.

"""


def page() -> str:
    """The whole of docs/case.md."""
    return _HEAD + _diagram() + "\n" + _table()


def _diagram() -> str:
    arrows = [f"    {a.name} --> {b.name}: {fact.name.lower()}" for (a, fact), b in TABLE.items()]
    ends = ["    [*] --> SUSPECT", *arrows, "    CLOSED --> [*]"]
    return "\n".join(["```mermaid", "stateDiagram-v2", *ends, "```", ""])


def _table() -> str:
    rows = [
        f"| {a.value} | {_limit(a)} | {fact.name.lower()}: {fact.value} | {b.value} |" for (a, fact), b in TABLE.items()
    ]
    return "\n".join(["| step | deadline (default) | fact | next step |", "|---|---|---|---|", *rows, ""])


def _limit(step: Step) -> str:
    seconds = deadline(step, RepairPolicy())
    return "a person" if seconds is None else f"{seconds:.0f} s"


if __name__ == "__main__":
    print(page(), end="")
