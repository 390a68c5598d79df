"""Other people's jobs that fail on the same node: what one user's bug does not explain."""

from collections.abc import Mapping, Sequence

from steward.model.ids import NodeName
from steward.model.job import Job
from steward.policy.draft import Draft

LEAST_USERS = 2


def bad_company(uid: int, around: float, draft: Draft) -> Mapping[NodeName, Sequence[Job]]:
    """Nodes on which alone jobs of several users other than `uid` failed around a time (Unix s), with those jobs; none
    when most nodes are like that: then it is nothing of theirs."""
    if (uid, around) not in draft.found.companies:
        failures = _failures(uid, around, draft)
        bad = {node: jobs for node, jobs in failures.items() if users(jobs) >= LEAST_USERS}
        draft.found.companies[uid, around] = {} if len(bad) * 2 > len(draft.seen.nodes) else bad
    return draft.found.companies[uid, around]


def _failures(uid: int, around: float, draft: Draft) -> dict[NodeName, list[Job]]:
    rules = draft.want.resume
    first, last = around - rules.evidence_before_s, around + rules.evidence_after_s
    found: dict[NodeName, list[Job]] = {}
    for job in draft.overview.failed_alone:
        if job.user_id != uid and job.ended is not None and first <= job.ended <= last:
            found.setdefault(next(iter(job.nodes)), []).append(job)
    return found


def users(jobs: Sequence[Job]) -> int:
    """How many users they belong to."""
    return len({job.user_id for job in jobs})
