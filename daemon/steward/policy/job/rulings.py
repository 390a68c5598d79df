"""Remember a ruling on a job, and ask for the requeue that follows from it."""

from dataclasses import replace

from steward.model.action import AllowRequeue, RequeueJob
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job, JobState
from steward.model.resume import Attempt, Decision, JobMemory, what_failed
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.blame import EVIDENCE_AFTER_S, users_own
from steward.policy.facts.dying import dying_nodes
from steward.policy.facts.suspended import suspended_s
from steward.policy.facts.turn_share import has_share
from steward.policy.job.decide import NO_MORE, RECLAIMED, Ruling
from steward.policy.job.exclude import exclude_list

MOST_ATTEMPTS = 20
"""Rulings remembered of a job: this many to stop, which any failed step may bring, and this many others."""


def keep_ruling(
    id: JobId,
    decided_for: str,
    ruling: Ruling,
    draft: Draft,
    *,
    node: NodeName | None = None,
    failed_at: float | None = None,
    step: str = "",
    nodes: frozenset[NodeName] = frozenset(),
    slurm_did: bool = False,
) -> None:
    """Write the event of a ruling and remember it, once for each `decided_for`.

    Every ruling but STOP is charged to the job's budget, unless the job was evicted for another job or the fault was
    charged before. `failed_at`, `step` and `nodes` are as in `Attempt`. `slurm_did`: Slurm requeued the job already.
    """
    mem = draft.jobs.get(id)
    is_left = slurm_did and ruling.decision is Decision.STOP
    did = "left to Slurm, which had put it back into the queue" if is_left else ruling.decision.value
    what = what_failed(step, failed_at)
    text = f"job {draft.shown_id(id)}: {did}{f' ({what} failed)' if what else ''}: {ruling.why}"
    draft.tell("job.decided", text, once=f"decided:{id}:{decided_for}", node=node, job=id)
    if mem is None or mem.attempt_for(decided_for) is not None:
        return
    resumed = ruling.decision is not Decision.STOP and ruling.why.rule != RECLAIMED and not ruling.is_counted
    attempt = Attempt(
        decided_for=decided_for,
        decision=ruling.decision,
        why=ruling.why,
        at=draft.now,
        culprits=ruling.culprits,
        restart=mem.restarts,
        final=ruling.final,
        open=ruling.open,
        failed_at=failed_at,
        step=step,
        nodes=nodes,
        counted=resumed,
        suspended_s=_suspended_before(mem, failed_at if failed_at is not None else draft.now),
        requeued=draft.now if slurm_did else None,
        given_limit_s=0.0 if ruling.unproven else None,  # the user can make such a failure as long as wanted
        saved=mem.saved,
        lines=ruling.lines,
    )
    draft.jobs[id] = replace(
        mem,
        attempts=_appended(mem.attempts, attempt),
        resumes=mem.resumes + resumed,
        unproven=mem.unproven + (resumed and ruling.unproven),
    )


def _appended(attempts: tuple[Attempt, ...], new: Attempt) -> tuple[Attempt, ...]:
    """Return the rulings with the new one, without the oldest of its kind if there are too many."""
    alike = [one for one in attempts if (one.decision is Decision.STOP) == (new.decision is Decision.STOP)]
    oldest = alike[0] if len(alike) >= MOST_ATTEMPTS else None
    return (*(one for one in attempts if one is not oldest), new)


def _suspended_before(mem: JobMemory, at: float) -> float:
    """Return for how long the run was suspended before this time."""
    is_of_run = mem.suspension is not None and mem.suspension.restart == mem.restarts
    return suspended_s(mem, at) if is_of_run else 0.0


def standing_promise(mem: JobMemory, ruling: Ruling, failed_at: float, draft: Draft) -> Attempt | None:
    """Return the requeue of this run that was decided shortly before and has not come; None if there is none.

    That requeue is not charged again. A new failure whose `ruling` forbids any further run cancels it.
    """
    promised = mem.promised
    if promised is None or ruling.why.rule in NO_MORE:
        return None
    return promised if failed_at <= promised.at + EVIDENCE_AFTER_S else None


def requeue_by(job: Job, decided_for: str, ruling: Ruling, draft: Draft, *, node: NodeName | None = None) -> None:
    """Remember a ruling to requeue (or wait), and ask for the requeue."""
    keep_ruling(job.id, decided_for, ruling, draft, node=node)
    wish_requeue(job, ruling.why, draft)


def wish_requeue(job: Job, why: Why, draft: Draft) -> None:
    """Ask for a requeue with the culprits excluded; set `Requeue=1` first if the job was submitted without it."""
    # if many jobs of one user are to be requeued, some wait for a later turn
    if not has_share(RequeueJob, job.user_id, draft):
        return
    mem = draft.jobs[job.id]
    if not job.requeue:
        draft.wish(
            AllowRequeue(key=Key(f"allow:{job.id}:{job.restarts}"), why=why, job=job.id), draft.want.repair.retry_s
        )
    promised = mem.promised
    if dying_nodes(job, None if promised is None else promised.at, draft):
        return  # the node's DOWN will requeue the job
    exclude = exclude_list(job, mem, draft)
    remember_excludes(job, exclude, draft)
    # a COMPLETED run is requeued only if its end time shows that it is the run of this decision
    told_at = job.ended if job.state is JobState.COMPLETED else None
    action = RequeueJob(
        key=requeue_key(job), why=why, job=job.id, restart=job.restarts, exclude=exclude, told_at=told_at
    )
    draft.wish(action, draft.want.repair.retry_s)


def requeue_key(job: Job) -> Key:
    """Return the key of the job's requeue; the key changes when the run ends."""
    return _requeue_key(job.id, job.restarts, is_active=job.is_active)


def _requeue_key(id: JobId, restart: int, *, is_active: bool) -> Key:
    # failed tries before the run's end say nothing about tries after it
    return Key(f"requeue:{id}:{restart}" + ("" if is_active else ":ended"))


def was_put_back_by_us(id: JobId, restart: int, draft: Draft) -> bool:
    """Return whether Steward asked Slurm to requeue this run, and Slurm did not refuse."""
    keys = (_requeue_key(id, restart, is_active=is_active) for is_active in (True, False))
    return any(draft.asked_at(key) is not None and key not in draft.seen.failures for key in keys)


def remember_excludes(job: Job, exclude: frozenset[NodeName], draft: Draft) -> None:
    """Remember which part of the job's exclude list is ours, so that the user's own is never lost."""
    mem = draft.jobs[job.id]
    user = users_own(job, mem)
    draft.jobs[job.id] = replace(mem, excluded=exclude - user, excluded_by_user=user)
