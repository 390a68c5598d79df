"""Whether it was Slurm's controller that forgot our mark, or a person who gave the node back.

slurmctld writes its state a few seconds late (tried on 22.05: up to five), and can be started without it. One that
comes back so does not know of a mark, and the node takes jobs again. When it last began anew is read with the
partitions: under a controller that has shown our mark, only a person takes it away. In the same way it forgets that we
gave a node back, and the mark stands there again.
"""

from steward.model.action import ReturnNode
from steward.model.case import Case
from steward.model.ids import CaseId, Key
from steward.model.node import Node
from steward.model.why import Why
from steward.policy.draft import Draft

_WHOLE_S = 1.0
"""Slurm tells its beginning in whole seconds."""
_AGAIN_S = 10.0
"""In which Slurm shows it, or the next try is made after one that failed."""


def has_forgotten(case: Case, draft: Draft) -> bool | None:
    """Of a node in service without our mark. None: it is not known yet; False where nobody asked."""
    began = _began(draft)
    if case.marked is None or not began:
        return False
    if not _unmarked_since(case, draft) <= draft.seen.partitions_at <= draft.now:
        draft.wake(draft.now + _WHOLE_S)
        return None
    if _under_key(case, began) in draft.noted:
        return False
    was_shown = any(key.startswith(f"under:{case.id}:") for key in draft.noted)
    return was_shown or began > case.marked - _WHOLE_S


def note_mark(case: Case, draft: Draft) -> None:
    """The node bears our mark, under the controller that was last seen."""
    draft.noted.pop(_unmarked_key(case), None)
    if began := _began(draft):
        draft.first_seen(_under_key(case, began))


def give_back_again(node: Node, draft: Draft) -> bool:
    """Once more, and no second time, where its mark is that of a case which ended with the node back in service.
    False: it is not, or somebody set the mark after that."""
    case = draft.cases.get(CaseId(node.mark.id)) if node.mark is not None else None
    if node.mark is None or case is None or case.node != node.name or not _ended_well(case):
        return False
    key = Key(f"return:{case.id}:again")
    asked, failed = draft.asked_at(key), key in draft.seen.failures
    if not draft.may_touch_nodes or (asked is not None and not failed and draft.now >= asked + _AGAIN_S):
        return False
    text = f"Slurm's controller forgot that {node.name} was given back"
    why = Why(rule="node.forgotten", text=text, evidence=(f"case {case.id} is over: {case.why.text}",))
    draft.tell("node.forgotten", f"{text}: once more", once=key, node=node.name, case=case.id)
    draft.wish(ReturnNode(key=key, why=why, node=node.name, mark=node.mark), _AGAIN_S if failed else None)
    return True


def _ended_well(case: Case) -> bool:
    """Its own node is back in service, not another one in its place."""
    return case.closed is not None and case.returned is not None and case.stand_in is None


def _unmarked_since(case: Case, draft: Draft) -> float:
    """Never in the future, whatever the clock did."""
    key = _unmarked_key(case)
    draft.noted[key] = min(draft.first_seen(key), draft.now)
    return draft.noted[key]


def _began(draft: Draft) -> float:
    """When slurmctld last began anew (Unix s); 0 where it is not known."""
    return max((partition.loaded for partition in draft.seen.partitions.values()), default=0.0)


def _unmarked_key(case: Case) -> str:
    return f"unmarked:{case.id}"


def _under_key(case: Case, began: float) -> str:
    return f"under:{case.id}:{began:.0f}"
