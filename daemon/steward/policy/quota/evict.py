"""Evictions: a job is signalled, given its grace time and requeued, by Steward or by Slurm's preemption.

An eviction is remembered from the moment in which its job is chosen, so that one demand evicts only one job, and the
job's owner can read why.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from steward.model.accounting import Accounting, borrowed_qos, team_of_qos
from steward.model.action import CancelJob, RequeueJob, SignalJob
from steward.model.events import Level
from steward.model.ids import JobId, Key
from steward.model.job import Job, JobState
from steward.model.port_error import is_refusal
from steward.model.quota import GPU, Eviction, QuotaJob, Reclaimed, kind_of
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.dying import dying, dying_nodes
from steward.policy.quota.decide import UnitStanding, Yielding
from steward.policy.quota.places import Wish
from steward.policy.quota.requests import holds_nodes
from steward.policy.quota.turn import Turn, is_refused, requeue_key, run_of
from steward.policy.quota.words import amounts_text

RETRY_S, SOON_S = 5.0, 1.0
PARTS_S = 300.0
"""How long the parts of a heterogeneous job may take to end, one after the other."""
_DAY_S = 86400.0
_DEFAULT_SIGNAL = "TERM"
_OWN_ENDS = {
    JobState.COMPLETED: "it ended well by itself",
    JobState.CANCELLED: "it was cancelled meanwhile",
    JobState.TIMEOUT: "its time limit ended it",
    JobState.DEADLINE: "its deadline ended it",
    JobState.OUT_OF_MEMORY: "it ran out of memory",
}
"""The ends of a job in its grace time after which it is not requeued."""
_RULES = {
    Reclaimed.RECLAIM: "quota.reclaim",
    Reclaimed.IN_TEAM: "quota.in_team",
    Reclaimed.PRIORITY: "quota.priority",
    Reclaimed.REBALANCE: "quota.rebalance",
}


def follow_evictions(draft: Draft) -> None:
    """Follow the evictions under way: note those that are over, call off needless ones, signal the others' jobs."""
    _forget_reused_numbers(draft)
    _adopt_slurms_victims(draft)
    for id, memory in list(draft.quota_jobs.items()):
        job = draft.seen.jobs.get(id)
        if memory.yielding is not None:
            _follow(id, memory, memory.yielding, job, draft)
        elif job is None and _is_old(memory, draft.now):
            del draft.quota_jobs[id]


def _forget_reused_numbers(draft: Draft) -> None:
    """Forget the evictions of jobs whose numbers Slurm gave to others."""
    # Slurm gives a number again after it lost its newest state, and starts over at MaxJobId
    for id in list(draft.quota_jobs):
        job = draft.seen.jobs.get(id)
        if job is not None and _is_another(job, draft.quota_jobs[id]):
            del draft.quota_jobs[id]


def _is_another(job: Job, memory: QuotaJob) -> bool:
    """Return whether the job came after the last eviction, so that another job with its number was evicted."""
    if not memory.evictions or job.submitted is None:
        return False
    # a requeued job has a new time of submission, too, but more restarts
    last = memory.evictions[-1]
    return job.submitted > last.at and job.restarts <= last.restart


def _adopt_slurms_victims(draft: Draft) -> None:
    """Replace our choice of victims by Slurm's."""
    # an eviction left to Slurm's preemption may hit another job than we chose: then drop ours, and record that job's
    expected = list(_left_to_slurm(draft))
    for job in _chosen_by_slurm(draft) if expected else ():
        ours = next((each for each in expected if _may_make_room(job, each[1], draft)), None)
        if ours is None:
            continue  # Slurm made room for another job
        expected.remove(ours)
        id, eviction = ours
        _forget(id, draft.quota_jobs[id], draft)
        team = team_of_qos(job.qos)
        text = (
            f"is evicted for job {draft.shown_id(JobId(eviction.to_job))} of team {eviction.to_team}, whose quota "
            f"covers it, with what {team} had borrowed; Slurm chose it, and {_fate(job, draft)}"
        )
        draft.quota_jobs.add_eviction(job.id, team, replace(eviction, restart=job.restarts, text=text))


