"""Faults that the jobs of one user alone may have brought about.

A user reaches a node by the processes, files and connections of his jobs, while they run there. Three things show that
he may be the author of a fault: any job brings such a fault about at will; of the jobs that could not begin or end on
the node, one was his each time; or other machines broke in the same way under his jobs, one after the other. A reboot
ends all of his reach but what he stored: what fails then is the machine's own fault, unless a disk is full.

Such a fault raises no other repair and costs no machine. Faults of hardware are brought about by jobs, too, such as an
Xid or a lockup. They come once in thousands of node-hours, so three of one kind under one user whose jobs have run for
a few node-hours are not by chance.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Set

from steward.model.case import Case, Trigger
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.model.node_names import fold
from steward.policy.draft import Draft
from steward.policy.facts.slurm_faults import TOLD_WITHIN_S
from steward.policy.slurm_reasons import LAUNCH_FAILED, LAUNCHES, ROWS, breaks_launches

AT_WILL = frozenset(row.check for row in ROWS if row.of_jobs)
"""The checks of faults that any job can bring about whenever its user wants."""
NOT_OF_HARDWARE = AT_WILL | LAUNCHES
"""The checks of faults that users' jobs bring about by what they do or leave behind, and hardware hardly does."""
MOST_MACHINES = 3
"""How many machines a user's jobs may break in the same way within `WITHIN_S` before the cause is in the jobs."""
WITHIN_S = 4 * 3600.0
LITTLE_S = 16 * 3600.0
"""So many node-seconds have the running jobs of such a user had at most, all together, at each fault."""
_EACH_TIME_S = 86400.0
"""Of so long a time all faults of a node count together."""
_FULL = ("disk", "slurm.spool")
"""The checks of file systems that users can fill, so that no job begins or ends on the node."""
_ROOT = 0
"""Who works as root needs no job to break a machine, and tests machines by jobs."""


def users_there(node: Node, check: str, draft: Draft) -> Mapping[int, float]:
    """Return the users who may have brought about this fault of the node, each with when the last such job began.

    A job that could not begin or end there counts by the time of that. Empty if nothing shows who it may have been.
    """
    if check in LAUNCHES and node.reason is not None:
        at = node.reason.at
        return {job.user_id: at for job in draft.seen.jobs.values() if _may_have_failed(job, node, at)}
    found: dict[int, float] = {}
    for id in draft.overview.running_on.get(node.name, ()):
        job = draft.seen.jobs[id]
        if not job.deep_check and job.user_id != _ROOT and job.started is not None and _has_run_little(job, draft):
            found[job.user_id] = max(job.started, found.get(job.user_id, job.started))
    return found


def _may_have_failed(job: Job, node: Node, at: float) -> bool:
    """Return whether a user's job is back in the queue since that time, or ended then on the node."""
    if job.deep_check:
        return False
    # Slurm shows the nodes of a run that ended, and not those of one that it put back: its partition has to do
    if job.ended is not None and node.name in job.nodes:
        return abs(job.ended - at) <= TOLD_WITHIN_S
    is_back = job.restarts > 0 and job.submitted is not None and abs(job.submitted - at) <= TOLD_WITHIN_S
    return is_back and not node.partitions.isdisjoint(job.partitions)


def _has_run_little(of: Job, draft: Draft) -> bool:
    """Return whether the running jobs of the job's user have had less than `LITTLE_S` in all."""
    if draft.found.work_s is None:
        work_s: defaultdict[int, float] = defaultdict(float)
        for job in draft.overview.active:
            if job.started is not None:
                work_s[job.user_id] += len(job.nodes) * max(0.0, draft.now - job.started)
        draft.found.work_s = work_s
    return draft.found.work_s.get(of.user_id, 0.0) < LITTLE_S


def why_may_be_users(case: Case, draft: Draft) -> str:
    """Return why the jobs of one user alone may have brought the case's fault about; empty if they cannot have."""
    # an order is no fault, and of a machine that is gone no check shows what is left of it
    if case.trigger in (Trigger.ADMIN, Trigger.LOST):
        return ""
    if case.check in AT_WILL:
        return f"one job alone can bring about '{case.command}'" if case.trigger is Trigger.DEGRADED else ""
    if case.check in LAUNCHES:
        # launches that failed without a word of Slurm's count only if they were of several users
        may_be = case.check != LAUNCH_FAILED and _was_there_each_time(case, draft)
        return f"jobs of one user alone could not begin or end on {case.node}" if may_be else ""
    if not (broken := _broken_before(case, draft)):
        return ""
    text = f"one user's jobs broke {fold(broken)} in the same way ({case.check}) soon after they began"
    return f"{text}, within {WITHIN_S / 3600.0:g} hours"


def _was_there_each_time(case: Case, draft: Draft) -> bool:
    """Return whether of one user a job was there each time that jobs could not begin or end on the node."""
    since = case.opened - _EACH_TIME_S
    lately = [one for one in draft.cases.of(case.node) if one.check in LAUNCHES and one.opened > since]
    known = [one.users.keys() for one in (*lately, case) if one.users]
    return not known or bool(set(known[0]).intersection(*known))


def _broken_before(case: Case, draft: Draft) -> Set[NodeName]:
    """Return the other machines that one user's jobs broke like this one, if they are so many; else nothing."""
    if not case.users:
        return frozenset()
    before = [
        one
        for one in draft.cases.values()
        if one.check == case.check and one.node != case.node and 0.0 <= case.opened - one.opened <= WITHIN_S
    ]
    before.sort(key=lambda one: one.opened, reverse=True)
    broken = (frozenset(_one_after_the_other(user, case, before)) for user in sorted(case.users))
    return next((nodes for nodes in broken if len(nodes) >= MOST_MACHINES), frozenset())


def _one_after_the_other(user: int, case: Case, before: list[Case]) -> Iterator[NodeName]:
    """Yield the machines of a chain that ends with this case: on each, a job of his began after the one before broke.

    Machines that break under the same run may have lost their power together.
    """
    next_one = case
    for one in before:
        # Slurm tells whole seconds
        if user in one.users and next_one.users[user] > one.opened - 1.0 and next_one.opened > one.opened + 1.0:
            yield one.node
            next_one = one


def what_users_filled(case: Case, draft: Draft) -> str:
    """Return what users can fill and is full where jobs cannot begin or end; empty if nothing is."""
    if case.trigger is not Trigger.DEGRADED or not (case.may_be_users or breaks_launches(case)):
        return ""
    view = draft.seen.agents.get(case.node)
    return next((f.text for f in (view.findings if view is not None else ()) if f.is_bad and f.check in _FULL), "")
