"""Whether Slurm's controller forgot our mark, or a person gave the node back.

slurmctld writes its state a few seconds late (tried on 22.05: up to five), and can be started without it. After such a
start it does not know a new mark, and the node takes jobs again. The time of slurmctld's last start is read with the
partitions: if slurmctld has shown the mark since that start, only a person can have taken the mark away.

From 23.11 on every reconfigure counts as a start, and a person may give the node back at the same time. So a mark that
stood long enough to be on disk counts as forgotten only if slurmctld also forgot other old marks or jobs. How long a
mark stood is counted over looks without a gap, because a clock may be set.

In the same way slurmctld may forget that we gave a node back, and show the mark again. But if slurmctld has not just
started, a person took the node out since, and Slurm (24.11) has kept our old reason.
"""

from dataclasses import replace

from steward.model.action import ReturnNode
from steward.model.case import Case, Marking, Step
from steward.model.ids import CaseId, Key
from steward.model.node import Node
from steward.model.why import Why
from steward.policy.draft import Draft

_ON_DISK_S = 30.0
"""Seconds after which a state is taken to be on slurmctld's disk."""
_GAP_S = 15.0
"""After a longer gap between two looks at our marks it is unknown how much time passed."""
_WHOLE_S = 1.0
"""Slurm tells its start in whole seconds."""
_CONTROLLERS = 10
"""How many starts of a controller are remembered for each mark."""
_AGAIN_S = 10.0
"""Within this time Slurm shows the return, or a failed try is repeated."""
_BEGINS_S = 600.0
"""A controller that forgot a return starts this soon after the return ..."""
_SHOWS_S = 120.0
"""... and shows the mark this soon after its start."""


def has_forgotten(case: Case, draft: Draft) -> bool | None:
    """Return whether slurmctld lost our mark on a node that is in service without it; None if not known yet.

    False also if the mark was never seen, or slurmctld's start is unknown.
    """
    began = _last_start(draft)
    marked = marked_since(case)
    if marked is None or not began:
        return False
    if not _gone_since(case, draft) <= draft.seen.partitions_at <= draft.now:
        draft.wake(draft.now + _WHOLE_S)
        return None
    # the running slurmctld has shown the mark: a person took the mark away
    if round(began) in case.marking.under:
        return False
    if case.marking.on_disk:
        return _lost_its_state(case, began, draft)
    return bool(case.marking.under) or began > marked - _WHOLE_S


def marked_since(case: Case) -> float | None:
    """Return when the node was out of service, or else when our mark was first seen on it; None: never."""
    return case.marked if case.marked is not None else case.marking.shown


def note_marks(draft: Draft) -> None:
    """Note which nodes bear their marks while no action is allowed, so that a person's return is recognised later."""
    for case in [each for each in draft.cases.values() if each.is_open]:
        node = draft.seen.nodes.get(case.node)
        if node is not None and node.mark is not None and node.mark.id == case.id:
            note_mark(case, draft)


def note_mark(case: Case, draft: Draft) -> Case:
    """Note that the case's node bears our mark, and under which controller; return the case."""
    was, began = case.marking, round(_last_start(draft))
    if was.gone is not None:
        was = Marking(under=was.under)
    under = was.under if not began or began in was.under else (*was.under, began)[-_CONTROLLERS:]
    shown = draft.now if was.shown is None else was.shown
    is_on_disk = draft.now - max(shown, _steady_since(draft)) >= _ON_DISK_S
    return _keep(case, Marking(shown=shown, under=under, on_disk=was.on_disk or is_on_disk), draft)


def note_gone(case: Case, draft: Draft) -> Case:
    """Note since when the case's node is in service without our mark; return the case."""
    return _keep(case, replace(case.marking, gone=_gone_since(case, draft)), draft)


def _keep(case: Case, marking: Marking, draft: Draft) -> Case:
    """Remember the case with this record of its mark, and return it."""
    return case if marking == case.marking else draft.cases.keep(replace(case, marking=marking))


def _steady_since(draft: Draft) -> float:
    """Return since when our marks are looked at without a gap, and note this look."""
    # a look is noted once in half a gap, so that most plans leave the memory unchanged
    last = draft.head.marks
    if last is None or draft.now - last > _GAP_S:
        draft.head = replace(draft.head, marks_steady=draft.now)
    if last is None or draft.now - last > _GAP_S / 2:
        draft.head = replace(draft.head, marks=draft.now)
    return draft.head.marks_steady


