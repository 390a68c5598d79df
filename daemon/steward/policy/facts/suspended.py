"""For how long jobs were suspended.

A job is suspended by `scontrol suspend`, by gang scheduling or by a preemption. Slurm stops the clock of its time limit
meanwhile, and a lack of progress says nothing.
"""

from steward.model.job import Job
from steward.model.resume import JobMemory


def ended_suspended(job: Job, mem: JobMemory) -> bool:
    """Return whether the run before was suspended by a person when it ended.

    Slurm holds such a job when it is back in the queue. Only `scontrol suspend` leads to that hold; gang scheduling and
    preemption do not.
    """
    return mem.suspension is not None and mem.suspension.since is not None and mem.suspension.restart < job.restarts


def continued_at(mem: JobMemory) -> float | None:
    """Return when the run was last continued after a suspension; None if it was never suspended."""
    return mem.suspension.over if mem.suspension is not None else None


def suspended_s(mem: JobMemory, now: float) -> float:
    """Return for how many seconds the run was suspended up to `now`."""
    return mem.suspension.until_s(now) if mem.suspension is not None else 0.0
