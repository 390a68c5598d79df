"""Save state before a slot's machine goes: checkpoint signals to opted-in jobs, and the site's own backup.

The backup is restored on the slot's next machine.
"""

from dataclasses import replace

from steward.model.action import BackUpNode, SignalJob
from steward.model.ask import OptedIn
from steward.model.events import Level
from steward.model.ids import InstanceId, JobId, Key, NodeName
from steward.model.slot import Purpose, SlotRecord, SlotStep
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.opted_in import counts
from steward.policy.facts.told_to_save import leave_key
from steward.policy.groups.slot_scene import SlotScene

AGAIN_S = 3600.0
"""When to repeat a backup or restore whose outcome is unknown."""


def opted_in_jobs(node: NodeName, draft: Draft) -> list[JobId]:
    """Return the running jobs on the node that opted in: reported for their own user, or remembered."""
    running = draft.overview.running_on.get(node, ())
    words = [word for job in running for word in draft.overview.opted_in.get(job, ())]
    told = {word.job for word in words if counts(word, draft) and word.mode.on and _is_by_its_user(word, draft)}
    told |= {id for id in running if id in draft.jobs and draft.jobs[id].ended is None}
    return sorted(told)


def _is_by_its_user(word: OptedIn, draft: Draft) -> bool:
    job = draft.seen.jobs.get(word.job)
    return job is not None and word.uid == job.user_id


def has_opted_in_jobs(node: NodeName, draft: Draft) -> bool:
    return bool(opted_in_jobs(node, draft))


def drain_wait_s(record: SlotRecord, draft: Draft) -> float:
    """Return for how many seconds from now a drain waits for the node's jobs."""
    rules, instance = draft.want.capacity, draft.instance(record.instance)
    wait = rules.drain_deadline_s if record.is_leaving else rules.update_drain_deadline_s
    if instance is not None and instance.interrupted:
        wait = rules.checkpoint_grace_s
    if rules.checkpoint_signal and has_opted_in_jobs(record.node, draft):
        return max(wait, rules.checkpoint_grace_s)
    return wait


def hurried(record: SlotRecord, draft: Draft) -> SlotRecord:
    """Return the slot with its drain deadline lowered to that of a drain that begins now; unchanged in other steps."""
    if record.step is not SlotStep.DRAIN:
        return record
    until = draft.now + drain_wait_s(record, draft)
    return record if record.deadline is not None and record.deadline <= until else replace(record, deadline=until)


def signal_jobs(scene: SlotScene) -> None:
    """Send each opted-in job its checkpoint signal, once, when only the grace time is left before the node goes."""
    record, draft, rules = scene.record, scene.draft, scene.draft.want.capacity
    if not rules.checkpoint_signal or record.deadline is None or record.purpose is Purpose.STAY:
        return
    at = record.deadline - rules.checkpoint_grace_s
    draft.wake(at)
    for job in opted_in_jobs(record.node, draft) if draft.now >= at else []:
        told = f"job {draft.shown_id(job)} is told to save its state"
        text = f"{record.node} will go in {record.deadline - draft.now:.0f} s: {told}"
        why = Why(rule="slot.checkpoint", text=text, evidence=(str(record.why),))
        draft.wish(SignalJob(key=leave_key(record.token, job), why=why, job=job, signal=rules.checkpoint_signal))


# The site's own backup, and its restore.


def is_saved(scene: SlotScene) -> bool:
    """Return whether the backup was made, or none is needed."""
    return not _needs_backup(scene) or _backup_key(scene) in scene.draft.seen.done


def is_unsaved(scene: SlotScene) -> bool:
    """Return whether the backup command failed, and the slot does not show this yet."""
    return not scene.record.trouble and backup_error(scene) != ""


def backup_error(scene: SlotScene) -> str:
    return scene.draft.seen.failures.get(_backup_key(scene), "")


def ask_backup(scene: SlotScene) -> None:
    """Ask for the backup, once; after a failure, again only if a person repeats the deletion."""
    record, draft = scene.record, scene.draft
    # after a failure, `trouble` is set; a repeated deletion empties it
    if record.trouble or record.instance is None:
        return
    why = Why(rule="slot.backup", text=f"{record.node} goes and is backed up before", evidence=(str(record.why),))
    draft.wish(BackUpNode(key=_backup_key(scene), why=why, node=record.node, instance=record.instance), AGAIN_S)
    if not record.saved:
        draft.slots.keep(replace(record, saved=True))


def ask_restore(scene: SlotScene) -> None:
    record, draft = scene.record, scene.draft
    if record.instance is None or restore_is_over(scene):
        return
    why = Why(rule="slot.restore", text=f"{record.node} was backed up and has a new instance", evidence=(record.token,))
    key = _restore_key(scene)
    draft.wish(BackUpNode(key=key, why=why, node=record.node, instance=record.instance, restore=True), AGAIN_S)


def restore_is_over(scene: SlotScene) -> bool:
    """Return whether the restore was tried, or none is needed; a failure is reported and stops nothing."""
    record, draft = scene.record, scene.draft
    if not draft.want.capacity.has_backup or not record.saved:
        return True
    key = _restore_key(scene)
    error = draft.seen.failures.get(key)
    if error:
        text = f"{record.node}: restore failed: {error}"
        draft.tell("slot.restore_failed", text, once=f"told:{key}", level=Level.WARNING, node=record.node)
    return error is not None or key in draft.seen.done


def _needs_backup(scene: SlotScene) -> bool:
    record = scene.record
    goes = record.purpose is not Purpose.STAY and record.has_served and record.instance is not None
    return scene.draft.want.capacity.has_backup and goes and not scene.is_fixed and not scene.is_hosted


def _backup_key(scene: SlotScene) -> Key:
    return Key(f"backup:{scene.record.token}:{scene.record.instance or InstanceId('')}:{scene.record.tries}")


def _restore_key(scene: SlotScene) -> Key:
    return Key(f"restore:{scene.record.token}:{scene.record.instance or InstanceId('')}")
