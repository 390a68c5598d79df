"""Nodes out of service for a repair that the store has lost.

A store may lose its rows: its file is damaged while its disk is full, and the head is killed before it can write all of
memory again. The mark in Slurm then outlives its case. The node's checks can still say whether it may serve, so such a
node gets a new case, in which they alone decide.
"""

from steward.model.case import Trigger, time_in_case_id
from steward.model.health import Advice
from steward.model.ids import CaseId
from steward.model.node import Node
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.by_person import is_out_by_case
from steward.policy.facts.verdict import Fault

CASES_KEPT_S = 7 * 86400.0
"""How long a closed case is remembered. The mark of a younger one that is not remembered is of a case that was lost."""


def fault_of_lost_case(node: Node, draft: Draft) -> Fault | None:
    """Return the fault of a node that bears the mark of a lost case, and that can be checked now; else None."""
    view, mark = draft.seen.agents.get(node.name), node.mark
    opened = time_in_case_id(mark.id) if mark is not None else None
    if mark is None or opened is None or abs(draft.now - opened) >= CASES_KEPT_S:
        return None
    # a known case goes on, or it is over and a person has set its mark again
    if CaseId(mark.id) in draft.cases or not is_out_by_case(node, draft):
        return None
    # a silent machine is left to a person: it must not serve unproved, and nothing shows what was to be done to it
    if view is None or not view.connected or not node.responding:
        return None
    text = f"{node.name} is out of service for a repair that the store has lost"
    why = Why(rule="node.lost_case", text=text, evidence=(str(mark),))
    return Fault(trigger=Trigger.DEGRADED, check=mark.check, rung=Advice.NONE, why=why, at=opened, is_event=True)