def _lost_its_state(case: Case, began: float, draft: Draft) -> bool:
    """Return whether slurmctld also lost other old marks or jobs, and knows no old job or reason."""
    old = began - _ON_DISK_S
    knows_jobs = any(job.submitted is not None and job.submitted < old for job in draft.seen.jobs.values())
    knows_reasons = any(node.reason is not None and 0.0 < node.reason.at < old for node in draft.seen.nodes.values())
    return not (knows_jobs or knows_reasons) and (_misses_marks(case, draft) or _misses_jobs(case, draft))


def _misses_marks(case: Case, draft: Draft) -> bool:
    """Return whether other nodes have lost marks that must have been on disk."""
    marked = [each for each in draft.cases.values() if each.is_open and each.step is not Step.RETURN]
    others = [draft.seen.nodes.get(each.node) for each in marked if each.id != case.id and each.marking.on_disk]
    return any(node is not None and not (node.is_drain or node.is_down) for node in others)


def _misses_jobs(case: Case, draft: Draft) -> bool:
    """Return whether Slurm does not know remembered jobs any more that it should still show."""
    # Slurm shows a job for minutes after its end
    since = _gone_since(case, draft)
    gone = [mem for id, mem in draft.jobs.items() if id not in draft.seen.jobs]
    return any(mem.ended is None or mem.ended >= since for mem in gone)


def give_back_again(node: Node, draft: Draft) -> bool:
    """Give the node back once more if slurmctld forgot its return; return whether that is asked for or not known yet.

    False: the mark is not that of a repair which ended well, or a person set the mark again.
    """
    case = returned_by(node, draft)
    if case is None or node.mark is None or not draft.may_touch_nodes:
        return False
    key = Key(f"return:{case.id}:again")
    asked, failed = draft.asked_at(key), key in draft.seen.failures
    if asked is None and not (forgot := _forgot_return(case, draft)):
        return forgot is None
    if asked is not None and not failed and draft.now >= asked + _AGAIN_S:
        return False
    text = f"Slurm's controller forgot that {node.name} was given back"
    why = Why(rule="node.forgotten", text=text, evidence=(f"case {case.id} is over: {case.why.text}",))
    draft.tell("node.forgotten", f"{text}: it is given back again", once=key, node=node.name, case=case.id)
    draft.wish(ReturnNode(key=key, why=why, node=node.name, mark=node.mark), _AGAIN_S if failed else None)
    return True


def bears_old_mark(node: Node, draft: Draft) -> bool:
    """Return whether a person took the node out, and Slurm kept the reason of a repair that is over."""
    case = returned_by(node, draft)
    return case is not None and not may_be_forgotten(case, draft.now)


def shows_again(case: Case, now: float) -> bool:
    """Return whether the mark was seen on its node soon after the return, so that slurmctld may have forgotten it."""
    return case.marking.again is not None and may_be_forgotten(case, now)


def may_be_forgotten(case: Case, now: float) -> bool:
    """Return whether slurmctld may have forgotten that the case ended with its node back in service."""
    return _ended_well(case) and now <= (case.returned or 0.0) + _BEGINS_S + _SHOWS_S


def returned_by(node: Node, draft: Draft) -> Case | None:
    """Return the case whose mark the node bears although it ended with the node back in service; None if none."""
    case = draft.cases.get(CaseId(node.mark.id)) if node.mark is not None else None
    return case if case is not None and case.node == node.name and _ended_well(case) else None


def _forgot_return(case: Case, draft: Draft) -> bool | None:
    """Return whether slurmctld started after the node was given back, and just now; None: not known yet."""
    returned = case.returned
    if returned is None or not may_be_forgotten(case, draft.now):
        return False
    again = case.marking.again if case.marking.again is not None else draft.now
    _keep(case, replace(case.marking, again=again), draft)
    if draft.seen.partitions_at < again:
        draft.wake(draft.now + _WHOLE_S)
        return None
    began = _last_start(draft)
    return returned < began <= returned + _BEGINS_S and draft.now <= began + _SHOWS_S


def _ended_well(case: Case) -> bool:
    """Return whether the case ended with its own node back in service, and no other one in its place."""
    return case.closed is not None and case.returned is not None and case.stand_in is None


def _gone_since(case: Case, draft: Draft) -> float:
    """Return since when the mark is gone."""
    return draft.now if case.marking.gone is None else case.marking.gone


def _last_start(draft: Draft) -> float:
    """Return when slurmctld last started (Unix s); 0 if that is not known."""
    return max((partition.loaded for partition in draft.seen.partitions.values()), default=0.0)