def _may_make_room(job: Job, eviction: Eviction, draft: Draft) -> bool:
    """Return whether the waiting job of an eviction may run on a node of this job."""
    to = draft.seen.jobs.get(JobId(eviction.to_job))
    return to is not None and not draft.overview.nodes_of(to.partition).isdisjoint(job.nodes)


def _left_to_slurm(draft: Draft) -> Iterator[tuple[JobId, Eviction]]:
    """Yield the evictions that are left to Slurm's preemption and have not begun."""
    for id, memory in draft.quota_jobs.items():
        job, eviction = draft.seen.jobs.get(id), memory.yielding
        if job is not None and job.preempted is None and eviction is not None and eviction.due is None:
            yield id, eviction


def _chosen_by_slurm(draft: Draft) -> list[Job]:
    """Return the borrowing jobs that Slurm preempts and that we have not recorded."""
    found = []
    for job in draft.seen.jobs.values():
        if job.preempted is None or not job.is_active or job.is_part or job.qos != borrowed_qos(team_of_qos(job.qos)):
            continue
        memory = draft.quota_jobs.get(job.id)
        if memory is None or all(each.restart != job.restarts for each in memory.evictions):
            found.append(job)
    return found


def _follow(id: JobId, memory: QuotaJob, eviction: Eviction, job: Job | None, draft: Draft) -> None:
    """Follow one eviction."""
    if job is not None and job.is_completing and (job.is_pending or job.restarts > eviction.restart):
        return  # the eviction is under way until the job's nodes are free (22.05 hides the base state until then)
    if job is not None and job.is_completing and _ended_on_signal(job, eviction, draft):
        _requeue_while_cleaning(job, eviction, draft)
        return
    if eviction.due is None and job is not None and job.preempted is not None:
        _announce(job, eviction, draft)
    if job is None or job.restarts > eviction.restart or job.is_over or job.is_pending:
        if draft.now < eviction.at + PARTS_S and _parts_hold(id, draft):
            draft.wake(eviction.at + PARTS_S)
            return
        _conclude(id, memory, eviction, job, draft)
    elif is_refused(job, draft):
        _forget(id, memory, draft)
        text = f"job {job.shown_id} keeps what it has: Slurm does not put it back into the queue"
        draft.tell("quota.refused", text, once=f"quota-refused:{run_of(job)}", level=Level.WARNING, job=id)
    elif eviction.due is None and job.preempted is None and not _is_waited_for(eviction, draft):
        _call_off(job, memory, eviction, draft)
    elif eviction.due is None:
        draft.wake(eviction.at + _patience(draft))
    elif draft.now < eviction.due:
        _signal_or_end(job, eviction, draft)


def finish_evictions(turn: Turn, draft: Draft) -> None:
    """End the jobs whose grace time, or Slurm's time to preempt them, is over, if their nodes are still needed."""
    for id, memory in list(draft.quota_jobs.items()):
        job, eviction = draft.seen.jobs.get(id), memory.yielding
        if job is None or eviction is None or job.is_pending or job.is_over or job.restarts > eviction.restart:
            continue
        if eviction.due is None:
            if draft.now >= eviction.at + _patience(draft):
                _evict_in_place_of_slurm(id, memory, eviction, job, turn, draft)
        elif draft.now >= eviction.due:
            _end_after_grace(id, memory, eviction, job, turn, draft)


