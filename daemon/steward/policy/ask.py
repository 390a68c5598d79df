"""Answer the shims that wait: retry, requeue or stop, by evidence and within the job's budget."""

from dataclasses import replace

from steward.model.action import AllowRequeue, AnswerAsk, CheckNow, RequeueJob
from steward.model.ask import Answer, Ask, AskKind
from steward.model.case import Step
from steward.model.events import Level
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job, JobState
from steward.model.resume import Attempt, Decision, JobMemory
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.evidence import Evidence, evidence, may_still_turn_up
from steward.policy.exclude import exclude_list, users_own

ANSWER_AGAIN_S = 2.0
LEAVE_S = 3.0
"""How long after a node is DOWN Slurm may still show it in a job."""
MOST_ATTEMPTS = 20


def answer_asks(draft: Draft) -> None:
    """Decide for every shim that waits; one without a decision is looked at again at its next deadline."""
    for ask in sorted(draft.seen.asks, key=lambda a: a.id):
        _answer(ask, draft)


def _answer(ask: Ask, draft: Draft) -> None:
    failed_at = draft.first_seen(f"ask:{ask.id}")
    too_late = draft.now >= failed_at + draft.want.resume.ask_deadline_s
    draft.wake(failed_at + draft.want.resume.ask_deadline_s)
    if not draft.slurm_is_fresh:
        if too_late:
            _stop(ask, Why(rule="ask.deadline", text="Slurm could not be read in time"), draft, final=False)
        return
    job, mem = draft.seen.jobs.get(ask.job), draft.jobs.get(ask.job)
    if job is None or mem is None:
        _stop_unknown(ask, job, failed_at, draft)
        return
    prior = next((a for a in mem.attempts if a.decided_for == ask.id), None)
    refusal = _refusal(ask, job, draft)
    if refusal is not None:
        _stop(ask, refusal, draft, final=False)
    elif job.is_pending or job.restarts > ask.restart:
        _tell(ask, Answer.REQUEUE, Why(rule="ask.requeued", text="the job was requeued"), draft)
    elif prior is not None:
        _carry_on(ask, job, prior, draft)
    else:
        _decide(ask, job, mem, failed_at, too_late, draft)


def _stop_unknown(ask: Ask, job: Job | None, failed_at: float, draft: Draft) -> None:
    if job is None and draft.now < failed_at + 1.0:
        draft.wake(failed_at + 1.0)
        return
    text = "Slurm does not know the job" if job is None else "the job did not ask to be resumed"
    _stop(ask, Why(rule="ask.no_job", text=text), draft, final=False)


def _refusal(ask: Ask, job: Job, draft: Draft) -> Why | None:
    """Why nothing but stop can be the answer, whatever the evidence."""
    if not ask.mode.on or not draft.want.resume.enabled:
        return Why(rule="ask.off", text="auto-resume is off for it")
    if ask.uid not in (0, job.user_id):
        text = f"uid {ask.uid} asked for a job of uid {job.user_id}"
        draft.tell("ask.foreign", text, once=f"uid:{ask.id}", level=Level.WARNING, node=ask.node, job=ask.job)
        return Why(rule="ask.foreign", text=text)
    if not job.is_active and not job.is_pending:
        cleans_up = job.state is JobState.UNKNOWN and job.is_completing  # 22.05 hides what it will be then
        return Why(rule="ask.ended", text="Slurm is ending it" if cleans_up else f"the job is {job.state.value}")
    return None


