"""For how long jobs were suspended.

A job is suspended by `scontrol suspend`, by gang scheduling or by a preemption. Slurm stops the clock of its time limit
meanwhile, and a lack of progress says nothing.
"""

from dataclasses import replace

from steward.model.job import Job, JobState
from steward.model.resume import JobMemory, Suspension
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention


def note_suspensions(draft: Draft) -> None:
    """Note since when each job is suspended, and when it was continued."""
    for id in jobs_needing_attention(draft):
        job, mem = draft.seen.jobs.get(id), draft.jobs[id]
        if job is not None and (now := _suspension(job, mem, draft)) != mem.suspension:
            draft.jobs[id] = replace(mem, suspension=now)


def _suspension(job: Job, mem: JobMemory, draft: Draft) -> Suspension | None:
    """Return the job's suspensions in this run, updated from Slurm's picture; None if there were none."""
    known = mem.suspension
    if not job.is_active:
        return known
    if known is not None and known.restart != job.restarts:
        known = None
    if job.state is JobState.SUSPENDED:
        known = known or Suspension(restart=job.restarts)
        return known if known.since is not None else replace(known, since=draft.now)
    if known is None or known.since is None:
        return known
    return replace(known, since=None, over=draft.now, total_s=_total_s(known, draft.now))


def ended_suspended(job: Job, mem: JobMemory) -> bool:
    """Return whether the run before was suspended by a person when it ended.

    Slurm holds such a job when it is back in the queue. Only `scontrol suspend` leads to that hold; gang scheduling and
    preemption do not.
    """
    return mem.suspension is not None and mem.suspension.since is not None and mem.suspension.restart < job.restarts


def went_on(mem: JobMemory) -> float | None:
    """Return when the run was last continued after a suspension; None if it was never suspended."""
    return mem.suspension.over if mem.suspension is not None else None


def suspended_s(mem: JobMemory, now: float) -> float:
    """Return for how many seconds the run was suspended up to `now`."""
    return _total_s(mem.suspension, now) if mem.suspension is not None else 0.0


def _total_s(known: Suspension, now: float) -> float:
    return known.total_s + (max(0.0, now - known.since) if known.since is not None else 0.0)