def _evict_in_place_of_slurm(
    id: JobId, memory: QuotaJob, eviction: Eviction, job: Job, turn: Turn, draft: Draft
) -> None:
    """Evict the job ourselves because Slurm did not, or call the eviction off if it is no longer needed."""
    if not _is_wanted(id, eviction, turn, draft):
        if job.preempted is None and not _is_not_looked_at(eviction, draft):
            _call_off(job, memory, eviction, draft)
        return
    since = draft.now if job.preempted is None else job.preempted  # a preempted job had its grace time
    late = replace(eviction, due=max(draft.now, since + draft.want.quota.grace_s))
    owners = draft.shown_id(JobId(eviction.to_job))
    text = f"job {job.shown_id}: Slurm made no room for job {owners} in {_patience(draft):.0f} s: we do"
    draft.tell("quota.late", text, job=id)
    _replace_last(id, memory, late, draft)
    _announce(job, late, draft)
    _signal_or_end(job, late, draft)


def _end_after_grace(id: JobId, memory: QuotaJob, eviction: Eviction, job: Job, turn: Turn, draft: Draft) -> None:
    """End the job whose grace time is over, or call the eviction off if it is no longer needed."""
    assert eviction.due is not None
    if not _is_wanted(id, eviction, turn, draft):
        off = eviction.due + draft.want.quota.grace_s
        if draft.now < off:
            draft.wake(off)  # a job that saves slowly may still end on its signal: then it is requeued
        elif not _is_not_looked_at(eviction, draft):
            _call_off(job, memory, eviction, draft)
    elif _was_warned(job, eviction, draft):
        _end(job, eviction, draft)
    else:
        late = replace(eviction, due=draft.now + draft.want.quota.grace_s)
        _replace_last(id, memory, late, draft)
        _signal_or_end(job, late, draft)


def _is_wanted(id: JobId, eviction: Eviction, turn: Turn, draft: Draft) -> bool:
    """Return whether the job for which room is made still waits and may run in this turn.

    A reclaim is also wanted if another job within its quota may run and counts on the room.
    """
    if not _is_waited_for(eviction, draft):
        return False
    if eviction.cause is not Reclaimed.RECLAIM:
        return JobId(eviction.to_job) in turn.rulings
    # the waiting job itself may be held by now, be of another team, or not be covered any more (the rest of an array).
    # If the quota of the evicted job is gone, the turn does not know the job, and takes such demands as hopeless.
    known = next((unit for units in turn.running.values() for unit in units if unit.id == id), None)
    team = known.team if known is not None else draft.quota_jobs[id].team
    return any(
        ruling.standing is UnitStanding.OWN
        and ruling.may_run
        and ruling.unit.team != team
        and (known is None or (not ruling.hopeless and bool(known.options[0].keys() & ruling.amounts)))
        for ruling in turn.rulings.values()
    )


def _is_not_looked_at(eviction: Eviction, draft: Draft) -> bool:
    """Return whether Slurm has not looked at the waiting job since its start time came."""
    # a slurmctld that was killed comes back with older reasons, from its last saved state
    to = draft.seen.jobs.get(JobId(eviction.to_job))
    return to is not None and to.is_pending and to.reason == "BeginTime" and (to.eligible or 0.0) <= draft.now


def _was_warned(job: Job, eviction: Eviction, draft: Draft) -> bool:
    """Return whether the job had its signal, had no grace time, or is ending; False if no head ran to signal it."""
    had_none = eviction.due is None or eviction.due <= eviction.at
    is_told = job.preempted is not None or draft.asked_at(_signal_key(job.id, eviction)) is not None
    return had_none or is_told or not job.is_active


def _parts_hold(id: JobId, draft: Draft) -> bool:
    """Return whether a part of the heterogeneous job still has nodes: Slurm ends its parts one by one."""
    job = draft.seen.jobs.get(id)
    if job is None or not job.het_job_id:
        return False
    return any(each.het_job_id == id and holds_nodes(each) for each in draft.seen.jobs.values())


def _requeue_while_cleaning(job: Job, eviction: Eviction, draft: Draft) -> None:
    """Requeue a job that ended on our signal before Slurm has cleaned up after it."""
    # Slurm ignores a scancel of a job that has ended, and keeps no trace of it: from its requeue on it counts again
    if job.requeue and job.is_batch and job.het_job_id is None and not dying(job.nodes, None, draft):
        _requeue(job, eviction, draft, requeue_key(job), told_at=_signalled_at(job, eviction, draft))
    draft.wake(draft.now + SOON_S)


