"""Limits that are not ours: a partition's QOS, what the site allows a user or an account below a team's, a value that
somebody set by hand in a QOS of ours. Slurm gives the same reason for them as for ours, so it is asked whether ours has
room: then nobody gives way, for what he leaves would stay idle.

What it says of a job may be a round of its scheduler old: so the job keeps its place, and only nobody is taken for it.
"""

from collections.abc import Iterable, Mapping

from steward.model.accounting import Accounting, Tres
from steward.model.ids import JobId
from steward.model.job import Job
from steward.policy.draft import Draft
from steward.policy.quota.flavors import parse_tres
from steward.policy.quota.requests import Unit, holds_nodes


def held_up(waiting: Iterable[Unit], draft: Draft, picture: Accounting) -> frozenset[JobId]:
    """Those of the waiting units that such a limit holds up. Of a job with several QOS, or sizes, or parts, Slurm does
    not tell which of them met a limit."""
    used: dict[str, Tres] = {}
    return frozenset(unit.id for unit in waiting if _is_held_up(unit, draft, picture, used))


def _is_held_up(unit: Unit, draft: Draft, picture: Accounting, used: dict[str, Tres]) -> bool:
    job = unit.jobs[0]
    if len(unit.jobs) > 1 or unit.sizes or "Grp" not in job.reason:
        return False
    if job.reason.startswith("QOS"):
        qos = picture.qos.get(job.qos)
        return qos is not None and not _is_full(job.qos, qos.limits, qos.used, job, draft)
    has = picture.of_account(unit.team)
    if has is None:
        return False
    if unit.team not in used:
        used[unit.team] = _used_by(unit.team, draft, picture)
    return not _is_full(f"account {unit.team}", has.limits, used[unit.team], job, draft)


def _is_full(owner: str, limits: Tres, used: Tres, job: Job, draft: Draft) -> bool:
    """A limit of ours there leaves the job no room."""
    asks = parse_tres(job.requested)
    return any(
        used.get(tres, 0) + asks[tres] > limit and is_ours(f"{owner}/cap:{tres}", draft)
        for tres, limit in limits.items()
        if asks.get(tres)
    )


def is_ours(key: str, draft: Draft) -> bool:
    """We wrote it, and nobody else since."""
    known = draft.quota_writes.get(key)
    return known is not None and known.foreign is None


def _used_by(team: str, draft: Draft, picture: Accounting) -> Mapping[str, int]:
    """By the jobs of its account and of those below, as Slurm counts them."""
    above = {name: team in picture.line_of(name) for name in {job.account for job in draft.seen.jobs.values()}}
    found: dict[str, int] = {}
    for job in draft.seen.jobs.values():
        if above[job.account] and holds_nodes(job):
            for tres, amount in parse_tres(job.allocated or job.requested).items():
                found[tres] = found.get(tres, 0) + amount
    return found
