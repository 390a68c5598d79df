"""A run that Slurm shows as running again though the job was put back since: slurmctld has lost its newest state.

It writes its state a few seconds late, and may die before; the next one, or the one that takes over, begins with the
older one. The run's processes were ended when the job was put back, which Slurm does not notice for long (tried on
22.05: not in nine minutes): the job would hold its nodes and do nothing. What was decided for the run stands, so the
job is put back once more.
"""

from dataclasses import replace

from steward.model.events import Level
from steward.model.job import Job
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.job.rulings import requeue


def is_shown_again(job: Job, mem: JobMemory) -> bool:
    """Whether the job, which Slurm shows as running, is in a run from before it was put back."""
    if mem.pending_from is not None and mem.restarts == job.restarts and mem.started == job.started:
        return True
    last = mem.last_attempt
    began_before = last is not None and job.started is not None and job.started <= last.at
    return began_before and job.restarts < mem.restarts  # no other job that got the number


def note_shown_again(job: Job, draft: Draft) -> JobMemory:
    """What is remembered then: what was decided for that run has not come yet."""
    text = f"job {job.id} is shown as running as if it had not been put back: slurmctld has lost its newest state"
    draft.tell("job.resumed", text, level=Level.WARNING, job=job.id)
    mem = draft.jobs[job.id]
    last, attempts = mem.last_attempt, mem.attempts
    if last is not None and last.is_requeue and last.restart == job.restarts:
        attempts = (*attempts[:-1], replace(last, requeued=None, running=None))
    mem = replace(mem, pending_from=None, nudges=0, last_nudge=0.0, attempts=attempts, shown_again=job.restarts)
    draft.jobs[job.id] = mem
    return mem


def put_back_again(job: Job, draft: Draft) -> None:
    """Where a fault had put it back; what a person had asked for is not done for him."""
    mem = draft.jobs[job.id]
    promised = mem.promised
    if promised is not None and job.is_batch and job.het_job_id is None and mem.shown_again == job.restarts:
        requeue(job, promised.why, draft)
