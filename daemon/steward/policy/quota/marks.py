"""Marks: priorities that keep Slurm's preemption away from jobs that began as borrowers and are covered by now.

If Slurm showed our priority and then shows another, a person set that one, and it stays.
"""

from dataclasses import replace

from steward.model.accounting import Accounting
from steward.model.action import MarkJob
from steward.model.events import Level
from steward.model.ids import JobId, Key
from steward.model.job import Job
from steward.model.quota import QuotaJob
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.quota.requests import Unit
from steward.policy.quota.turn import Turn

RETRY_S = 5.0
SOON_S = 1.0
TOUCHED_AT_ONCE = 50
"""The most jobs to move or mark in one turn; the others follow in later turns."""


def keep_marks(turn: Turn, picture: Accounting, draft: Draft) -> int:
    """Remove marks that are not needed any more, then set missing ones; return how many jobs were touched."""
    touched = release_all(draft)
    if not picture.can.marks:
        return touched
    spared, beyond = _covered_and_beyond(turn)
    for unit in beyond:
        touched += _unmark(unit, draft)
    above = picture.can.exempt_priority + 1
    for unit in spared:
        if touched >= TOUCHED_AT_ONCE:
            draft.wake(draft.now + SOON_S)
            break
        touched += _mark(unit, above, draft)
    return touched


def release_all(draft: Draft, *teams: str) -> int:
    """Remove the marks of jobs that wait again or are over, and of all jobs of `teams`, whose quotas end.

    Return how many jobs were touched.
    """
    touched = 0
    for id, memory in list(draft.quota_jobs.items()):
        job = draft.seen.jobs.get(id)
        if memory.marked is None:
            continue
        if job is None or job.is_over:
            _remember(id, memory.team, None, draft)
        elif job.is_pending or memory.team in teams:
            why = (
                "it waits again: its priority is" if job.is_pending else "its team's quota ends: its priority is again"
            )
            touched += _release(job, memory, f"{why} Slurm's to say", draft)
    return touched


def _covered_and_beyond(turn: Turn) -> tuple[list[Unit], list[Unit]]:
    """Return the running jobs in borrowing QOS: those that the quota covers by now, and those beyond it."""
    spared: list[Unit] = []
    beyond: list[Unit] = []
    for team, held in turn.held.items():
        borrowed = [unit for unit in held.borrowers if unit.jobs[0].is_active]
        excess = {unit.id for unit in turn.room.excess(team)} | turn.going if borrowed else frozenset()
        for unit in borrowed:
            (beyond if unit.id in excess else spared).append(unit)
    return spared, beyond


def _mark(unit: Unit, priority: int, draft: Draft) -> int:
    """Set the job's priority; return how many jobs were touched."""
    job, memory = unit.jobs[0], draft.quota_jobs.get(unit.id)
    if memory is not None and memory.marked is not None:
        if job.priority == memory.marked and not memory.mark_seen:
            draft.quota_jobs[unit.id] = replace(memory, mark_seen=True)
        if _is_a_persons(job, memory):
            text = f"job {job.shown_id}: its priority was set to {job.priority} by hand, and it stays"
            once = f"quota-priority:{job.id}:{job.restarts}:{job.priority}"
            draft.tell("quota.by_hand", text, once=once, level=Level.WARNING, job=job.id)
            return 0
    # leave a priority that is high enough already
    if job.priority >= priority:
        return 0
    why = Why(rule="quota.mark", text=f"the quota of {unit.team} covers it by now: it is not evicted")
    key = Key(f"quota:mark:{job.id}:{job.restarts}:{priority}")
    _remember(job.id, unit.team, priority, draft)
    return draft.wish(MarkJob(key=key, why=why, job=job.id, priority=priority, restart=job.restarts), RETRY_S)


def _unmark(unit: Unit, draft: Draft) -> int:
    """Remove the job's mark, if it has one; return how many jobs were touched."""
    memory = draft.quota_jobs.get(unit.id)
    if memory is None or memory.marked is None:
        return 0
    return _release(unit.jobs[0], memory, f"{unit.team} has borrowed again: it may be evicted", draft)


def _is_a_persons(job: Job, memory: QuotaJob) -> bool:
    """Return whether a person changed the priority since Slurm showed ours."""
    return memory.mark_seen and job.priority != memory.marked


def _release(job: Job, memory: QuotaJob, text: str, draft: Draft) -> int:
    """Give the job's priority back to Slurm, unless it is not ours any more; return how many jobs were touched."""
    # without this, Slurm would keep a priority that was set directly, even over a requeue
    if job.priority != memory.marked:
        _remember(job.id, memory.team, None, draft)
        return 0
    why = Why(rule="quota.unmark", text=text)
    key = Key(f"quota:unmark:{job.id}:{job.restarts}")
    return draft.wish(MarkJob(key=key, why=why, job=job.id, priority=None, restart=job.restarts), RETRY_S)


def _remember(id: JobId, team: str, priority: int | None, draft: Draft) -> None:
    """Remember the priority with which the job is marked; None: it has no mark."""
    memory = draft.quota_jobs.get(id) or QuotaJob(team=team)
    if priority is None and not memory.evictions:
        draft.quota_jobs.pop(id, None)
    elif (memory.marked, memory.mark_seen) != (priority, False):
        draft.quota_jobs[id] = replace(memory, marked=priority, mark_seen=False)
