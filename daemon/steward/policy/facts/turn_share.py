"""The share of a turn that one user's jobs may take: each action is a separate command, and all shims wait."""

from steward.model.action import AllowRequeue, CancelReplica, RequeueJob, SignalJob
from steward.policy.draft import Draft

AT_ONCE = 16
"""The most actions of one kind, about jobs of one user, in a turn."""
SOON_S = 0.1


def has_share(kind: type[AllowRequeue | CancelReplica | RequeueJob | SignalJob], uid: int, draft: Draft) -> bool:
    """Return whether this turn has room for such an action about another job of the user; if not, ask for a turn soon.

    Use it only for actions that are asked for in each turn until they are done.
    """
    jobs = (draft.seen.jobs.get(each.job) for each in draft.actions_of(kind))
    if sum(job is not None and job.user_id == uid for job in jobs) < AT_ONCE:
        return True
    draft.wake(draft.now + SOON_S)
    return False
