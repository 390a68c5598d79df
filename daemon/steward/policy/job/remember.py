"""Remember the jobs that opted in, by their own option or the site's default.

Only the job's nodes and the host from which its user submitted it may report on a job: a node in an attacker's hands
can report anything, so its reports count only for jobs that run on it.
"""

from collections.abc import Iterable
from dataclasses import replace

from steward.model.ask import Ask, AskKind, OptedIn
from steward.model.elastic import replica_of
from steward.model.events import Level
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.resume import JobMemory, Suspension
from steward.model.resume_mode import ResumeMode, SiteDefault
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.facts.blame import EVIDENCE_AFTER_S
from steward.policy.facts.opted_in import counts, nodes_of_run
from steward.policy.guards.run_end import bystander_record
from steward.policy.job.launch import is_broken_launch


def may_ask(ask: Ask, job: Job, draft: Draft) -> bool:
    """Return whether this node may ask about this job."""
    # an answer cannot harm a run that is over
    if not job.is_active or job.restarts > ask.restart:
        return True
    # the batch host reports a script's failure; a node of the job, its submit host, or a host without a node in Slurm
    # (a login node) reports a step's
    if ask.kind is AskKind.BATCH:
        return job.batch_host in (None, ask.node)
    return (
        ask.node in nodes_of_run(job, draft)
        or ask.node not in draft.seen.nodes
        or _is_submit_host(ask.node, job, draft)
    )


def _is_submit_host(node: NodeName, job: Job, draft: Draft) -> bool:
    """Return whether the node may be the host from which the job was submitted."""
    if not job.submit_host:
        # Slurm 22.05 does not tell the host: an allocation without a script may come from any
        return not job.is_batch
    known = draft.seen.nodes.get(node)
    names = {node, known.extra.get("hostname", "") if known is not None else ""}
    return job.submit_host.partition(".")[0] in {name.partition(".")[0] for name in names}


_SETTLED = frozenset({JobState.COMPLETED, JobState.CANCELLED, JobState.UNKNOWN})
"""States in which no run can have been missed."""
SHIM_SPEAKS_S = 15.0
"""This long after a job's start, its shim has reported the job's option, or the job has no shim."""


def remember_jobs(draft: Draft) -> None:
    """Remember every job that opted in, by a report of its node or by the site's default."""
    if not draft.want.resume.enabled:
        return
    new = [word for word in draft.seen.opted_in if not _is_known(word, draft)]
    for word in sorted(new, key=lambda w: (w.job, w.at)):
        if not counts(word, draft):
            _tell_foreign(word, draft)
        elif word.mode.on:
            _remember(word.job, word.uid, word.mode, word.restart, draft, ran_on=word.ran_on)
        else:
            _apply_refusal(word, draft)
    for ask in sorted(draft.seen.asks, key=lambda a: a.id):
        job = draft.seen.jobs.get(ask.job)
        if ask.mode.on and job is not None and may_ask(ask, job, draft):
            _remember(ask.job, ask.uid, ask.mode, ask.restart, draft)
    if draft.want.resume.default:
        _remember_by_default(draft)


def _is_known(word: OptedIn, draft: Draft) -> bool:
    """Return whether the report only repeats what is remembered of the job."""
    mem = draft.jobs.get(word.job)
    if mem is None or mem.uid != word.uid or mem.by_default or mem.ended is not None or not word.mode.on:
        return False
    return not word.told_by or not mem.nodes.isdisjoint(word.told_by)


def _apply_refusal(word: OptedIn, draft: Draft) -> None:
    """Apply a job's own `--auto-resume=0`, which overrides the site's default."""
    job, mem = draft.seen.jobs.get(word.job), draft.jobs.get(word.job)
    if job is None or word.uid != job.user_id or not draft.want.resume.default:
        return
    if not _has_opted_out(job, draft):
        draft.bystanders[job.id] = replace(bystander_record(job, draft), refused=True)
    if mem is not None and mem.by_default:
        del draft.jobs[job.id]


def _has_opted_out(job: Job, draft: Draft) -> bool:
    """Return whether the job said `--auto-resume=0`."""
    known = draft.bystanders.get(job.id)
    return known is not None and known.refused and known.submitted == job.submitted


def _remember_by_default(draft: Draft) -> None:
    """Remember the running jobs that the site opts in."""
    defaults = draft.want.resume.defaults
    for job in draft.overview.active:
        is_known = job.id in draft.jobs or job.is_part or _has_opted_out(job, draft)
        if job.started is None or is_known:
            continue
        mode = default_for(job, defaults)
        if mode is None or not mode.on:
            continue
        # by then the shim has reported whether the job has an option of its own
        if draft.now >= job.started + SHIM_SPEAKS_S:
            _remember(job.id, job.user_id, mode, job.restarts, draft, by_default=True)
        draft.wake(job.started + SHIM_SPEAKS_S)


