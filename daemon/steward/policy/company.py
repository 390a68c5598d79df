"""Other people's jobs that fail on the same node: what one user's bug does not explain."""

from steward.model.ids import NodeName
from steward.model.job import Job, JobState
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.evidence import Evidence

LEAST_USERS = 2
FAILED = frozenset({JobState.FAILED, JobState.NODE_FAIL, JobState.BOOT_FAIL})


def in_bad_company(nodes: frozenset[NodeName], mem: JobMemory, failed_at: float, draft: Draft) -> tuple[Evidence, ...]:
    """Nodes on which alone jobs of several other users failed around `failed_at`; not when most nodes are like that:
    then it is nothing of theirs."""
    bad = {node: jobs for node, jobs in _failures(mem, failed_at, draft).items() if _users(jobs) >= LEAST_USERS}
    if len(bad) * 2 > len(draft.seen.nodes):
        return ()
    return tuple(_evidence(node, bad[node]) for node in sorted(nodes & bad.keys()))


def _failures(mem: JobMemory, failed_at: float, draft: Draft) -> dict[NodeName, list[Job]]:
    rules = draft.want.resume
    first, last = failed_at - rules.evidence_before_s, failed_at + rules.evidence_after_s
    found: dict[NodeName, list[Job]] = {}
    for id in sorted(draft.seen.jobs):
        job = draft.seen.jobs[id]
        alone = len(job.nodes) == 1 and job.user_id != mem.uid and job.state in FAILED
        if alone and job.ended is not None and first <= job.ended <= last:
            found.setdefault(next(iter(job.nodes)), []).append(job)
    return found


def _users(jobs: list[Job]) -> int:
    return len({job.user_id for job in jobs})


def _evidence(node: NodeName, jobs: list[Job]) -> Evidence:
    ids = ", ".join(str(job.id) for job in jobs[:5])
    at = max(job.ended or 0.0 for job in jobs)
    return Evidence(node=node, text=f"{node}: jobs of {_users(jobs)} other users failed on it, too ({ids})", at=at)
