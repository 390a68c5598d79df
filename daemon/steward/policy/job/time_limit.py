"""A job that goes on after its time limit may save its state before."""

from steward.model.action import SignalJob
from steward.model.ids import Key
from steward.model.job import Job
from steward.model.resume import JobMemory
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.job.options import options
from steward.policy.job.suspension import suspended_s


def signal_before_limit(job: Job, mem: JobMemory, draft: Draft) -> None:
    """Once for each limit: a job whose limit was raised meanwhile gets its signal again before the new one. The clock
    of the limit stands still while a job is suspended."""
    rules = draft.want.resume
    if not rules.checkpoint_signal or job.started is None or job.time_limit_s is None:
        return
    if not job.is_batch or not options(mem.mode, rules).timeout:
        return
    at = job.started + job.time_limit_s + suspended_s(mem, draft.now) - rules.checkpoint_before_s
    if draft.now < at:
        draft.wake(at)
        return
    text = (
        f"its time limit is over in {rules.checkpoint_before_s:g} s or less: it may save its state, and goes on after"
    )
    why = Why(rule="resume.checkpoint", text=text, evidence=(f"time limit {job.time_limit_s:g} s",))
    key = Key(f"limit:{job.id}:{job.restarts}:{job.time_limit_s:g}")
    draft.wish(SignalJob(key=key, why=why, job=job.id, signal=rules.checkpoint_signal))