def _decide(ask: Ask, job: Job, mem: JobMemory, failed_at: float, too_late: bool, draft: Draft) -> None:
    found = evidence(job.nodes, mem, failed_at, draft)
    new = _not_used_up(found, mem, ask, failed_at, draft)
    if too_late:
        _stop(ask, Why(rule="ask.deadline", text="no decision was possible in time"), draft, final=False)
    elif new and mem.resumes >= draft.want.resume.max_resumes:
        text = f"it was resumed {mem.resumes} times, its limit"
        _stop(ask, Why(rule="resume.budget", text=text, evidence=_texts(new)), draft, final=True)
    elif new:
        _resume(ask, job, mem, new, failed_at, draft)
    elif not _waits_for_checks(ask, job, failed_at, draft):
        text = "nothing speaks for a fault of the machines: the failure is taken as the job's own"
        _stop(ask, Why(rule="resume.no_evidence", text=text), draft, final=ask.kind is AskKind.BATCH)


def _not_used_up(
    found: tuple[Evidence, ...], mem: JobMemory, ask: Ask, failed_at: float, draft: Draft
) -> tuple[Evidence, ...]:
    """Evidence that no retry was given for yet; a retry that failed at once did not do it justice."""
    retried = _last_retry(mem)
    if retried is None or failed_at <= retried.at + draft.want.resume.retry_proof_s:
        return found
    return tuple(item for item in found if item.at > retried.at)


def _last_retry(mem: JobMemory) -> Attempt | None:
    retries = [a for a in mem.attempts if a.decision is Decision.RETRY and a.restart == mem.restarts]
    return retries[-1] if retries else None


def _resume(ask: Ask, job: Job, mem: JobMemory, found: tuple[Evidence, ...], failed_at: float, draft: Draft) -> None:
    bad = frozenset(item.node for item in found)
    if _waits_for_exit(job, bad, draft):
        return
    if ask.kind is AskKind.STEP and _can_retry(ask, job, mem, bad, failed_at, draft):
        why = Why(rule="resume.retry", text="a node failed; enough others are left in the job", evidence=_texts(found))
        _remember(ask, Decision.RETRY, why, bad, draft)
        _tell(ask, Answer.RETRY, why, draft, bad)
    elif job.is_batch:
        why = Why(rule="resume.requeue", text="a node failed; the job starts again elsewhere", evidence=_texts(found))
        _remember(ask, Decision.REQUEUE, why, bad, draft)
        requeue(job, why, draft)
    else:
        why = Why(rule="resume.not_batch", text="only a batch job can be requeued", evidence=_texts(found))
        _stop(ask, why, draft, final=True)


def _waits_for_exit(job: Job, bad: frozenset[NodeName], draft: Draft) -> bool:
    """Whether a bad node is still on its way out of service, or Slurm still shows a dead one in the job."""
    for node in sorted(bad & job.nodes):
        case, known = draft.case_in_work(node), draft.seen.nodes.get(node)
        if case is not None and case.step is Step.DRAIN and draft.may_touch_nodes:
            return True
        since = case.marked if case is not None and case.marked is not None else None
        if known is not None and known.is_down and since is not None and draft.now < since + LEAVE_S:
            draft.wake(since + LEAVE_S)
            return True
    return False


def _can_retry(ask: Ask, job: Job, mem: JobMemory, bad: frozenset[NodeName], failed_at: float, draft: Draft) -> bool:
    """Enough nodes may be left (the step's own need is unknown: srun finds out), and the last retry was no flop."""
    retried = _last_retry(mem)
    flop = ask.attempt > 0 and retried is not None and failed_at <= retried.at + draft.want.resume.retry_proof_s
    in_place = job.batch_host not in bad and ask.node not in bad
    still_in = any(n in draft.seen.nodes and draft.seen.nodes[n].is_schedulable for n in bad & job.nodes)
    return ask.replay and not flop and in_place and bool(job.nodes - bad) and not still_in


def requeue(job: Job, why: Why, draft: Draft) -> None:
    """Ask for a requeue with the culprits excluded; `Requeue=1` first where the job was submitted without."""
    mem = draft.jobs[job.id]
    if not job.requeue:
        draft.wish(AllowRequeue(key=Key(f"allow:{job.id}:{job.restarts}"), why=why, job=job.id), _retry(draft))
    exclude = exclude_list(job, mem, draft)
    remember_excludes(job, exclude, draft)
    key = Key(f"requeue:{job.id}:{job.restarts}")
    draft.wish(RequeueJob(key=key, why=why, job=job.id, exclude=exclude), _retry(draft))


