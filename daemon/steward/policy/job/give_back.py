"""Give the time that a fault cost back to the time limit of a retried job.

The time from the fault to the first step after the retry is added, once for each retry. The new limit is an absolute
one, so that a repeated request adds nothing. A requeued job has its whole limit again in any case.
"""

from dataclasses import replace

from steward.model.action import ExtendLimit
from steward.model.ids import Key
from steward.model.job import Job
from steward.model.port_error import is_refusal
from steward.model.resume import Attempt, Decision, JobMemory
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.facts.suspended import suspended_s
from steward.policy.job.progress import progress_of

LEAST_S = 1.0
"""A shorter loss is not given back: the least that Slurm can add is a minute."""
AGAIN_S = 60.0
"""A request that failed and may succeed later is repeated after this time."""


def give_back_time(draft: Draft) -> None:
    """Extend the time limit of each retried job by the time that the fault took."""
    if not draft.want.resume.give_back_time:
        return
    for id in jobs_needing_attention(draft):
        if not (attempts := draft.jobs[id].attempts):
            continue
        job = draft.seen.jobs.get(id)
        if job is not None and job.is_active and _runs_after_retry(job, attempts[-1]):
            _extend_limit(job, attempts[-1], draft)


def _runs_after_retry(job: Job, attempt: Attempt) -> bool:
    """Return whether the job runs in the allocation of this retry and has a time limit."""
    return attempt.decision is Decision.RETRY and attempt.restart == job.restarts and job.time_limit_s is not None


def _extend_limit(job: Job, attempt: Attempt, draft: Draft) -> None:
    """Ask for the new limit once the retry has made a step."""
    if attempt.given_limit_s is None:
        works = _works_since(job, attempt, draft)
        if works is None:
            return
        mem = draft.jobs[job.id]
        lost = _lost_s(attempt, works, mem)
        given = (job.time_limit_s or 0.0) + lost if lost >= LEAST_S else 0.0
        attempt = replace(attempt, given_limit_s=given)
        draft.jobs[job.id] = replace(mem, attempts=(*mem.attempts[:-1], attempt))
        if given:
            text = f"job {job.shown_id}: the fault took {lost:.0f} s of its time limit, which are given back"
            draft.tell("job.time_given_back", text, once=f"extend:{job.id}:{attempt.decided_for}", job=job.id)
    if attempt.given_limit_s and attempt.given_limit_s > (job.time_limit_s or 0.0):
        why = Why(
            rule="limit.give_back", text="a fault took time that the job had asked for", evidence=(str(attempt.why),)
        )
        key = Key(f"extend:{job.id}:{attempt.decided_for}")
        error = draft.seen.failures.get(key, "")
        every = AGAIN_S if error and not is_refusal(error) else None
        draft.wish(ExtendLimit(key=key, why=why, job=job.id, limit_s=attempt.given_limit_s), every)


def _lost_s(attempt: Attempt, works: float, mem: JobMemory) -> float:
    """Return how much of the time limit the fault took."""
    failed_at = attempt.failed_at if attempt.failed_at is not None else attempt.at
    # Slurm's clock stands still while the job is suspended
    return works - failed_at - max(0.0, suspended_s(mem, works) - attempt.suspended_s)


def _works_since(job: Job, attempt: Attempt, draft: Draft) -> float | None:
    """Return when the retry made its first step, or now if the job reports no steps; None before that step."""
    told = [p for p in progress_of(job.id, job.nodes, draft) if p.step is not None]
    steps = [p.stepped for p in told if p.stepped is not None and p.stepped > attempt.at]
    if steps:
        return min(steps)
    # only the lost node may have reported steps: then the ledger knows that the job reports them
    reports_steps = told or any(run.first_step is not None for run in draft.ledger.get(job.id, ()))
    return None if reports_steps else draft.now
