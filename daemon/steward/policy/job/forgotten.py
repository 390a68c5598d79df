"""Runs that Slurm shows as running again although the job was requeued: slurmctld has lost its newest state.

slurmctld writes its state a few seconds late, and may die before that; its successor begins with the older state. The
run's processes were ended at the requeue, but Slurm does not notice (on 22.05 not in nine minutes): the job would hold
its nodes and do nothing. The decision on the run stands, so the job is requeued once more.
"""

from dataclasses import replace

from steward.model.events import Level
from steward.model.job import Job
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.job.rulings import wish_requeue


def is_shown_again(job: Job, mem: JobMemory) -> bool:
    """Return whether the running job is shown in a run from before its requeue."""
    if mem.pending_from is not None and mem.restarts == job.restarts and mem.started == job.started:
        return True
    last = mem.last_attempt
    began_before = last is not None and job.started is not None and job.started <= last.at
    return began_before and job.restarts < mem.restarts  # a new job with the same number would have begun later


def note_shown_again(job: Job, draft: Draft) -> JobMemory:
    """Remember that the run's decision has not taken effect, and return the job's memory."""
    text = f"job {job.shown_id} is shown as running as if it had not been put back: slurmctld has lost its newest state"
    draft.tell("job.resumed", text, level=Level.WARNING, job=job.id)
    mem = draft.jobs[job.id]
    last, attempts = mem.last_attempt, mem.attempts
    if last is not None and last.is_requeue and last.restart == job.restarts:
        attempts = (*attempts[:-1], replace(last, requeued=None, running=None))
    mem = replace(mem, pending_from=None, nudges=0, last_nudge=0.0, attempts=attempts, shown_again=job.restarts)
    draft.jobs[job.id] = mem
    return mem


def put_back_again(job: Job, draft: Draft) -> None:
    """Requeue the job once more if a fault was the reason; a person's own requeue is not repeated."""
    mem = draft.jobs[job.id]
    promised = mem.promised
    if promised is not None and job.is_batch and job.het_job_id is None and mem.shown_again == job.restarts:
        wish_requeue(job, promised.why, draft)