def remember_excludes(job: Job, exclude: frozenset[NodeName], draft: Draft) -> None:
    """Keep which part of the job's list is ours, so that the user's own is never lost."""
    mem = draft.jobs[job.id]
    user = users_own(job, mem)
    draft.jobs[job.id] = replace(mem, excluded=exclude - user, excluded_by_user=user)


def _retry(draft: Draft) -> float:
    return draft.want.repair.retry_s


def _carry_on(ask: Ask, job: Job, prior: Attempt, draft: Draft) -> None:
    """The decision stands; the world has not followed yet."""
    if prior.decision is Decision.REQUEUE:
        requeue(job, prior.why, draft)
    elif prior.decision is Decision.RETRY:
        _tell(ask, Answer.RETRY, prior.why, draft, prior.culprits)
    else:
        _tell(ask, Answer.STOP, prior.why, draft)


def _waits_for_checks(ask: Ask, job: Job, failed_at: float, draft: Draft) -> bool:
    """Ask the job's nodes once for fresh results; wait for them, and for silent nodes to be found out."""
    connected = frozenset(n for n in job.nodes if (v := draft.seen.agents.get(n)) is not None and v.connected)
    key = Key(f"check:{ask.id}")
    why = Why(rule="resume.check", text=f"job {ask.job} failed; is one of its nodes the cause?")
    if connected:
        draft.wish(CheckNow(key=key, why=why, nodes=connected, budget_s=draft.want.resume.check_budget_s))
    asked = draft.asked_at(key)
    unheard = {n for n in connected if asked is not None and draft.seen.agents[n].checked_at < asked}
    until = failed_at + draft.want.resume.detect_s
    if draft.now >= until or not (unheard or may_still_turn_up(job, draft)):
        return False
    draft.wake(until)
    return True


def _stop(ask: Ask, why: Why, draft: Draft, *, final: bool) -> None:
    _remember(ask, Decision.STOP, why, frozenset(), draft, final=final)
    _tell(ask, Answer.STOP, why, draft)


def _tell(ask: Ask, answer: Answer, why: Why, draft: Draft, exclude: frozenset[NodeName] = frozenset()) -> None:
    key = Key(f"answer:{ask.id}")
    action = AnswerAsk(key=key, why=why, ask=ask.id, job=ask.job, node=ask.node, answer=answer, exclude=exclude)
    draft.wish(action, ANSWER_AGAIN_S)


def _remember(
    ask: Ask, decision: Decision, why: Why, bad: frozenset[NodeName], draft: Draft, *, final: bool = False
) -> None:
    mem = draft.jobs.get(ask.job)
    once = f"decided:{ask.id}"
    draft.tell("job.decided", f"job {ask.job}: {decision.value}: {why}", once=once, node=ask.node, job=ask.job)
    if mem is None or any(a.decided_for == ask.id for a in mem.attempts):
        return
    restart = mem.restarts
    attempt = Attempt(
        decided_for=ask.id, decision=decision, why=why, at=draft.now, culprits=bad, restart=restart, final=final
    )
    record(mem.id, attempt, draft)


def record(job: JobId, attempt: Attempt, draft: Draft) -> None:
    """Keep a decision about a job; all but STOP count against its budget."""
    mem = draft.jobs[job]
    counts = 0 if attempt.decision is Decision.STOP else 1
    attempts = (*mem.attempts, attempt)[-MOST_ATTEMPTS:]
    draft.jobs[job] = replace(mem, attempts=attempts, resumes=mem.resumes + counts)


def _texts(found: tuple[Evidence, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.text for item in found))[:10]
