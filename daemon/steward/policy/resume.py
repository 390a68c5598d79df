"""Remember the jobs that opted in, and bring back those that were requeued or failed while nobody was there to ask."""

import math
from dataclasses import replace

from steward.model.action import AllowRequeue, NudgeJob
from steward.model.events import Level
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job, JobState
from steward.model.resume import Attempt, Decision, JobMemory
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why
from steward.policy.ask import record, remember_excludes, requeue
from steward.policy.draft import Draft
from steward.policy.evidence import evidence, taken_out_key
from steward.policy.exclude import exclude_list

SLURMS_HOLDS = frozenset({"JobHoldMaxRequeue", "launch failed requeued held", "launch_failed_requeued_held"})
"""Reasons of holds that slurmctld sets by itself after failures."""
PEOPLES_HOLDS = frozenset({"JobHeldUser", "JobHeldAdmin"})
BY_MACHINE = frozenset({JobState.NODE_FAIL, JobState.BOOT_FAIL})
"""Ends that are evidence by themselves."""
GROWTH = 1.5
COMPLETING_LOOK_S = 0.3
COMPLETING_WATCH_S = 60.0


def remember_jobs(draft: Draft) -> None:
    """Every job that asked to be resumed, by the word of its node's slurmstepd or of the kernel; nobody else's."""
    if not draft.want.resume.enabled:
        return
    for word in sorted(draft.seen.opted_in, key=lambda w: (w.job, w.at)):
        _remember(word.job, word.uid, word.mode, word.restart, draft)
    for ask in sorted(draft.seen.asks, key=lambda a: a.id):
        _remember(ask.job, ask.uid, ask.mode, ask.restart, draft)


def _remember(id: JobId, uid: int, mode: ResumeMode, restart: int, draft: Draft) -> None:
    """`restart` is the run that told of it; Slurm may be further already."""
    job, mem = draft.seen.jobs.get(id), draft.jobs.get(id)
    if job is None or not mode.on or uid != job.user_id or not (job.is_active or job.is_pending):
        return
    if mem is not None and mem.uid == uid and not _is_another(job, mem):
        return
    restarts = min(restart, job.restarts)
    draft.jobs[id] = JobMemory(
        id=id, uid=uid, mode=mode, opted_at=draft.now, restarts=restarts, excluded_by_user=job.excluded
    )
    draft.tell("job.opted_in", f"job {id} is resumed if a node fails (--auto-resume={mode.text})", job=id)


def _is_another(job: Job, mem: JobMemory) -> bool:
    """The number was given to a new job (Slurm starts over at MaxJobId)."""
    return mem.ended is not None and job.submitted is not None and job.submitted > mem.ended


def follow_jobs(draft: Draft) -> None:
    """Bring the memory of each job up to the picture and do what its state asks for."""
    for id in sorted(draft.jobs):
        job = draft.seen.jobs.get(id)
        if job is not None and job.is_completing:
            _look_soon(job, draft)
        if job is None:
            _end(id, "Slurm does not know it any more", draft)
        elif job.is_active:
            _follow_running(job, draft)
        elif job.is_pending:
            _follow_pending(job, draft)
        elif job.state is not JobState.UNKNOWN and draft.jobs[id].ended is None:
            _follow_ended(job, draft)


def _look_soon(job: Job, draft: Draft) -> None:
    """Slurm tells nobody when a job has cleaned up, and one that was requeued waits for us then."""
    began = draft.first_seen(f"completing:{job.id}:{job.restarts}")
    if draft.now < began + COMPLETING_WATCH_S:
        draft.wake(draft.now + COMPLETING_LOOK_S)


def _follow_running(job: Job, draft: Draft) -> None:
    mem = draft.jobs[job.id]
    if mem.pending_from is not None:
        mem = _resumed(job, mem, draft)
    same_run = mem.started == job.started and mem.restarts == job.restarts
    nodes = mem.nodes | job.nodes if same_run else job.nodes
    excised = mem.excised | (nodes - job.nodes)
    followed = replace(
        mem, nodes=nodes, excised=excised, restarts=job.restarts, started=job.started, ended=None, end_text=""
    )
    if followed != draft.jobs[job.id]:
        draft.jobs[job.id] = followed
    for node in sorted(nodes - job.nodes):
        draft.first_seen(taken_out_key(followed, node))
    if not job.requeue and job.is_batch:
        why = Why(rule="resume.allow", text="it asked to be resumed, which needs Requeue=1")
        draft.wish(AllowRequeue(key=Key(f"allow:{job.id}:{job.restarts}"), why=why, job=job.id), 60.0)
    if job.is_batch and job.nodes and job.batch_host is not None and job.batch_host not in job.nodes:
        _requeue_without_script(job, job.batch_host, draft)


