"""Write the admin comment of jobs that opted in or are held up by quotas, for sacct and squeue (200 characters).

The comment is written while the job waits or runs: after a job's end, only its accounting record, if any, can be
changed. So the comment about a stop is written before the shim is answered; a stop that was decided after the job's
end is written into the accounting record.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from zlib import crc32

from steward.model.action import CommentJob
from steward.model.comment import BETWEEN, LONGEST, PREFIX, own_part
from steward.model.ids import Key
from steward.model.job import Job
from steward.model.ledger import Ending, Run
from steward.model.resume import Decision, JobMemory
from steward.model.text import printable
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention

AGAIN_S = 60.0
MANY = 20
"""If more jobs than this come back at once, their comments wait.

Slurm is busy starting their next runs then, and Steward would have to read each changed job record again.
"""
LATER_S = 30.0
BEGUN_S = 2.0
"""No comment is written this soon after a run's start: Slurm is busy, and delays a change of the job."""
_NAMED = 2
_AND = "; "
_STOPPED = "stopped, "


def comment_jobs(draft: Draft) -> None:
    """Write each job's comment whenever its text changes; repeat a failed try after a minute."""
    ids = jobs_needing_attention(draft)
    come_back = sum(draft.jobs[id].pending_from is not None for id in ids)
    for id in filter(draft.ledger.__contains__, ids):
        job, mem = draft.seen.jobs.get(id), draft.jobs.get(id)
        if len(runs := draft.ledger[id]) == 1 and runs[0].decision is None:
            continue  # nothing was done for it yet
        if runs[-1].decision is None and draft.now < (settled := runs[-1].started + BEGUN_S):
            draft.wake(settled)
            continue
        if job is None or mem is None or not (_can_be_changed(job) or _was_stopped_late(job, mem)):
            continue
        if come_back > MANY and mem.pending_from is not None and draft.now < mem.pending_from + LATER_S:
            draft.wake(mem.pending_from + LATER_S)
            continue
        if id not in draft.quota_said:
            _write(job, job_comment(runs, mem.resumes, _quota_part(job)), draft)
    for id, word in draft.quota_said.items():
        job, mem = draft.seen.jobs.get(id), draft.jobs.get(id)
        if job is not None and _can_be_changed(job):
            _write(job, job_comment(draft.ledger.get(id, ()), mem.resumes if mem else 0, word), draft)


def _write(job: Job, text: str, draft: Draft) -> None:
    """Ask for the comment to be written, unless the job has it already."""
    if text and text != own_part(job.admin_comment):
        key = Key(f"comment:{job.id}:{crc32(text.encode()):08x}")
        why = Why(rule="job.comment", text="what was done for the job has changed")
        every = AGAIN_S if key in draft.seen.failures and not job.is_over else None
        draft.wish(CommentJob(key=key, why=why, job=job.id, text=text), every)


def _quota_part(job: Job) -> str:
    """Return the part about quotas of the job's present comment; it stays until quotas report something else."""
    parts = own_part(job.admin_comment).removeprefix(PREFIX).split(_AND)
    return _AND.join(part for part in parts if part.startswith("quota"))


def _can_be_changed(job: Job) -> bool:
    """Return whether Slurm can change the job's record now."""
    return (
        (job.is_active or job.is_pending)
        # Slurm 22.05 delays a change of a job that cleans up by 5 s
        and not job.is_completing
        # the record of an array's remaining tasks stands for many jobs
        and not (job.array_job_id and job.array_task is None)
    )


def _was_stopped_late(job: Job, mem: JobMemory) -> bool:
    """Return whether the decision to stop was made after the last run had ended, with no shim waiting."""
    last = mem.last_attempt
    is_of_run = last is not None and last.restart == mem.restarts and not last.what
    return job.is_over and mem.ended is not None and is_of_run and last is not None and last.decision is Decision.STOP


def job_comment(runs: Sequence[Run], resumes: int, quota: str = "") -> str:
    """Return the comment of a job from its `runs`, in order; empty if nothing was done for the job yet.

    `resumes` is the number charged to its budget: a retry and the requeue after it for one fault count as one, a
    reclaim by quotas as none. `quota` is the part about quotas.
    """
    words = []
    resumed = [run for run in runs if run.ending in (Ending.RETRIED, Ending.REQUEUED) and run.decision is not None]
    if resumed:
        times = f"resumed {resumes}x" if resumes else "put back"
        words.append(f"{times} ({_cause_and_time(resumed[-1], runs)}){_time_lost(runs)}")
    last = runs[-1] if runs else None
    stop = last.why.text if last and last.why and last.decision is Decision.STOP else ""
    if stop:
        words.append(f"last: {_STOPPED}{stop}" if resumed else f"{_STOPPED}{stop}")
    words += [quota] if quota else []
    text = PREFIX + _AND.join(words).replace(BETWEEN.strip(), "/")
    return printable(text, LONGEST) if words else ""


def _cause_and_time(run: Run, runs: Sequence[Run]) -> str:
    """Return one run's culprits, cause and time of failure, and how long the resume took."""
    named = sorted(run.culprits)[:_NAMED]
    more = [f"+{len(run.culprits) - _NAMED}"] if len(run.culprits) > _NAMED else []
    cause = run.cause or (run.why.rule if run.why else "")
    at = next((at for at in (run.fault, run.detected, run.decided) if at is not None), run.started)
    clock = datetime.fromtimestamp(at, UTC).strftime("%H:%MZ")
    follower = runs[runs.index(run) + 1 :][:1]
    back = [f"back in {_duration(follower[0].started - at)}"] if follower else []
    return ", ".join([" ".join(filter(None, [*named, *more, cause, clock])), *back])


def _time_lost(runs: Sequence[Run]) -> str:
    """Return the time lost from each fault to the next run, with the work that is done again; empty below a second."""
    lost = 0.0
    for run, follower in pairwise(runs):
        known = [run.kept_until if run.steps_redone is not None else None, run.fault, run.detected, run.ended]
        lost += max(follower.started - next(at for at in [*known, follower.started] if at is not None), 0.0)
    return f", {_duration(lost)} lost" if lost >= 1 else ""


def _duration(seconds: float) -> str:
    """Return a duration in words: `41 s`, `3 min`, `2.5 h`."""
    whole = max(seconds, 0.0)
    if whole < 120:
        return f"{whole:.0f} s"
    return f"{whole / 60:.0f} min" if whole < 7200 else f"{whole / 3600:.1f} h"
