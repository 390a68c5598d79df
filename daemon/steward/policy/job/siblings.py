"""Give a task of a limited array (`--array=0-9%1`) its place in the array back before its siblings.

Slurm gives the place away as soon as the lost run is over, before the lost task is eligible again. So the start time
of the waiting tasks is delayed for a while; the delay ends by itself, even if Steward dies. Tried on 22.05.8: without a
delay, the lost task waits for all others; with `starttime=now+20` for the array it runs 2 s later, before the others.
"""

from steward.model.action import DelayTasks
from steward.model.ids import JobId, Key
from steward.model.job import Job
from steward.model.resume import JobMemory
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.job.lost_place import losing_a_node
from steward.policy.job.nudge import begins_later, is_left_to_slurm, lost_its_place, not_before

DELAY_S, AGAIN_S = 20.0, 10.0
FOR_S = 60.0
"""By then, a task that could start has started."""


def keep_slots(draft: Draft) -> None:
    """Delay the siblings of tasks that come back, and end the delay when the task runs."""
    hit = losing_a_node(draft)
    for id in sorted(hit.union(jobs_needing_attention(draft))):
        job, mem = draft.seen.jobs.get(id), draft.jobs[id]
        if job is None or job.array_job_id is None or job.array_task is None or mem.ended is not None:
            continue
        if job.is_active and id not in hit and not lost_its_place(mem):
            _end_delay(job, job.array_job_id, draft)
        elif _comes_back(job, mem, id in hit, draft):
            _delay(job, job.array_job_id, mem, draft)


def _comes_back(job: Job, mem: JobMemory, is_hit: bool, draft: Draft) -> bool:
    """Return whether the task lost its place, or is about to, and is to be resumed soon."""
    if job.is_held or not job.requeue or is_left_to_slurm(mem) or begins_later(job, draft):
        return False
    if draft.now < not_before(mem, draft):
        return False
    if not lost_its_place(mem):
        return is_hit and job.is_active
    return mem.last_attempt is not None and draft.now < mem.last_attempt.at + FOR_S


def _delay(job: Job, array: JobId, mem: JobMemory, draft: Draft) -> None:
    """Delay the start of the task's siblings."""
    others = _waiting(job, array, draft)
    most = max((other.most_tasks for other in others), default=0)
    if not most or any((other.eligible or 0.0) > draft.now + DELAY_S for other in others):
        return  # the array has no limit, or a person delayed the siblings
    text = f"its array runs {most} at a time: the other tasks begin after this one, or in {DELAY_S:.0f} s"
    why = Why(rule="array.slot", text=text, evidence=("it lost its place to a fault",))
    action = DelayTasks(key=_key(job.id, mem.restarts), why=why, job=job.id, array=array, delay_s=DELAY_S)
    if draft.wish(action, AGAIN_S, first=True):
        draft.tell("job.array_slot", f"job {job.shown_id}: {text}", once=f"slot:{job.id}:{mem.restarts}", job=job.id)


def _end_delay(job: Job, array: JobId, draft: Draft) -> None:
    """End the delay of the siblings: the task runs, and only the array's limit must hold them now."""
    asked = draft.asked_at(_key(job.id, job.restarts - 1))
    if asked is None or draft.now >= asked + DELAY_S:
        return
    if any(draft.now < (other.eligible or 0.0) <= asked + 2 * DELAY_S for other in _waiting(job, array, draft)):
        why = Why(rule="array.go_on", text="the task that lost its place runs again")
        key = Key(f"tasks:go:{job.id}:{job.restarts}")
        draft.wish(DelayTasks(key=key, why=why, job=job.id, array=array, delay_s=0.0))


def _waiting(job: Job, array: JobId, draft: Draft) -> list[Job]:
    """Return the other tasks of the array that wait."""
    jobs = draft.seen.jobs.values()
    return [other for other in jobs if other.array_job_id == array and other.is_pending and other.id != job.id]


def _key(job: JobId, restart: int) -> Key:
    return Key(f"tasks:{job}:{restart}")
