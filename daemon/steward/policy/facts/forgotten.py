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

from steward.model.case import Case, CaseStep
from steward.model.ids import CaseId, Key
from steward.model.node import Node
from steward.policy.draft import Draft

ON_DISK_S = 30.0
"""Seconds after which a state is taken to be on slurmctld's disk."""
_WHOLE_S = 1.0
"""Slurm tells its start in whole seconds."""
AGAIN_S = 10.0
"""Within this time Slurm shows the return, or a failed try is repeated."""
_BEGINS_S = 600.0
"""A controller that forgot a return starts this soon after the return ..."""
_SHOWS_S = 120.0
"""... and shows the mark this soon after its start."""


def has_forgotten(case: Case, draft: Draft) -> bool | None:
    """Return whether slurmctld lost our mark on a node that is in service without it; None if not known yet.

    False also if the mark was never seen, or slurmctld's start is unknown.
    """
    began = last_start(draft)
    marked = marked_since(case)
    if marked is None or not began:
        return False
    if not gone_since(case, draft) <= draft.seen.partitions_at <= draft.now:
        draft.wake(draft.now + _WHOLE_S)
        return None
    # the running slurmctld has shown the mark: a person took the mark away
    if round(began) in case.marking.controllers:
        return False
    if case.marking.on_disk:
        return _lost_its_state(case, began, draft)
    return bool(case.marking.controllers) or began > marked - _WHOLE_S


def marked_since(case: Case) -> float | None:
    """Return when the node was out of service, or else when our mark was first seen on it; None: never."""
    return case.marked if case.marked is not None else case.marking.shown


def _lost_its_state(case: Case, began: float, draft: Draft) -> bool:
    """Return whether slurmctld also lost other old marks or jobs, and knows no old job or reason."""
    old = began - ON_DISK_S
    knows_jobs = any(job.submitted is not None and job.submitted < old for job in draft.seen.jobs.values())
    knows_reasons = any(node.reason is not None and 0.0 < node.reason.at < old for node in draft.seen.nodes.values())
    return not (knows_jobs or knows_reasons) and (_misses_marks(case, draft) or _misses_jobs(case, draft))


def _misses_marks(case: Case, draft: Draft) -> bool:
    """Return whether other nodes have lost marks that must have been on disk."""
    marked = [each for each in draft.cases.values() if each.is_open and each.step is not CaseStep.RETURN]
    others = [draft.seen.nodes.get(each.node) for each in marked if each.id != case.id and each.marking.on_disk]
    return any(node is not None and not (node.is_drain or node.is_down) for node in others)


def _misses_jobs(case: Case, draft: Draft) -> bool:
    """Return whether Slurm does not know remembered jobs any more that it should still show."""
    # Slurm shows a job for minutes after its end
    since = gone_since(case, draft)
    gone = [mem for id, mem in draft.jobs.items() if id not in draft.seen.jobs]
    return any(mem.ended is None or mem.ended >= since for mem in gone)


def bears_old_mark(node: Node, draft: Draft) -> bool:
    """Return whether a person took the node out, and Slurm kept the reason of a repair that is over."""
    case = returned_by(node, draft)
    return case is not None and not may_be_forgotten(case, draft.now)


def shows_again(case: Case, now: float) -> bool:
    """Return whether the mark was seen on its node soon after the return, so that slurmctld may have forgotten it."""
    return case.marking.reappeared is not None and may_be_forgotten(case, now)


def may_be_forgotten(case: Case, now: float) -> bool:
    """Return whether slurmctld may have forgotten that the case ended with its node back in service."""
    return _ended_well(case) and now <= (case.returned or 0.0) + _BEGINS_S + _SHOWS_S


def returned_by(node: Node, draft: Draft) -> Case | None:
    """Return the case whose mark the node bears although it ended with the node back in service; None if none."""
    case = draft.cases.get(CaseId(node.mark.id)) if node.mark is not None else None
    return case if case is not None and case.node == node.name and _ended_well(case) else None


def again_key(case: Case) -> Key:
    """Return the key of the action that gives the case's node back once more."""
    return Key(f"return:{case.id}:again")


def is_return_forgotten(node: Node, draft: Draft) -> bool | None:
    """Return whether slurmctld forgot that the node was given back, and the node is given back again; None: not known.

    False: the mark is not that of a repair which ended well, or a person set the mark again.
    """
    case = returned_by(node, draft)
    if case is None or node.mark is None or not draft.may_touch_nodes:
        return False
    key = again_key(case)
    asked = draft.asked_at(key)
    if asked is None:
        return _forgot_return(case, draft)
    return key in draft.seen.failures or draft.now < asked + AGAIN_S


def _forgot_return(case: Case, draft: Draft) -> bool | None:
    """Return whether slurmctld started after the node was given back, and just now; None: not known yet."""
    returned = case.returned
    if returned is None or not may_be_forgotten(case, draft.now):
        return False
    again = case.marking.reappeared if case.marking.reappeared is not None else draft.now
    if draft.seen.partitions_at < again:
        draft.wake(draft.now + _WHOLE_S)
        return None
    began = last_start(draft)
    return returned < began <= returned + _BEGINS_S and draft.now <= began + _SHOWS_S


def _ended_well(case: Case) -> bool:
    """Return whether the case ended with its own node back in service, and no other one in its place."""
    return case.closed is not None and case.returned is not None and case.stand_in is None


def gone_since(case: Case, draft: Draft) -> float:
    """Return since when the mark is gone."""
    return draft.now if case.marking.gone is None else case.marking.gone


def last_start(draft: Draft) -> float:
    """Return when slurmctld last started (Unix s); 0 if that is not known."""
    return max((partition.loaded for partition in draft.seen.partitions.values()), default=0.0)
