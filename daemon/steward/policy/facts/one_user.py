"""Machines that break under one user's jobs, one after the other.

A job may bring about faults of hardware, such as an Xid or a lockup. Brought back on other nodes, it breaks those, too.
Faults of hardware come once in thousands of node-hours, so three of one kind under one user whose jobs have run for a
few node-hours are not by chance.
"""

from collections import defaultdict
from collections.abc import Set

from steward.model.case import Case, Trigger
from steward.model.ids import NodeName
from steward.policy.draft import Draft

MOST_MACHINES = 3
"""How many machines a user's jobs may break in the same way within `WITHIN_S` before the cause is in the jobs."""
WITHIN_S = 4 * 3600.0
_ROOT = 0
LITTLE_S = 16 * 3600.0
"""So many node-seconds have the running jobs of such a user had at most, all together, at each fault."""


def users_with_little_work(node: NodeName, draft: Draft) -> frozenset[int]:
    """Return the users with jobs on the node whose running jobs have had less than `LITTLE_S` in all."""
    jobs = (draft.seen.jobs[id] for id in draft.overview.running_on.get(node, ()))
    users = {job.user_id for job in jobs if not job.deep_check and job.user_id != _ROOT}
    return frozenset(user for user in users if _is_little(user, draft))


def _is_little(user: int, draft: Draft) -> bool:
    if draft.found.work_s is None:
        work_s: defaultdict[int, float] = defaultdict(float)
        for job in draft.overview.active:
            if job.started is not None:
                work_s[job.user_id] += len(job.nodes) * max(0.0, draft.now - job.started)
        draft.found.work_s = work_s
    return draft.found.work_s.get(user, 0.0) < LITTLE_S


def last_began(node: NodeName, users: Set[int], draft: Draft) -> float | None:
    """Return when the last job of these users on the node began; None without one."""
    jobs = (draft.seen.jobs[id] for id in draft.overview.running_on.get(node, ()))
    return max((job.started for job in jobs if job.user_id in users and job.started is not None), default=None)


def broken_by_users_jobs(case: Case, draft: Draft) -> Set[NodeName]:
    """Return the other machines that one user's jobs broke like this one, if they are so many; else nothing."""
    # a machine that is gone cannot be checked, and who works as root has other ways to break it
    if case.trigger in (Trigger.ADMIN, Trigger.LOST) or not case.users:
        return frozenset()
    before = [
        one
        for one in draft.cases.values()
        if one.check == case.check and one.node != case.node and 0.0 <= case.opened - one.opened <= WITHIN_S
    ]
    broken = (_one_after_the_other(case, [one for one in before if user in one.users]) for user in sorted(case.users))
    return next((nodes for nodes in broken if len(nodes) >= MOST_MACHINES), frozenset())


def _one_after_the_other(case: Case, before: list[Case]) -> frozenset[NodeName]:
    """Return the machines of a chain that ends with this case: on each, a job began after the one before had broken.

    Machines that break under the same run may have lost their power together.
    """
    nodes, next_one = set(), case
    for one in sorted(before, key=lambda one: one.opened, reverse=True):
        began = next_one.users_began
        # Slurm tells whole seconds
        if began is not None and began > one.opened - 1.0 and next_one.opened > one.opened + 1.0:
            nodes.add(one.node)
            next_one = one
    return frozenset(nodes)
