"""Jobs on a node that is about to go: opted-in ones get their checkpoint signal in time."""

from steward.model.action import SignalJob
from steward.model.ask import OptedIn
from steward.model.ids import JobId, Key, NodeName
from steward.model.slot import Purpose
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.groups.slot_scene import SlotScene
from steward.policy.job.whereabouts import words_that_count


def opted_in_jobs(node: NodeName, draft: Draft) -> list[JobId]:
    """Running jobs on the node that asked to be resumed, by their own user's word."""
    running = draft.overview.running_on.get(node, ())
    words = [word for word in draft.seen.opted_in if word.job in running]
    told = {word.job for word in words_that_count(words, draft) if word.mode.on and _is_by_its_user(word, draft)}
    told |= {id for id in running if id in draft.jobs and draft.jobs[id].ended is None}
    return sorted(told)


def _is_by_its_user(word: OptedIn, draft: Draft) -> bool:
    job = draft.seen.jobs.get(word.job)
    return job is not None and word.uid == job.user_id


def has_opted_in_jobs(node: NodeName, draft: Draft) -> bool:
    return bool(opted_in_jobs(node, draft))


def signal_jobs(scene: SlotScene) -> None:
    """Each once, when no more than the grace is left before the node's end."""
    record, draft, rules = scene.record, scene.draft, scene.draft.want.capacity
    if not rules.checkpoint_signal or record.deadline is None or record.purpose is Purpose.STAY:
        return
    at = record.deadline - rules.checkpoint_grace_s
    draft.wake(at)
    for job in opted_in_jobs(record.node, draft) if draft.now >= at else []:
        text = f"{record.node} goes in {record.deadline - draft.now:.0f} s: job {job} may save its state"
        why = Why(rule="slot.checkpoint", text=text, evidence=(str(record.why),))
        key = Key(f"signal:{record.token}:{job}")
        draft.wish(SignalJob(key=key, why=why, job=job, signal=rules.checkpoint_signal))
