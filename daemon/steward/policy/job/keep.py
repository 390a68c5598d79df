"""Keep the sound nodes of a lost run for its job while a replacement is on its way, within limits.

The limits are a time, and other waiting jobs. The nodes are kept by a reservation in which no job ever runs: Slurm ends
jobs whose reservation ends (docs/decisions/0022). The reservation keeps all jobs off the nodes, and is removed at the
moment in which the job can start, with the job first in the queue.
"""

from collections.abc import Set
from dataclasses import replace

from steward.model.action import FreeNodes, KeepNodes
from steward.model.fit import Question
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job
from steward.model.node_names import fold
from steward.model.reservation import keep_name
from steward.model.resume import Decision, JobMemory, KeptNodes, Lent
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.facts.loans import LENT_FOR_S, lent_nodes
from steward.policy.guards.run_end import credential_safe_at
from steward.policy.job.first import put_first
from steward.policy.job.fits import recent_answer, why_blocked
from steward.policy.job.lost_place import has_grown, losing_a_node
from steward.policy.job.nudge import BEGINS_LATER, begins_later, is_left_to_slurm, lost_its_place, not_before
from steward.policy.job.places import has_hope, has_rivals, places_of, rivals

GOES_ON_S = 10.0
"""A job that still runs this long after its nodes were kept was not requeued: it goes on without the lost node."""
LEASE_S = 300.0
"""The lease of a reservation: it ends by itself if the head does not renew it, so that a dead head blocks no job."""
RENEW_S = 120.0
BLOCKED_S = 5.0
"""For this long, Slurm's reason why the job waits may be left over from its lost run."""
FREE_AGAIN_S = 1.0
_SEEN_S = 5.0
_RIVALS = 8
"""Slurm is asked about at most this many of the jobs that wait for kept nodes, the oldest first."""


def free_kept(draft: Draft) -> None:
    """Free kept nodes that their job can use now or does not need any more, and those that belong to no job."""
    for id in jobs_needing_attention(draft):
        mem = draft.jobs[id]
        if mem.kept is not None and mem.kept.freed is None:
            _free_or_renew(mem, mem.kept, draft)
        elif mem.kept is not None and _needs_no_record(mem, draft):
            draft.jobs[id] = replace(mem, kept=None)
        _go_first(id, draft)
    _free_strays(draft)


def _needs_no_record(mem: JobMemory, draft: Draft) -> bool:
    """Return whether the job no longer needs the record of its kept nodes."""
    job = draft.seen.jobs.get(mem.id)
    return (
        mem.ended is not None
        or job is None
        or (job.is_active and mem.kept is not None and _is_in_later_run(job, mem.kept))
    )


def _is_retried(mem: JobMemory, kept: KeptNodes) -> bool:
    """Return whether the last decision since the nodes were kept was a retry in place."""
    last = mem.last_attempt
    return last is not None and last.decision is Decision.RETRY and last.at >= kept.since


def _is_in_later_run(job: Job, kept: KeptNodes) -> bool:
    """Return whether the job is in a later run."""
    return job.restarts > kept.restart


def _free_or_renew(mem: JobMemory, kept: KeptNodes, draft: Draft) -> None:
    """Free the job's nodes if there is a reason, else renew their lease."""
    text = _why_over(mem, kept, draft)
    if not text:
        draft.wake(kept.until)
        _reserve(mem.id, kept, Why(rule="keep.renew", text="the job still waits for nodes"), draft)
        return
    draft.jobs[mem.id] = replace(mem, kept=replace(kept, freed=draft.now, why=text), nudges=0)
    why = Why(rule="keep.free", text=text, evidence=(f"kept for {draft.now - kept.since:.0f} s",))
    _free(keep_name(mem.id), why, draft)
    said = f"job {draft.shown_id(mem.id)}: {len(kept.nodes)} nodes are no longer kept for it: {why}"
    draft.tell("job.keep_released", said, job=mem.id)


def _why_over(mem: JobMemory, kept: KeptNodes, draft: Draft) -> str:
    """Return why the nodes are no longer kept; empty while they are kept."""
    job = draft.seen.jobs.get(mem.id)
    if job is None or not (job.is_active or job.is_pending or job.is_completing):
        return "the job is over"
    if job.is_active:
        if _is_in_later_run(job, kept):
            return "the job runs again"
        draft.wake(kept.since + GOES_ON_S)
        goes_on = _is_retried(mem, kept) or draft.now >= kept.since + GOES_ON_S
        return "the job goes on" if goes_on else ""
    return _why_useless(job, mem, kept, draft) or _why_in_the_way(job, kept, draft)


