"""Remember jobs that Slurm's own preemption requeued before the head looked, like our own evictions.

Slurm makes room within a second of an owner's submission, even while Steward is away, and keeps no record of the
preemption once the job waits again. The signs of it are: the job could borrow, it waits for the delay after a requeue,
and an owner's job began at that time where it may have run.
"""

from collections.abc import Iterator, Mapping

from steward.model.accounting import borrowed_qos, guaranteed_qos
from steward.model.job import Job
from steward.model.quota import Eviction, Reclaimed
from steward.policy.draft import Draft
from steward.policy.quota.requests import REQUEUE_DELAY_S
from steward.policy.quota.turn import teams_of

_BEGAN_WITHIN_S = 15.0
"""The owner's job begins within this time after the nodes are free: in Slurm's next scheduling round."""
_BEFORE_S = 1.0
"""The start may seem this much earlier than the requeue: Slurm shows whole seconds."""


def note_unseen(draft: Draft) -> None:
    """Remember evictions by Slurm that the head did not see, before any ruling on the ended run."""
    picture = draft.seen.accounting
    if picture is None or picture.trouble or not picture.can.preempts or not draft.want.quota.enabled:
        return
    if not (back := list(_requeued_for_unknown_reason(draft))):
        return
    teams = teams_of(draft, draft.quotas_in_force)
    for job in back:
        team = teams.get(job.account, "")
        if (
            team
            and borrowed_qos(team) in job.qos.split(",")
            and (to := _job_that_took_the_nodes(job, team, teams, draft))
        ):
            _remember(job, team, to, teams[to.account], draft)


def _requeued_for_unknown_reason(draft: Draft) -> Iterator[Job]:
    """Yield the jobs that were requeued a moment ago for an unknown reason."""
    for job in draft.seen.jobs.values():
        if not job.restarts or job.reason != "BeginTime" or not job.is_pending or job.is_completing or job.is_part:
            continue
        memory = draft.quota_jobs.get(job.id)
        is_known = memory is not None and any(each.restart >= job.restarts - 1 for each in memory.evictions)
        if is_known or draft.now > (job.submitted or 0.0) + REQUEUE_DELAY_S or _was_requeued_for_fault(job, draft):
            continue
        yield job


def _was_requeued_for_fault(job: Job, draft: Draft) -> bool:
    """Return whether Steward requeued the job itself, or the job's last run had a node that Slurm has DOWN."""
    # such a requeue frees nodes, too, on which an owner's waiting job may begin
    mem = draft.jobs.get(job.id)
    if mem is None:
        return False
    was_decided = any(each.is_requeue and each.restart == job.restarts - 1 for each in mem.attempts)
    nodes = (draft.seen.nodes.get(name) for name in mem.nodes)
    return was_decided or any(node is not None and node.is_down for node in nodes)


def _job_that_took_the_nodes(job: Job, team: str, teams: Mapping[str, str], draft: Draft) -> Job | None:
    """Return the first job of another team that began within its quota when the nodes were free; None if none did."""
    at, on = job.submitted or 0.0, draft.overview.nodes_of(job.partition)
    began = [
        (each.started, each.id)
        for each in draft.seen.jobs.values()
        if each.started is not None
        and at - _BEFORE_S <= each.started <= at + _BEGAN_WITHIN_S
        and teams.get(each.account, team) != team
        and each.qos == guaranteed_qos(teams[each.account])
        and each.nodes & on
        and not each.is_pending
    ]
    return draft.seen.jobs[min(began)[1]] if began else None


def _remember(job: Job, team: str, to: Job, owner: str, draft: Draft) -> None:
    """Remember that the job was evicted for the owner's."""
    # Slurm shows the time of the requeue as a requeued job's time of submission
    at = job.submitted or draft.now
    text = (
        f"is evicted for job {to.shown_id} of team {owner}, whose quota covers it, with what {team} had borrowed; "
        "Slurm made the room at once, and it is put back into the queue"
    )
    over = Eviction(
        at=at, restart=job.restarts - 1, cause=Reclaimed.RECLAIM, to_team=owner, to_job=to.id, text=text, over=at
    )
    draft.quota_jobs.add_eviction(job.id, team, over)
    draft.tell(
        "quota.evicted",
        f"job {job.shown_id} {text.replace('is evicted', 'was evicted', 1)}",
        once=f"evicted:{job.id}:{over.restart}:{round(at)}",
        job=job.id,
    )