def _conclude(id: JobId, memory: QuotaJob, eviction: Eviction, job: Job | None, draft: Draft) -> None:
    """Note that the job was evicted; first requeue a job that ended on our signal, as Slurm's preemption does."""
    if job is not None and _ended_on_signal(job, eviction, draft) and job.requeue and job.is_batch:
        key = Key(f"{requeue_key(job)}:ended")
        if not is_refusal(draft.seen.failures.get(key, "")):
            _requeue(job, eviction, draft, key, told_at=_signalled_at(job, eviction, draft))
            return
    if _ended_otherwise(job, eviction):
        _forget(id, memory, draft)
        return
    text = eviction.text
    if job is not None and job.restarts == eviction.restart and (end := _end_in_words(job, draft)):
        text = f"{text.rpartition('; ')[0]}; {end}, and is not run again"
    _replace_last(id, memory, replace(eviction, over=draft.now, text=text), draft)
    told = f"job {draft.shown_id(id)} {text.replace('is evicted', 'was evicted', 1)}"
    draft.tell("quota.evicted", told, once=f"evicted:{id}:{eviction.restart}:{round(eviction.at)}", job=id)


def _end_in_words(job: Job, draft: Draft) -> str:
    """Return, in words, how the job ended by itself before its requeue; empty if it did not."""
    is_ours = job.state is JobState.CANCELLED and not _may_requeue(job, draft)
    return "" if is_ours else _OWN_ENDS.get(job.state, "")


def _ended_otherwise(job: Job | None, eviction: Eviction) -> bool:
    """Return whether the job ended before the eviction began, so that it was not evicted."""
    if job is None:
        return eviction.due is None
    if not job.is_over or job.restarts != eviction.restart:
        return False
    is_asked = eviction.due is not None or job.preempted is not None
    return not (is_asked or job.state is JobState.PREEMPTED)


def _ended_on_signal(job: Job, eviction: Eviction, draft: Draft) -> bool:
    """Return whether our signal ended the job."""
    if job.restarts != eviction.restart or eviction.due is None:
        return False
    # every failure counts as due to the signal; a success counts only if the signal came before it
    if job.state is not JobState.COMPLETED:
        return job.state is JobState.FAILED
    return job.made_room(_signalled_at(job, eviction, draft))


def _signalled_at(job: Job, eviction: Eviction, draft: Draft) -> float | None:
    """Return when the job got its signal; None if it did not, or that is unknown."""
    # Slurm refuses to signal a job that does not run
    key = _signal_key(job.id, eviction)
    return None if key in draft.seen.failures else draft.asked_at(key)


def _patience(draft: Draft) -> float:
    """Return how many seconds Slurm has to start the waiting job by its own preemption."""
    rules = draft.want.quota
    return rules.patience_s + (rules.grace_s if _slurm_preempts(draft) else 0.0)


def _slurm_preempts(draft: Draft) -> bool:
    """Return whether Slurm's own preemption works for our QOS."""
    picture = draft.seen.accounting
    return picture is not None and picture.can.preempts


def _is_waited_for(eviction: Eviction, draft: Draft) -> bool:
    """Return whether the job for which room is made still waits."""
    to = draft.seen.jobs.get(JobId(eviction.to_job))
    return to is not None and to.is_pending