def _why_useless(job: Job, mem: JobMemory, kept: KeptNodes, draft: Draft) -> str:
    """Return why the kept nodes do not help the job; empty if they do."""
    if job.is_held:
        return f"the job is held ({job.reason})"
    if begins_later(job, draft):
        return f"the job {BEGINS_LATER}"
    if is_left_to_slurm(mem):
        return "the job is left to Slurm"
    if not draft.may_touch_nodes:
        return "Steward is paused, or only reports"
    if draft.seen.failures.get(_keep_key(mem.id, kept.restart)) or _was_deleted(mem.id, kept, draft):
        return "their reservation is gone, or Slurm refused it"
    places = places_of(job, mem, draft)
    if places.can_start and _may_start(job, draft):
        return "it can start now, as Slurm says" if places.fit is not None else "enough nodes are there"
    if blocked := why_blocked(job, places.fit):
        draft.wake(kept.since + BLOCKED_S)
        return blocked if draft.now >= kept.since + BLOCKED_S else ""
    if places.lacks and not has_hope(places, draft):
        return "no repair under way gives it the nodes that it lacks"
    return ""


def _may_start(job: Job, draft: Draft) -> bool:
    """Return whether the job is nudged in this plan."""
    # other jobs would take nodes that are freed before the nudge
    if job.is_completing:
        return False
    safe = credential_safe_at(job, draft)
    draft.wake(safe)
    return draft.now >= safe


def _was_deleted(id: JobId, kept: KeptNodes, draft: Draft) -> bool:
    """Return whether a person deleted the reservation."""
    return draft.seen.reservations_at > kept.since + _SEEN_S and keep_name(id) not in draft.seen.reservations


def _why_in_the_way(job: Job, kept: KeptNodes, draft: Draft) -> str:
    """Return why the kept nodes are in the way of other jobs, or kept too long; empty if they are not."""
    if draft.now >= kept.until:
        return f"the job waited {kept.until - kept.since:.0f} s for them (resume.keep_s)"
    limit = draft.want.resume.keep_others_s
    if draft.now < kept.since + limit:
        draft.wake(kept.since + limit)
        return ""  # no job can have waited for these nodes that long
    wait = [
        (max(kept.since, other.eligible or other.submitted or 0.0) + limit, other)
        for other in rivals(job, kept.nodes, draft)
    ]
    for waits, _ in wait:
        draft.wake(waits)
    over = [other for waits, other in wait if draft.now >= waits]
    for other in over[:_RIVALS]:
        if _would_start(other, job, draft):
            return f"job {other.shown_id} has waited for such nodes for {limit:.0f} s (resume.keep_others_s)"
    return ""


def _would_start(other: Job, job: Job, draft: Draft) -> bool:
    """Return whether the other job could start on the kept nodes; True if Slurm does not answer."""
    since = other.eligible or other.submitted or draft.now
    fit = recent_answer(Question(job=other.id, reservation=keep_name(job.id)), since, draft)
    return fit is None or fit.starts


def _go_first(id: JobId, draft: Draft) -> None:
    """Put the job before other jobs that wait for the same nodes, if it can start now."""
    job, mem = draft.seen.jobs.get(id), draft.jobs[id]
    if job is None or not job.is_pending or mem.pending_from is None or job.is_completing or job.is_held:
        return
    if job.is_expediting or begins_later(job, draft):
        return  # the job is first already, or must not begin now
    kept = mem.kept is not None and mem.kept.freed is None
    if kept or not lost_its_place(mem) or has_grown(job, mem) or draft.now < not_before(mem, draft):
        return
    places = places_of(job, mem, draft)
    if places.can_start and _may_start(job, draft):
        lend(job, places.hot, places.wants_hot, draft)
        put_first(job, draft)


def _free_strays(draft: Draft) -> None:
    """Remove reservations with a name of ours whose job keeps no nodes: left by a dead head, or not removed yet."""
    if not draft.may_clear_strays:
        return
    for name in sorted(draft.seen.reservations):
        id = draft.seen.reservations[name].kept_for
        if id is None:
            continue
        mem = draft.jobs.get(id)
        asked = draft.asked_at(_free_key(name))
        is_kept = mem is not None and mem.kept is not None and mem.kept.freed is None
        if not is_kept and (asked is None or draft.seen.reservations_at > asked):
            _free(name, Why(rule="keep.stray", text=f"no job waits for the nodes of {name}"), draft)


def _free(name: str, why: Why, draft: Draft) -> None:
    """Ask for the reservation to be removed."""
    draft.wish(FreeNodes(key=_free_key(name), why=why, name=name), FREE_AGAIN_S)


def _free_key(name: str) -> Key:
    return Key(f"free:{name}")


def free_decided(draft: Draft) -> None:
    """Free the kept nodes of jobs that the decisions of this plan left to Slurm or retried in place."""
    for id in jobs_needing_attention(draft):
        mem, kept = draft.jobs[id], draft.jobs[id].kept
        if kept is not None and kept.freed is None and (is_left_to_slurm(mem) or _is_retried(mem, kept)):
            _free_or_renew(mem, kept, draft)


