"""The case table as a page with a diagram: `python -m steward.policy.case.diagram > docs/case.md`."""

from itertools import groupby
from operator import itemgetter

from steward.model.case import Step
from steward.model.repair_policy import RepairPolicy
from steward.policy.case.table import TABLE, deadline

_HEAD = """# A case: one node's repair

Made from the table in `daemon/steward/policy/case/table.py` by `python -m steward.policy.case.diagram`; a test
compares. In each step the facts are tried in the order of the first table; the first that is true decides the next
step. Facts come from the picture of the world alone, never from what a call returned.

"""


def page() -> str:
    """The whole of docs/case.md."""
    return _HEAD + _diagram() + "\n" + _table()


def _diagram() -> str:
    arrows = [f"    {a.name} --> {b.name}: {fact.name.lower()}" for (a, fact), b in TABLE.items()]
    ends = ["    [*] --> SUSPECT", *arrows, "    CLOSED --> [*]"]
    return "\n".join(["```mermaid", "stateDiagram-v2", *ends, "```", ""])


def _table() -> str:
    steps = [f"| {step.value} | {_limit(step)} | {_ways(step)} |" for step in dict.fromkeys(a for a, _ in TABLE)]
    facts = [f"| {fact.name.lower()} | {fact.value} |" for fact in dict.fromkeys(fact for _, fact in TABLE)]
    heads = ["| step | deadline (default) | fact → next step |", "|---|---|---|"], ["| fact | meaning |", "|---|---|"]
    return "\n".join([*heads[0], *steps, "", *heads[1], *facts, ""])


def _ways(step: Step) -> str:
    """Its facts in their order; those that lead to the same step stand together."""
    ways = [(fact.name.lower(), b.value) for (a, fact), b in TABLE.items() if a is step]
    return "; ".join(f"{', '.join(fact for fact, _ in some)} → {to}" for to, some in groupby(ways, key=itemgetter(1)))


def _limit(step: Step) -> str:
    seconds = deadline(step, RepairPolicy())
    return "a person" if seconds is None else f"{seconds:.0f} s"


if __name__ == "__main__":
    print(page(), end="")
