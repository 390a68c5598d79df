"""The parts of a heterogeneous job come back together.

Slurm requeues only those that lost a node. Beside what is left of the last run the next one would fail: it begins when
the others are back in the queue, too.
"""

from steward.model.job import Job, other_parts
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.job.rulings import requeue

LOOK_S = 0.3
"""Slurm tells nobody when a part has cleaned up."""


def waits_for_parts(job: Job, draft: Draft) -> bool:
    """Whether a job that is back in the queue is not to begin yet."""
    parts = other_parts(job, draft.seen.jobs)
    if any(part.is_completing for part in parts):
        draft.wake(draft.now + LOOK_S)
    elif left := [part for part in parts if part.is_left_over]:
        ids = ", ".join(str(part.id) for part in left)
        why = Why(rule="resume.parts", text="its parts begin together", evidence=(f"left over of the last run: {ids}",))
        text = f"job {job.id}: {why}: all go back into the queue"
        draft.tell("job.parts", text, once=f"parts:{job.id}:{job.restarts}", job=job.id)
        requeue(job, why, draft)
    else:
        return False
    return True