def keep_nodes(draft: Draft) -> None:
    """Keep the sound nodes of jobs that come back and must wait."""
    if not draft.may_touch_nodes or not draft.want.resume.enabled or draft.want.resume.keep_s <= 0:
        return
    hit = losing_a_node(draft)
    for id in sorted(hit.union(jobs_needing_attention(draft))):
        job, mem = draft.seen.jobs.get(id), draft.jobs[id]
        if job is not None and _may_have_kept_nodes(job, mem, id in hit) and not begins_later(job, draft):
            _keep(job, mem, draft)


def _may_have_kept_nodes(job: Job, mem: JobMemory, is_hit: bool) -> bool:
    """Return whether the job lost its place, or is about to, and its nodes may be kept (once a run)."""
    # not for a job with a reservation of its own, nor for one whose nodes Slurm itself keeps
    was_kept = mem.kept is not None and mem.kept.restart == mem.restarts
    if was_kept or job.reservation or job.het_job_id is not None or not mem.nodes or mem.ended is not None:
        return False
    if job.is_held or job.expedited:
        return False
    if job.is_active:
        return lost_its_place(mem) or is_hit
    return lost_its_place(mem) and (mem.pending_from is not None or job.is_completing)


def _keep(job: Job, mem: JobMemory, draft: Draft) -> None:
    """Keep the job's nodes if it must wait for further nodes, or if other jobs could take its nodes."""
    places = places_of(job, mem, draft)
    nodes = places.own
    if why_blocked(job, places.fit):
        return
    waits = bool(places.lacks) and has_hope(places, draft)
    starts_at_once = job.is_pending and not job.is_completing and places.can_start
    contested = not places.lacks and not starts_at_once and has_rivals(job, nodes, draft)
    if not nodes or not (waits or contested) or _is_too_much(job, nodes, draft):
        return
    rules = draft.want.resume
    kept = KeptNodes(restart=mem.restarts, nodes=nodes | places.coming, since=draft.now, until=draft.now + rules.keep_s)
    draft.jobs[job.id] = replace(mem, kept=kept)
    lost = fold(places.lost) or "a node"
    text = f"{len(nodes)} sound nodes of its run are kept for it, {rules.keep_s:.0f} s at most"
    why = Why(rule="keep.wait" if waits else "keep.contested", text=text, evidence=(f"it lost {lost}",))
    _reserve(job.id, kept, why, draft)
    later = f", and {fold(places.coming)} once it is repaired" if places.coming else ""
    draft.tell("job.keep", f"job {job.shown_id}: {why}: {fold(nodes)}{later}", job=job.id)
    draft.wake(kept.until)


def _reserve(id: JobId, kept: KeptNodes, why: Why, draft: Draft) -> None:
    """Ask for the reservation, or for its renewal."""
    # first in the plan, so that no other job takes the nodes before
    key = _keep_key(id, kept.restart)
    seconds = min(LEASE_S, max(60.0, kept.until - draft.now))
    draft.wish(KeepNodes(key=key, why=why, name=keep_name(id), nodes=kept.nodes, seconds=seconds), RENEW_S, first=True)


def _keep_key(id: JobId, restart: int) -> Key:
    return Key(f"keep:{id}:{restart}")


def _is_too_much(job: Job, nodes: frozenset[NodeName], draft: Draft) -> bool:
    """Return whether the nodes are more of their partition than the site allows to be kept; say so once."""
    of_it = [draft.overview.nodes_of(part) for part in job.partitions]
    others = (draft.jobs[id].kept for id in jobs_needing_attention(draft))
    kept = {node for one in others if one is not None and one.freed is None for node in one.nodes}
    limit = draft.want.resume.keep_fraction
    if all(len((kept | nodes) & there) <= limit * len(there) for there in of_it if nodes & there):
        return False
    text = (
        f"job {job.shown_id}: its nodes are not kept for it: more than {limit:.0%} of {job.partition} "
        "(resume.keep_percent)"
    )
    draft.tell("job.keep_refused", text, once=f"keepmuch:{job.id}:{job.restarts}", job=job.id)
    return True


def lend(job: Job, hot: Set[NodeName], count: int, draft: Draft) -> None:
    """Lend the job `count` of the hot spares `hot`; none if there are not enough, or it has some already."""
    mem = draft.jobs[job.id]
    if not count or mem.lent is not None:
        return
    nodes = frozenset(sorted(hot - lent_nodes(draft))[:count])
    if len(nodes) < count:
        return
    draft.jobs[job.id] = replace(mem, lent=Lent(nodes=nodes, at=draft.now, restart=mem.restarts))
    draft.tell("job.hot_spare", f"job {job.shown_id}: hot spares {fold(nodes)} are released for it", job=job.id)
    draft.wake(draft.now + LENT_FOR_S)
