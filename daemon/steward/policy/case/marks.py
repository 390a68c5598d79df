"""The marks of repairs on their nodes: note when one is seen or gone; return a node whose return was forgotten."""

from dataclasses import replace

from steward.model.action import ReturnNode
from steward.model.case import Case, Marking
from steward.model.node import Node
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.forgotten import (
    AGAIN_S,
    ON_DISK_S,
    again_key,
    gone_since,
    is_return_forgotten,
    last_start,
    may_be_forgotten,
    returned_by,
)

_CONTROLLERS = 10
"""How many starts of a controller are remembered for each mark."""
_GAP_S = 15.0
"""After a longer gap between two looks at our marks it is unknown how much time passed."""


def note_marks(draft: Draft) -> None:
    """Note which nodes bear their marks while no action is allowed, so that a person's return is recognised later."""
    for case in [each for each in draft.cases.values() if each.is_open]:
        node = draft.seen.nodes.get(case.node)
        if node is not None and node.mark is not None and node.mark.id == case.id:
            note_mark(case, draft)


def note_mark(case: Case, draft: Draft) -> Case:
    """Note that the case's node bears our mark, and under which controller; return the case."""
    was, began = case.marking, round(last_start(draft))
    if was.gone is not None:
        was = Marking(controllers=was.controllers)
    under = was.controllers if not began or began in was.controllers else (*was.controllers, began)[-_CONTROLLERS:]
    shown = draft.now if was.shown is None else was.shown
    is_on_disk = draft.now - max(shown, _steady_since(draft)) >= ON_DISK_S
    return _keep(case, Marking(shown=shown, controllers=under, on_disk=was.on_disk or is_on_disk), draft)


def note_gone(case: Case, draft: Draft) -> Case:
    """Note since when the case's node is in service without our mark; return the case."""
    return _keep(case, replace(case.marking, gone=gone_since(case, draft)), draft)


def give_back_again(node: Node, draft: Draft) -> None:
    """Give the node back once more if slurmctld forgot that it was given back."""
    case = returned_by(node, draft)
    if case is None or node.mark is None or not draft.may_touch_nodes:
        return
    key = again_key(case)
    if draft.asked_at(key) is None and case.marking.reappeared is None and may_be_forgotten(case, draft.now):
        case = _keep(case, replace(case.marking, reappeared=draft.now), draft)
    if not is_return_forgotten(node, draft):
        return
    text = f"Slurm's controller forgot that {node.name} was given back"
    why = Why(rule="node.forgotten", text=text, evidence=(f"case {case.id} is over: {case.why.text}",))
    draft.tell("node.forgotten", f"{text}: it is given back again", once=key, node=node.name, case=case.id)
    every = AGAIN_S if key in draft.seen.failures else None
    draft.wish(ReturnNode(key=key, why=why, node=node.name, mark=node.mark), every)


def _keep(case: Case, marking: Marking, draft: Draft) -> Case:
    """Remember the case with this record of its mark, and return it."""
    return case if marking == case.marking else draft.cases.keep(replace(case, marking=marking))


def _steady_since(draft: Draft) -> float:
    """Return since when our marks are looked at without a gap, and note this look."""
    # a look is noted once in half a gap, so that most plans leave the memory unchanged
    last = draft.head.looked_at_marks
    if last is None or draft.now - last > _GAP_S:
        draft.head = replace(draft.head, marks_steady_since=draft.now)
    if last is None or draft.now - last > _GAP_S / 2:
        draft.head = replace(draft.head, looked_at_marks=draft.now)
    return draft.head.marks_steady_since
