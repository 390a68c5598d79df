"""Jobs that are suspended: by `scontrol suspend`, by gang scheduling, by a preemption. Slurm stops the clock of their
time limit meanwhile, and what they do not do says nothing."""

from dataclasses import replace

from steward.model.job import Job, JobState
from steward.model.resume import JobMemory, Suspension
from steward.policy.draft import Draft
from steward.policy.job.at_rest import restless


def note_suspensions(draft: Draft) -> None:
    """Note since when each job is suspended, and when it went on."""
    for id in restless(draft):
        job, mem = draft.seen.jobs.get(id), draft.jobs[id]
        if job is not None and (now := _suspension(job, mem, draft)) != mem.suspension:
            draft.jobs[id] = replace(mem, suspension=now)


def _suspension(job: Job, mem: JobMemory, draft: Draft) -> Suspension | None:
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
    """Whether the run before was suspended when it ended. Slurm holds such a job when it is back in the queue: only
    what a person suspended (`scontrol suspend`) gets that hold, gang scheduling's and a preemption's does not."""
    return mem.suspension is not None and mem.suspension.since is not None and mem.suspension.restart < job.restarts


def went_on(mem: JobMemory) -> float | None:
    """When its run last went on after it was suspended; None: it was not."""
    return mem.suspension.over if mem.suspension is not None else None


def suspended_s(mem: JobMemory, now: float) -> float:
    """For how long its run was suspended up to now."""
    return _total_s(mem.suspension, now) if mem.suspension is not None else 0.0


def _total_s(known: Suspension, now: float) -> float:
    return known.total_s + (max(0.0, now - known.since) if known.since is not None else 0.0)
