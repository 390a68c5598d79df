"""Whether Steward told a job to save its state: a program may end by that signal, with any code."""

import math

from steward.model.ids import JobId, Key
from steward.model.job import Job
from steward.model.port_error import is_refusal, was_not_tried
from steward.model.resume import JobMemory
from steward.policy.draft import Draft


def limit_key(job: Job) -> Key:
    """Return the key of the signal before the job's time limit: one for each limit of a run."""
    return Key(f"limit:{job.id}:{job.restarts}:{job.time_limit_s:g}")


def leave_key(token: str, job: JobId) -> Key:
    """Return the key of the signal before a slot's machine goes, by the slot's token."""
    return Key(f"signal:{token}:{job}")


def told_to_save(job: Job, mem: JobMemory, failed_at: float, draft: Draft) -> str:
    """Return why Steward told the job's last run to save its state before it failed; empty if it did not."""
    if job.time_limit_s is not None and _was_sent(limit_key(job), mem, failed_at, draft):
        return "Steward told it to save its state before its time limit"
    for node in sorted(mem.nodes):
        slot = draft.slots.get(node)
        if slot is not None and _was_sent(leave_key(slot.token, job.id), mem, failed_at, draft):
            return f"Steward told it to save its state before {node} goes"
    return ""


def _was_sent(key: Key, mem: JobMemory, failed_at: float, draft: Draft) -> bool:
    """Return whether the signal was sent to this run, or may have been."""
    at, error = draft.asked_at(key), draft.seen.failures.get(key, "")
    if at is None or at < (mem.started or 0.0) or at >= draft.now:
        return False
    # Slurm reports whole seconds
    if math.floor(at) > failed_at:
        return False
    return not (is_refusal(error) or was_not_tried(error))