def begin_evictions(yielding: Iterable[Yielding], picture: Accounting, draft: Draft) -> None:
    """Begin the evictions that were chosen in this turn."""
    for each in yielding:
        victim, job = each.unit, each.unit.jobs[0]
        is_slurms = picture.can.preempts and each.cause is Reclaimed.RECLAIM and victim.is_borrowed
        eviction = Eviction(
            at=draft.now,
            restart=job.restarts,
            cause=each.cause,
            to_team=each.to.team,
            to_job=each.to.id,
            text=_text(each, job, draft),
            due=None if is_slurms else draft.now + draft.want.quota.grace_s,
            signal=round(draft.now),
        )
        draft.quota_jobs.add_eviction(victim.id, victim.team, eviction)
        if is_slurms:
            draft.wake(draft.now + _patience(draft))  # the waiting job may start without the eviction
        else:
            _announce(job, eviction, draft)
            _signal_or_end(job, eviction, draft)


def _announce(job: Job, eviction: Eviction, draft: Draft) -> None:
    """Write the event of an eviction, once, when its grace time begins."""
    text, _, end = eviction.text.rpartition("; ")
    grace = f"in {draft.want.quota.grace_s:.0f} s " if draft.want.quota.grace_s else ""
    told = f"job {job.shown_id} {text.replace('is evicted', 'is to be evicted', 1)}; {grace}{end}"
    draft.tell("quota.evicting", told, once=_announced_key(job, eviction), job=job.id)


def _announced_key(job: Job, eviction: Eviction) -> str:
    """Return the key of the event that announces the eviction."""
    return f"evicting:{job.id}:{eviction.restart}:{eviction.to_job}:{eviction.signal}"


def _call_off(job: Job, memory: QuotaJob, eviction: Eviction, draft: Draft) -> None:
    """Call the eviction off, and say so if it was announced."""
    _forget(job.id, memory, draft)
    if _announced_key(job, eviction) in draft.noted:
        is_waited_for = _is_waited_for(eviction, draft)
        why = "could not start on what it would leave" if is_waited_for else "does not wait any more"
        text = f"job {job.shown_id} is not to be evicted any more: job {draft.shown_id(JobId(eviction.to_job))} {why}"
        draft.tell("quota.called_off", text, job=job.id)


def _signal_or_end(job: Job, eviction: Eviction, draft: Draft) -> None:
    """Send the job its checkpoint signal; end the job instead if its grace time is over."""
    if eviction.due is not None and eviction.due > draft.now:
        key = _signal_key(job.id, eviction)
        draft.wish(SignalJob(key=key, why=_why(eviction, draft), job=job.id, signal=_signal(job, draft)))
        draft.wake(min(eviction.due, draft.now + SOON_S))  # scancel reaches a job again when it is back in the queue
    else:
        _end(job, eviction, draft)


def _end(job: Job, eviction: Eviction, draft: Draft) -> None:
    """Requeue the job, or cancel it if it may not be requeued."""
    if _may_requeue(job, draft):
        if dying_nodes(job, None, draft):
            return
        _requeue(job, eviction, draft, requeue_key(job))
        return
    key = Key(f"quota:cancel:{job.id}:{eviction.restart}")
    draft.wish(CancelJob(key=key, why=_why(eviction, draft), job=job.id, restart=eviction.restart), RETRY_S)


def _requeue(job: Job, eviction: Eviction, draft: Draft, key: Key, *, told_at: float | None = None) -> None:
    """Ask for the requeue of the evicted job."""
    why = _why(eviction, draft)
    action = RequeueJob(key=key, why=why, job=job.id, restart=eviction.restart, exclude=job.excluded, told_at=told_at)
    draft.wish(action, RETRY_S)


def _signal_key(id: JobId, eviction: Eviction) -> Key:
    """Return the key of the signal: one signal for each eviction, because an earlier one may have been called off."""
    return Key(f"quota:signal:{id}:{eviction.restart}:{eviction.signal or round(eviction.at)}")


def _signal(job: Job, draft: Draft) -> str:
    """Return the site's checkpoint signal for a job that opted in; else the signal of Slurm's preemption."""
    return (draft.want.resume.checkpoint_signal if job.id in draft.jobs else "") or _DEFAULT_SIGNAL


