"""Whether it was Slurm's controller that forgot our mark, or a person who gave the node back.

slurmctld writes its state a few seconds late (tried on 22.05: up to five), and can be started without it. One that
comes back so does not know of a mark, and the node takes jobs again. When it last began anew is read with the
partitions: under a controller that has shown our mark, only a person takes it away. From 23.11 on every reconfigure is
a new beginning, and a person may give the node back in the same breath: a mark that stood long enough to be on disk was
lost only where other old things were lost with it. How long it stood is counted in looks that follow each other: a
clock may be set. In the same way slurmctld forgets that we gave a node back, and the mark stands there again.
"""

from steward.model.action import ReturnNode
from steward.model.case import Case, Step
from steward.model.ids import CaseId, Key
from steward.model.node import Node
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.standing_notes import stand

_ON_DISK_S = 30.0
"""Seconds after which a state is taken to be on slurmctld's disk."""
_GAP_S = 15.0
"""Longer from one look at our marks to the next, and nobody knows how much time passed."""
_LOOKED, _STEADY = "marks:looked", "marks:steady"
_WHOLE_S = 1.0
"""Slurm tells its beginning in whole seconds."""
_AGAIN_S = 10.0
"""In which Slurm shows it, or the next try is made after one that failed."""


def has_forgotten(case: Case, draft: Draft) -> bool | None:
    """Whether Slurm has forgotten our drain: the node is in service without our mark. None: it is not known yet; False
    where nobody asked."""
    began = _began(draft)
    if case.marked is None or not began:
        return False
    if not _unmarked_since(case, draft) <= draft.seen.partitions_at <= draft.now:
        draft.wake(draft.now + _WHOLE_S)
        return None
    if _under_key(case, began) in draft.noted:
        return False
    if _on_disk_key(case) in draft.noted:
        return _lost_its_state(case, began, draft)
    was_shown = any(key.startswith(f"under:{case.id}:") for key in draft.noted)
    return was_shown or began > case.marked - _WHOLE_S


def note_mark(case: Case, draft: Draft) -> None:
    """The node bears our mark, under the controller that was last seen."""
    if draft.noted.pop(_unmarked_key(case), None) is not None:
        draft.noted.pop(_shown_key(case), None)
        draft.noted.pop(_on_disk_key(case), None)
    if began := _began(draft):
        draft.first_seen(_under_key(case, began))
    stands_for = draft.now - max(draft.first_seen(_shown_key(case)), _steady_since(draft))
    if stands_for >= _ON_DISK_S or _on_disk_key(case) in draft.noted:
        stand(_on_disk_key(case), draft)


def _steady_since(draft: Draft) -> float:
    """Since when our marks are looked at again and again."""
    last = draft.noted.get(_LOOKED)
    if last is None or not 0.0 <= draft.now - last <= _GAP_S:
        draft.noted[_STEADY] = draft.now
    if last is None or not 0.0 <= draft.now - last <= _GAP_S / 2:
        draft.noted[_LOOKED] = draft.now
    return draft.noted.get(_STEADY, 0.0)


def _lost_its_state(case: Case, began: float, draft: Draft) -> bool:
    """Whether the controller that began then misses other things that it knew for long, and knows nothing as old."""
    old = began - _ON_DISK_S
    knows_jobs = any(job.submitted is not None and job.submitted < old for job in draft.seen.jobs.values())
    knows_reasons = any(node.reason is not None and 0.0 < node.reason.at < old for node in draft.seen.nodes.values())
    return not (knows_jobs or knows_reasons) and (_misses_marks(case, draft) or _misses_jobs(case, draft))


def _misses_marks(case: Case, draft: Draft) -> bool:
    marked = [each for each in draft.cases.values() if each.is_open and each.step is not Step.RETURN]
    others = [draft.seen.nodes.get(each.node) for each in marked if each != case and _on_disk_key(each) in draft.noted]
    return any(node is not None and not (node.is_drain or node.is_down) for node in others)


def _misses_jobs(case: Case, draft: Draft) -> bool:
    """Slurm shows a job for minutes after its end."""
    since = _unmarked_since(case, draft)
    gone = [mem for id, mem in draft.jobs.items() if id not in draft.seen.jobs]
    return any(mem.ended is None or mem.ended >= since for mem in gone)


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
    draft.tell("node.forgotten", f"{text}: it is given back again", once=key, node=node.name, case=case.id)
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


def _shown_key(case: Case) -> str:
    return f"shown:{case.id}"


def _on_disk_key(case: Case) -> str:
    return f"on-disk:{case.id}"


def _under_key(case: Case, began: float) -> str:
    return f"under:{case.id}:{began:.0f}"