def _requeue_without_script(job: Job, host: NodeName, draft: Draft) -> None:
    """With `--no-kill` Slurm takes a dead batch host out of the job, which then runs for ever without its script."""
    mem = draft.jobs[job.id]
    if prior := next((a for a in mem.attempts if a.decided_for == f"script:{mem.restarts}"), None):
        requeue(job, prior.why, draft)
    elif mem.resumes >= draft.want.resume.max_resumes:
        text = f"job {job.id} runs without its script since {host} died, and was resumed {mem.resumes} times: cancel it"
        draft.tell("job.budget", text, once=f"script:{job.id}:{job.restarts}", level=Level.WARNING, job=job.id)
    else:
        why = Why(rule="resume.no_script", text="its batch host died, and Slurm goes on without it", evidence=(host,))
        _decide_requeue(job, f"script:{mem.restarts}", why, frozenset({host}), draft)


def _decide_requeue(job: Job, decided_for: str, why: Why, bad: frozenset[NodeName], draft: Draft) -> None:
    attempt = Attempt(
        decided_for=decided_for,
        decision=Decision.REQUEUE,
        why=why,
        at=draft.now,
        culprits=bad,
        restart=draft.jobs[job.id].restarts,
    )
    record(job.id, attempt, draft)
    draft.tell("job.decided", f"job {job.id}: requeue: {why}", job=job.id)
    requeue(job, why, draft)


def _resumed(job: Job, mem: JobMemory, draft: Draft) -> JobMemory:
    took = draft.now - mem.pending_from if mem.pending_from is not None else 0.0
    draft.tell(
        "job.resumed", f"job {job.id} runs again after {took:.1f} s on {', '.join(sorted(job.nodes))}", job=job.id
    )
    attempts = mem.attempts
    if attempts and attempts[-1].decision is Decision.REQUEUE and attempts[-1].running is None:
        attempts = (*attempts[:-1], replace(attempts[-1], running=draft.now))
    return replace(mem, pending_from=None, nudges=0, last_nudge=0.0, attempts=attempts)


def _follow_pending(job: Job, draft: Draft) -> None:
    mem = draft.jobs[job.id]
    if mem.pending_from is None and (mem.nodes or job.restarts > mem.restarts):
        _note_requeue(job, mem, draft)
    if draft.jobs[job.id].pending_from is not None:
        _nudge(job, draft)


def _note_requeue(job: Job, mem: JobMemory, draft: Draft) -> None:
    """The job went back to the queue: by our wish, by Slurm after a node's failure, or by a person."""
    last = mem.attempts[-1] if mem.attempts else None
    if last is not None and last.decision is Decision.REQUEUE and last.requeued is None:
        attempts = (*mem.attempts[:-1], replace(last, requeued=draft.now))
        draft.jobs[job.id] = replace(mem, attempts=attempts, pending_from=draft.now)
    else:
        _blame_for_requeue(job, mem, draft)
        draft.jobs[job.id] = replace(draft.jobs[job.id], pending_from=draft.now)
    draft.tell("job.requeued", f"job {job.id} is back in the queue (restart {job.restarts})", job=job.id)


def _blame_for_requeue(job: Job, mem: JobMemory, draft: Draft) -> None:
    found = evidence(mem.nodes, mem, draft.now, draft)
    if not found:
        return
    why = Why(
        rule="resume.by_slurm",
        text="Slurm requeued it after a node's failure",
        evidence=tuple(dict.fromkeys(item.text for item in found))[:10],
    )
    bad = frozenset(item.node for item in found)
    attempt = Attempt(
        decided_for=f"restart:{mem.restarts + 1}",
        decision=Decision.REQUEUE,
        why=why,
        at=draft.now,
        culprits=bad,
        restart=mem.restarts,
        requeued=draft.now,
    )
    record(job.id, attempt, draft)


def _nudge(job: Job, draft: Draft) -> None:
    """Make the job eligible now and wake the scheduler, often at first; never past a person's hold."""
    mem = draft.jobs[job.id]
    if job.is_completing or _is_held_by_person(job, draft) or _is_over_budget(mem, draft):
        return
    if draft.now < (safe := _credential_safe_at(job, draft)):
        draft.wake(safe)
        return
    exclude = exclude_list(job, mem, draft)
    if not _is_due(job, mem, exclude, draft):
        return
    why = mem.attempts[-1].why if mem.attempts else Why(rule="resume.nudge", text="it was requeued")
    release = job.reason in SLURMS_HOLDS
    key = Key(f"nudge:{job.id}:{job.restarts}")
    action = NudgeJob(key=key, why=why, job=job.id, exclude=exclude, release=release)
    if draft.wish(action, 0.0):
        remember_excludes(job, exclude, draft)
        mem = draft.jobs[job.id]
        draft.jobs[job.id] = replace(mem, nudges=mem.nudges + 1, last_nudge=draft.now)
        _is_due(job, draft.jobs[job.id], exclude, draft)


