"""The end of a job's last run as the head sees it: since when the run cleans up, and since when it is over.

Each function `..._since` is for a job in that state now, and notes the time at its first call.
"""

import math
from dataclasses import replace
from typing import Any, Literal

from steward.model.job import Job
from steward.model.resume import Bystander, JobMemory, Leaving
from steward.policy.draft import Draft


def end_of(mem: JobMemory) -> Leaving:
    """Return the end of the job's last run as far as it was seen; empty if another run followed it."""
    end = mem.leaving
    return end if end is not None and end.restart == mem.restarts else Leaving(restart=mem.restarts)


def cleans_up_since(job: Job, draft: Draft) -> float:
    """Return since when the last run is seen to clean up."""
    return _first_seen("since", job, draft)


def over_since(job: Job, draft: Draft) -> float:
    """Return since when the last run is seen to be over; blind time is left out."""
    return _first_seen("over", job, draft)


def done_since(job: Job, draft: Draft) -> float:
    """Return since when the last run is seen to be over and cleaned up."""
    return _first_seen("done", job, draft)


def asked_since(job: Job, draft: Draft) -> float:
    """Return since when the requeue of the last run, which is over, is seen to be asked for."""
    return _first_seen("asked", job, draft)


def clean_since(job: Job, draft: Draft) -> float:
    """Return since when the job is seen back in the queue, with its last run cleaned up."""
    return _first_seen("clean", job, draft)


def bystander_record(job: Job, draft: Draft) -> Bystander:
    """Return the record of a job that is not to be resumed; a new one if there is none for this submission."""
    known = draft.bystanders.get(job.id)
    if known is None or known.submitted != job.submitted:
        known = Bystander(since=draft.now, submitted=job.submitted)
    return known


def clean_bystander_since(job: Job, draft: Draft) -> float:
    """Return since when a job that is not to be resumed is seen back in the queue, cleaned up."""
    known = bystander_record(job, draft)
    end = known.leaving
    if end is not None and end.restart == job.restarts and end.clean is not None:
        return end.clean
    draft.bystanders[job.id] = replace(known, leaving=Leaving(restart=job.restarts, clean=draft.now))
    return draft.now


def _first_seen(what: Literal["since", "over", "done", "asked", "clean"], job: Job, draft: Draft) -> float:
    """Return when this stage of the last run's end was first seen; note the present time if that is now."""
    mem = draft.jobs[job.id]
    end = end_of(mem)
    at: float | None = getattr(end, what)
    if at is not None:
        return at
    now: dict[str, Any] = {what: draft.now}
    draft.jobs[job.id] = replace(mem, leaving=replace(end, **now))
    return draft.now


def is_looked_into(mem: JobMemory) -> bool:
    """Return whether the last run is over, and what follows is not decided or not carried out yet."""
    return mem.ended is None and mem.pending_from is None and end_of(mem).over is not None


def credential_safe_at(job: Job, draft: Draft) -> float:
    """Return when (Unix s) the job can start without Slurm revoking its new credential.

    slurmd revokes a job's credentials up to the second in which its end began, and times have whole seconds. If the job
    starts again within that second, the new credential counts as revoked, too, and slurmctld kills the job ("Job
    credential revoked").
    """
    mem = draft.jobs.get(job.id)
    if mem is None:  # the job was evicted and did not ask to be resumed
        return next_second(clean_bystander_since(job, draft))
    # the run ended before it was seen to clean up, or else before it was seen clean
    cleaned, clean = end_of(mem).since, clean_since(job, draft)
    return next_second(clean if cleaned is None else min(cleaned, clean))


def next_second(at: float) -> float:
    """Return the first time at which Slurm's clock shows another second."""
    # a second nudge within one second changes nothing; a little more for Slurm's coarse clock
    return math.floor(at) + 1.02