def _replace_last(id: JobId, memory: QuotaJob, eviction: Eviction, draft: Draft) -> None:
    """Replace the job's last eviction."""
    draft.quota_jobs[id] = replace(memory, evictions=(*memory.evictions[:-1], eviction))


def _forget(id: JobId, memory: QuotaJob, draft: Draft) -> None:
    """Remove the job's last eviction, which did not happen."""
    draft.quota_jobs[id] = replace(memory, evictions=memory.evictions[:-1], count=memory.count - 1)


def _is_old(memory: QuotaJob, now: float) -> bool:
    """Return whether the memory of the job's evictions can be dropped."""
    return not memory.evictions or now >= (memory.evictions[-1].over or 0.0) + _DAY_S


def _why(eviction: Eviction, draft: Draft) -> Why:
    """Return the reason for the actions of an eviction."""
    evidence = f"job {draft.shown_id(JobId(eviction.to_job))} of team {eviction.to_team} waits for what it has"
    return Why(rule=_RULES[eviction.cause], text=f"it {eviction.text}", evidence=(evidence,))


def _text(each: Yielding, job: Job, draft: Draft) -> str:
    """Return the text for the job's owner, to follow `job 7 `: for which job, why, by which shares, what is next."""
    team, to = each.unit.team, each.to
    because = _because(each.cause, team, _lacked(each))
    return f"is evicted for job {draft.shown_id(to.id)} of team {to.team}{because}{_shares(each)}; {_fate(job, draft)}"


def _lacked(each: Yielding) -> str:
    """Return, in words, what the waiting job lacked: amounts, or nodes with amounts free."""
    if each.place is None:
        return amounts_text(each.short)
    if each.place.parts:
        return f"nodes of their own for its parts: {' and '.join(map(_nodes_text, each.place.parts))}"
    return _nodes_text(each.place)


def _nodes_text(place: Wish) -> str:
    """Return the nodes that a job needs, in words."""
    if place.whole:
        return "a node of its own" if place.count == 1 else f"{place.count} nodes of its own"
    need = {name: amount for name, amount in (place.total or place.each).items() if kind_of(name).startswith(GPU)}
    amounts = amounts_text(need or place.total or place.each)
    if place.total:
        return f"{amounts} on nodes that it may use"
    nodes = "a node" if place.count == 1 else f"{place.count} nodes"
    where = f" ({', '.join(sorted(place.required))})" if place.required else ""
    return f"{nodes}{where} with {amounts} free" + (" on each" if place.count > 1 else "")


def _may_requeue(job: Job, draft: Draft) -> bool:
    """Return whether the job may be requeued: it is a batch job, and its user does not forbid requeues."""
    memory = draft.jobs.get(job.id)
    return job.is_batch and (job.requeue or (memory is not None and not memory.stays_in_place))


def _fate(job: Job, draft: Draft) -> str:
    """Return what becomes of the job, in words."""
    if _may_requeue(job, draft):
        return "it is put back into the queue"
    why = "it may not be requeued" if job.is_batch else "Slurm requeues batch jobs only"
    return f"it is cancelled, for {why}"


def _because(cause: Reclaimed, team: str, lacked: str) -> str:
    """Return the cause of the eviction, in words."""
    match cause:
        case Reclaimed.RECLAIM:
            return f", whose quota covers it and lacks {lacked}, of which {team} had borrowed"
        case Reclaimed.IN_TEAM:
            return f", its own, which is of a higher priority class and lacks {lacked}"
        case Reclaimed.PRIORITY:
            return f", which is of a higher priority class and lacks {lacked}, of which {team} had borrowed"
        case Reclaimed.REBALANCE:
            return f", which lacks {lacked} and will have borrowed less than {team}"


def _shares(each: Yielding) -> str:
    """Return the shares of both teams, in words."""
    if each.cause is Reclaimed.IN_TEAM:
        return ""
    return f" (share of {each.unit.team} {each.rank[0]:.3g}, of {each.to.team} {each.rank_to[0]:.3g})"
