"""Remember the jobs that opted in, each by its own word or by the site's default."""

from collections.abc import Iterable
from dataclasses import replace

from steward.model.ask import OptedIn
from steward.model.elastic import replica_of
from steward.model.ids import JobId
from steward.model.job import Job
from steward.model.resume import JobMemory
from steward.model.resume_mode import ResumeMode, SiteDefault
from steward.policy.draft import Draft
from steward.policy.job.whereabouts import may_ask, words_that_count

SHIM_SPEAKS_S = 15.0
"""After a job's start its shim has told of the job's wish, or there is none."""


def remember_jobs(draft: Draft) -> None:
    """Every job that asked to be resumed, by the word of its node's slurmstepd or of the kernel, and those that the
    site opts in; nobody else's."""
    if not draft.want.resume.enabled:
        return
    new = (word for word in draft.seen.opted_in if not _is_known(word, draft))
    for word in sorted(words_that_count(new, draft), key=lambda w: (w.job, w.at)):
        if word.mode.on:
            _remember(word.job, word.uid, word.mode, word.restart, draft)
        else:
            _respect_refusal(word, draft)
    for ask in sorted(draft.seen.asks, key=lambda a: a.id):
        job = draft.seen.jobs.get(ask.job)
        if ask.mode.on and job is not None and may_ask(ask, job, draft):
            _remember(ask.job, ask.uid, ask.mode, ask.restart, draft)
    if draft.want.resume.default:
        _remember_by_default(draft)


def _is_known(word: OptedIn, draft: Draft) -> bool:
    """The usual case, seen quickly: a node of its run says again what is remembered of the job."""
    mem = draft.jobs.get(word.job)
    if mem is None or mem.uid != word.uid or mem.by_default or mem.ended is not None or not word.mode.on:
        return False
    return not word.told_by or not mem.nodes.isdisjoint(word.told_by)


def _respect_refusal(word: OptedIn, draft: Draft) -> None:
    """A job's own `--auto-resume=0` is stronger than the site's default."""
    job, mem = draft.seen.jobs.get(word.job), draft.jobs.get(word.job)
    if job is None or word.uid != job.user_id or not draft.want.resume.default:
        return
    draft.first_seen(_refusal_key(job))
    if mem is not None and mem.by_default:
        del draft.jobs[job.id]


def _refusal_key(job: Job) -> str:
    return f"no:{job.id}:{job.submitted}"


def _remember_by_default(draft: Draft) -> None:
    """Only jobs that ran for a while: by then their shim has told whether they have a wish of their own."""
    defaults = draft.want.resume.defaults
    for job in draft.overview.active:
        is_known = job.id in draft.jobs or job.is_part or _refusal_key(job) in draft.noted
        if job.started is None or is_known:
            continue
        mode = default_for(job, defaults)
        if mode is None or not mode.on:
            continue
        if draft.now >= job.started + SHIM_SPEAKS_S:
            _remember(job.id, job.user_id, mode, job.restarts, draft, by_default=True)
        draft.wake(job.started + SHIM_SPEAKS_S)


def _remember(id: JobId, uid: int, mode: ResumeMode, restart: int, draft: Draft, *, by_default: bool = False) -> None:
    """`restart` is the run that told of it; Slurm may be further already."""
    id = _leader(id, draft)
    job, mem = draft.seen.jobs.get(id), draft.jobs.get(id)
    if job is None or uid != job.user_id or not (job.is_active or job.is_pending):
        return
    if replica_of(job.comment) is not None:
        return  # its run goes on without it
    if mem is not None and mem.uid == uid and not is_another(job, mem):
        if mem.by_default and not by_default:
            draft.jobs[id] = replace(mem, mode=mode, by_default=False)
        return
    restarts = min(restart, job.restarts)
    draft.jobs[id] = JobMemory(
        id=id,
        uid=uid,
        mode=mode,
        opted_at=draft.now,
        restarts=restarts,
        excluded_by_user=job.excluded,
        no_requeue=not job.requeue and draft.seen.job_requeue is True,
        by_default=by_default,
    )
    how = f"the site's default for it is {mode.text}" if by_default else f"--auto-resume={mode.text}"
    what = f"job {id} is resumed" if job.is_batch else f"steps of job {id} run again inside its allocation"
    draft.tell("job.opted_in", f"{what} if a node fails ({how})", job=id)


def _leader(id: JobId, draft: Draft) -> JobId:
    """A part of a heterogeneous job speaks for the whole."""
    job = draft.seen.jobs.get(id)
    return job.het_job_id if job is not None and job.het_job_id is not None else id


def is_another(job: Job, mem: JobMemory) -> bool:
    """The number was given to a new job (Slurm starts over at MaxJobId). One that was put back into the queue has a new
    time of submission, too, but was started more often."""
    is_newer = mem.ended is not None and job.submitted is not None and job.submitted > mem.ended
    return is_newer and job.restarts <= mem.restarts


def default_for(job: Job, defaults: Iterable[SiteDefault]) -> ResumeMode | None:
    """The mode that the first of the site's defaults that fits gives to a batch job; None where none fits."""
    if not job.is_batch:
        return None
    return next((each.mode for each in defaults if _fits(each, job)), None)


def _fits(default: SiteDefault, job: Job) -> bool:
    asked = (
        (default.partition, job.partition.split(",")),
        (default.account, (job.account,)),
        (default.qos, (job.qos,)),
    )
    return all(not wanted or wanted in has for wanted, has in asked)