def _credential_safe_at(job: Job, draft: Draft) -> float:
    """slurmd revokes a job's credentials up to the second in which it ended, and times have whole seconds.

    Started again within that second, the new credential counts as revoked too and slurmctld kills the job ("Job
    credential revoked").
    """
    return _next_second(draft.first_seen(f"clean:{job.id}:{job.restarts}"))


def _next_second(at: float) -> float:
    """Slurm counts in whole seconds: a second nudge within one changes nothing. A little more for its coarse clock."""
    return math.floor(at) + 1.02


def _is_held_by_person(job: Job, draft: Draft) -> bool:
    if job.reason not in PEOPLES_HOLDS and not job.flags & {"REQUEUE_HOLD", "SPECIAL_EXIT"}:
        return False
    text = f"job {job.id} is held ({job.reason}): it stays where it is until it is released"
    draft.tell("job.held", text, once=f"held:{job.id}:{job.restarts}:{job.reason}", job=job.id)
    return True


def _is_over_budget(mem: JobMemory, draft: Draft) -> bool:
    if mem.resumes <= draft.want.resume.max_resumes:
        return False
    text = f"job {mem.id} was resumed {mem.resumes} times (limit {draft.want.resume.max_resumes}): left to Slurm"
    draft.tell("job.budget", text, once=f"budget:{mem.id}:{mem.resumes}", level=Level.WARNING, job=mem.id)
    return True


def _is_due(job: Job, mem: JobMemory, exclude: frozenset[NodeName], draft: Draft) -> bool:
    """Whether to nudge now: quickly at first; later only where it can help, because it costs the job its age."""
    rules = draft.want.resume
    began = mem.pending_from if mem.pending_from is not None else draft.now
    if draft.now < began + rules.nudge_for_s:
        pause = min(rules.nudge_max_s, rules.nudge_first_s * GROWTH ** min(max(mem.nudges - 1, 0), 30))
        due = max(mem.last_nudge + pause, _next_second(mem.last_nudge))
    elif _may_help(job, mem, exclude, draft):
        due = mem.last_nudge + rules.nudge_slow_s
    else:
        return False
    draft.wake(due)
    return draft.now >= due


def _may_help(job: Job, mem: JobMemory, exclude: frozenset[NodeName], draft: Draft) -> bool:
    returned = any(c.returned is not None and c.returned > mem.last_nudge for c in draft.cases.values())
    stuck = job.reason in SLURMS_HOLDS or job.reason in ("BeginTime", "None", "")
    return returned or stuck or exclude != job.excluded


def _follow_ended(job: Job, draft: Draft) -> None:
    """A job that failed while nobody could be asked is requeued on positive evidence; everything else is over."""
    mem = draft.jobs[job.id]
    ended = job.ended if job.ended is not None else draft.now
    last = mem.attempts[-1] if mem.attempts else None
    told_to_stop = last is not None and last.final and last.restart == mem.restarts
    by_machine = job.state in BY_MACHINE
    open_end = (by_machine or job.state is JobState.FAILED) and job.is_batch and not told_to_stop
    if not open_end or draft.now > ended + draft.want.resume.evidence_after_s:
        _end(job.id, f"{job.state.value}", draft)
        return
    if not job.is_completing:
        _requeue_late(job, mem, ended, draft)


def _requeue_late(job: Job, mem: JobMemory, ended: float, draft: Draft) -> None:
    error = draft.seen.failures.get(f"requeue:{job.id}:{job.restarts}")
    prior = next((a for a in mem.attempts if a.decided_for == f"end:{mem.restarts}"), None)
    if error is not None and prior is not None:
        _end(job.id, f"{job.state.value}; it could not be requeued: {error}", draft)
        return
    if prior is not None:
        requeue(job, prior.why, draft)
        return
    found = evidence(mem.nodes, mem, ended, draft)
    if (not found and job.state not in BY_MACHINE) or mem.resumes >= draft.want.resume.max_resumes:
        draft.wake(ended + draft.want.resume.evidence_after_s)
        return
    texts = (f"Slurm: {job.state.value}", *dict.fromkeys(item.text for item in found))[:10]
    why = Why(rule="resume.late", text="it failed by a node's fault while nobody could be asked", evidence=texts)
    bad = frozenset(item.node for item in found)
    _decide_requeue(job, f"end:{mem.restarts}", why, bad, draft)


def _end(id: JobId, text: str, draft: Draft) -> None:
    mem = draft.jobs[id]
    if mem.ended is None:
        draft.jobs[id] = replace(mem, ended=draft.now, end_text=text, pending_from=None)
        draft.tell("job.ended", f"job {id}: {text}", job=id)