def _remember(
    id: JobId,
    uid: int,
    mode: ResumeMode,
    restart: int,
    draft: Draft,
    *,
    by_default: bool = False,
    ran_on: frozenset[NodeName] = frozenset(),
) -> None:
    """Remember a job. `restart` is the run that reported it, `ran_on` its nodes if they are known."""
    id = _id_of_whole_job(id, draft)
    job, mem = draft.seen.jobs.get(id), draft.jobs.get(id)
    if job is None or uid != job.user_id or not (job.is_active or job.is_pending or _just_failed(job, draft)):
        return
    if replica_of(job.comment) is not None:
        return  # its elastic run goes on without this replica
    if mem is not None and not is_another(job, mem):
        if mem.by_default and not by_default:
            draft.jobs[id] = replace(mem, mode=mode, by_default=False)
        return
    # Slurm may show a later run already
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
        nodes=frozenset() if job.is_active else ran_on,
    )
    how = f"the site's default for it is {mode.text}" if by_default else f"--auto-resume={mode.text}"
    named = f"job {job.shown_id}"
    what = f"{named} is resumed" if job.is_batch else f"steps of {named} run again inside its allocation"
    draft.tell("job.opted_in", f"{what} if a node fails ({how})", job=id)


def _just_failed(job: Job, draft: Draft) -> bool:
    """Return whether the job's run began and failed a moment ago, between two looks."""
    if job.ended is None or (job.state in _SETTLED and not is_broken_launch(job, draft)):
        return False
    return draft.now <= job.ended + EVIDENCE_AFTER_S


def _id_of_whole_job(id: JobId, draft: Draft) -> JobId:
    """Return the id under which the job is remembered: that of the whole for a part of a heterogeneous job."""
    job = draft.seen.jobs.get(id)
    return job.whole_id if job is not None else id


def is_another(job: Job, mem: JobMemory) -> bool:
    """Return whether the number belongs to another job than the remembered one.

    Slurm gives a number again after it lost its newest state, and starts over at MaxJobId.
    """
    if job.user_id != mem.uid:
        return True
    # a run was submitted before it started, and Slurm tells both times; a requeued job has a new time of submission,
    # too, but more restarts
    since = mem.started if mem.started is not None else mem.ended
    is_newer = since is not None and job.submitted is not None and job.submitted > since
    return is_newer and job.restarts <= mem.restarts


def default_for(job: Job, defaults: Iterable[SiteDefault]) -> ResumeMode | None:
    """Return the mode that the first matching site default gives to a batch job; None if none matches."""
    if not job.is_batch:
        return None
    return next((each.mode for each in defaults if _fits(each, job)), None)


def _fits(default: SiteDefault, job: Job) -> bool:
    """Return whether the default applies to the job's partition, account and QOS."""
    asked = (
        (default.partition, job.partition.split(",")),
        (default.account, (job.account,)),
        (default.qos, (job.qos,)),
    )
    return all(not wanted or wanted in has for wanted, has in asked)


def note_suspensions(draft: Draft) -> None:
    """Note since when each job is suspended, and when it was continued."""
    for id in jobs_needing_attention(draft):
        job, mem = draft.seen.jobs.get(id), draft.jobs[id]
        if job is not None and (now := _suspension(job, mem, draft)) != mem.suspension:
            draft.jobs[id] = replace(mem, suspension=now)


def _suspension(job: Job, mem: JobMemory, draft: Draft) -> Suspension | None:
    """Return the job's suspensions in this run, updated from Slurm's picture; None if there were none."""
    known = mem.suspension
    if not job.is_active:
        return known
    if known is not None and known.restart != job.restarts:
        known = None
    if job.state is JobState.SUSPENDED:
        known = known or Suspension(restart=job.restarts)
        return known if known.since is not None else replace(known, since=draft.now)
    if known is None or known.since is None:
        return known
    return replace(known, since=None, over=draft.now, total_s=known.until_s(draft.now))


def _tell_foreign(word: OptedIn, draft: Draft) -> None:
    """Warn once a day, for each user and node, of reports on jobs that do not run there."""
    job = draft.seen.jobs.get(word.job)
    if job is None or not job.is_active or word.restart != job.restarts:
        return
    # the user chooses which jobs to name: a warning for each of them could flood the log
    node, shown = min(word.told_by), job.shown_id
    if word.uid not in (0, job.user_id):
        text = f"uid {word.uid} on {node} reports another user's job as its own, such as {shown}: the report is ignored"
        draft.tell("ask.foreign", text, once=f"foreign:{node}:{word.uid}", level=Level.WARNING, node=node)
        return
    text = f"{node} reports that job {shown} opted in, but that job does not run there: the report is ignored"
    once = f"elsewhere:{word.job}:{word.restart}:{node}"
    draft.tell("job.elsewhere", text, once=once, level=Level.WARNING, node=node, job=word.job)
