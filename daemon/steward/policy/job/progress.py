"""How far a job's checkpoints are, and the time that is given back to a retried job.

The last checkpoint is kept for when the job's nodes cannot report any more. The time from a fault to the first step
after the retry is added to a running job's time limit, once for each retry, as an absolute limit: repeating it adds
nothing. A requeue starts the limit anew in any case.
"""

from collections.abc import Collection
from dataclasses import replace

from steward.model.action import ExtendLimit
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job
from steward.model.job_report import Progress
from steward.model.port_error import is_refusal
from steward.model.resume import Attempt, Decision, JobMemory, Saved
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import restless, suspended_s
from steward.policy.traits import Trait


def told_of(id: JobId, nodes: Collection[NodeName], draft: Draft, *, restart: int | None = None) -> list[Progress]:
    """Return the progress that the agents of `nodes` report of a job, of all its runs if `restart` is None."""
    if draft.ground.agents.having(Trait.TELLING).isdisjoint(nodes):
        return []
    views = [draft.seen.agents[node] for node in sorted(nodes) if node in draft.seen.agents]
    told = [one for view in views for one in view.progress if one.job == id]
    return told if restart is None else [one for one in told if one.restart == restart]


def note_saved(mem: JobMemory, draft: Draft) -> None:
    """Remember the last checkpoint that an agent of the job's nodes reports."""
    newest = mem.saved
    for told in told_of(mem.id, mem.nodes, draft):
        found = _saved(told)
        if found is not None and (newest is None or _is_later(found, newest)):
            newest = found
    if newest != mem.saved:
        draft.jobs[mem.id] = replace(mem, saved=newest)


def _saved(told: Progress) -> Saved | None:
    """Return the checkpoint of a report; None if the report has none."""
    if told.checkpoint_step is None and told.checkpointed is None:
        return None
    return Saved(path=told.checkpoint, step=told.checkpoint_step, at=told.checkpointed)


def _is_later(found: Saved, known: Saved) -> bool:
    """Return whether the checkpoint was written later, whatever its step."""
    # nodes that report the same checkpoint do not report the same time
    if found.step is not None and (found.path, found.step) == (known.path, known.step):
        return False
    if found.at is not None and known.at is not None:
        # in a next stage, or when its user goes back, steps begin again
        return found.at > known.at
    return found.is_newer_than(known)


LEAST_S = 1.0
"""A shorter loss is not worth a minute, which is the least that Slurm can give."""
AGAIN_S = 60.0
"""A try that may have failed only for the moment is repeated after this time."""


def give_back_time(draft: Draft) -> None:
    """Extend the time limit of each retried job by the time that the fault took."""
    if not draft.want.resume.give_back_time:
        return
    for id in restless(draft):
        if not (attempts := draft.jobs[id].attempts):
            continue
        job = draft.seen.jobs.get(id)
        if job is not None and job.is_active and _is_retry_of(job, attempts[-1]):
            _give(job, attempts[-1], draft)


def _is_retry_of(job: Job, attempt: Attempt) -> bool:
    """Return whether the job runs in the allocation of this retry and has a time limit."""
    return attempt.decision is Decision.RETRY and attempt.restart == job.restarts and job.time_limit_s is not None


def _give(job: Job, attempt: Attempt, draft: Draft) -> None:
    """Work out the new limit once the retry has made a step, and ask for it."""
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
            text = f"job {job.id}: the fault took {lost:.0f} s of its time limit, which are given back"
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
    """Return when the retry made its first step, or began if the job reports no steps; None: not yet."""
    told = [p for p in told_of(job.id, job.nodes, draft) if p.step is not None]
    steps = [p.stepped for p in told if p.stepped is not None and p.stepped > attempt.at]
    if steps:
        return min(steps)
    # the lost node may be the only one that ever reported steps: the ledger knows
    tells = told or any(run.first_step is not None for run in draft.ledger.get(job.id, ()))
    return None if tells else draft.now
