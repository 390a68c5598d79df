"""Nodes that are blamed: for a job's failures, by its user, or for failures of other users' jobs."""

from collections.abc import Mapping, Sequence

from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.facts.verdict import Standing, standing, worst_finding

EVIDENCE_BEFORE_S, EVIDENCE_AFTER_S = 600.0, 300.0
"""How long before and after a failure evidence explains the failure."""
EXCLUDE_S = 86_400.0
"""How long a blamed node stays on the job's exclude list."""
HUNG_S = 3600.0
"""How long a node stays there that is blamed for a hang, though its checks pass."""
HANG = "hang:"
"""The beginning of what a ruling on a hang was decided for."""


def users_own(job: Job, mem: JobMemory) -> frozenset[NodeName]:
    """Return the nodes on the job's exclude list that its user, not Steward, put there."""
    # Nodes that Steward ever blamed are its own: else a list that could not be shortened would look like the user's.
    # `parts` are left out because Slurm excludes from each part of a heterogeneous job what another part asks for, and
    # a list that Steward sets holds for all parts.
    blamed = {node for attempt in mem.attempts for node in attempt.culprits}
    return ((job.excluded - mem.excluded - blamed) | (mem.excluded_by_user & job.excluded)) - mem.parts


def culprits(mem: JobMemory, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes blamed within `EXCLUDE_S` that have not been proved sound since."""
    since = draft.now - EXCLUDE_S
    blamed = {node for attempt in mem.attempts if attempt.at > since for node in attempt.culprits}
    if not blamed:
        return frozenset()
    company = nodes_failing_other_users(mem.uid, draft.now, draft)
    hung = _hung_lately(mem, draft) | _odd_lately(mem, draft)
    return frozenset(node for node in blamed if node in company or node in hung or not _is_sound(node, draft))


def _hung_lately(mem: JobMemory, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes on which ranks of the job hung a while ago: no check may find why."""
    since = draft.now - HUNG_S
    hung = (one for one in mem.attempts if one.at > since and one.decided_for.startswith(HANG))
    return frozenset(node for one in hung for node in one.culprits)


def _is_sound(node: NodeName, draft: Draft) -> bool:
    """Return whether the node is in service without an open repair, a bad finding or a pending reclaim."""
    known = draft.seen.nodes.get(node)
    if node in draft.overview.reclaimed:
        return False
    if known is None or not known.is_schedulable or draft.cases.open_of(node) is not None:
        return False
    fine = standing(known, draft).standing in (Standing.FINE, Standing.UNKNOWN)
    return fine and worst_finding(draft.seen.agents.get(node), draft) is None


def _odd_lately(mem: JobMemory, draft: Draft) -> frozenset[NodeName]:
    """Return the node whose ranks the others waited for a while ago, until the job failed."""
    is_lately = mem.odd is not None and (mem.odd.until is None or mem.odd.until > draft.now - HUNG_S)
    return frozenset((mem.odd.node,)) if mem.odd is not None and is_lately else frozenset()


LEAST_USERS = 2


def nodes_failing_other_users(uid: int, around: float, draft: Draft) -> Mapping[NodeName, Sequence[Job]]:
    """Return the nodes on which jobs of several users other than `uid` failed alone around a time, with those jobs.

    Empty if more than half of all nodes are like that: then the cause is not in the nodes.
    """
    if (uid, around) not in draft.found.companies:
        failures = _failures(uid, around, draft)
        bad = {node: jobs for node, jobs in failures.items() if count_users(jobs) >= LEAST_USERS}
        draft.found.companies[uid, around] = {} if len(bad) * 2 > len(draft.seen.nodes) else bad
    return draft.found.companies[uid, around]


def _failures(uid: int, around: float, draft: Draft) -> dict[NodeName, list[Job]]:
    """Return the failed one-node jobs of other users around a time, by node."""
    first, last = around - EVIDENCE_BEFORE_S, around + EVIDENCE_AFTER_S
    found: dict[NodeName, list[Job]] = {}
    for job in draft.overview.failed_alone:
        if job.user_id != uid and job.ended is not None and first <= job.ended <= last:
            found.setdefault(next(iter(job.nodes)), []).append(job)
    return found


def count_users(jobs: Sequence[Job]) -> int:
    """Return how many users the jobs belong to."""
    return len({job.user_id for job in jobs})
