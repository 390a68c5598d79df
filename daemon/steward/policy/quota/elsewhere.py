"""Jobs held up by limits that are not ours: no job is evicted for them, because the freed nodes would stay idle.

Such limits are those of a partition's QOS, of a user, of an account below a team's, and values set by hand in a QOS of
ours. Slurm gives the same reason for them as for ours, so we test whether our limit has room. Slurm's reason may be one
round of its scheduler old: so the job keeps its place in the order, and only evictions for it are left out.
"""

from collections.abc import Iterable, Mapping

from steward.model.accounting import Accounting, Association, Tres
from steward.model.ids import JobId
from steward.model.job import Job, parse_tres
from steward.policy.draft import Draft
from steward.policy.quota.requests import Unit, holds_nodes


def held_up(waiting: Iterable[Unit], draft: Draft, picture: Accounting) -> frozenset[JobId]:
    """Return the waiting units that a limit of the site holds up."""
    # for a job with several QOS, sizes or parts, Slurm does not say which of them met a limit
    used: dict[str, Tres] = {}
    return frozenset(unit.id for unit in waiting if _is_held_up(unit, draft, picture, used))


def _is_held_up(unit: Unit, draft: Draft, picture: Accounting, used: dict[str, Tres]) -> bool:
    """Return whether a limit of the site holds up the unit."""
    job = unit.jobs[0]
    if len(unit.jobs) > 1 or unit.sizes or "Grp" not in job.reason:
        return False
    if job.reason.startswith("QOS"):
        qos = picture.qos.get(job.qos)
        has_room = qos is not None and not _is_full(job.qos, qos.limits, qos.used, job, draft)
    else:
        has = picture.of_account(unit.team)
        if has is None:
            return False
        if unit.team not in used:
            used[unit.team] = _used_by(unit.team, draft, picture)
        has_room = not _is_full(f"account {unit.team}", has.limits, used[unit.team], job, draft)
    # 22.05 gives such a reason also for jobs with --gpus or --gpus-per-task when it finds no node for them.
    return has_room and _has_limit_of_site(job, draft, picture)


def _has_limit_of_site(job: Job, draft: Draft, picture: Accounting) -> bool:
    """Return whether the site limits a resource that the job requests, by the kind of limit in the job's reason."""
    asks = parse_tres(job.requested)
    if not job.reason.startswith("QOS"):
        return any(
            asks.get(tres) and (has.user or not is_ours(f"account {has.account}/cap:{tres}", draft))
            for has in limiting_associations(job, picture)
            for tres in has.limits
        )
    partitions = [draft.seen.partitions.get(name) for name in job.partitions]
    names = {job.qos, *(each.own_qos for each in partitions if each is not None)} - {""}
    if None in partitions or not names <= picture.qos.keys():
        return True  # not known: assume a limit of the site
    limits = ((name, tres) for name in names for tres in picture.qos[name].limits)
    return any(asks.get(tres) and not is_ours(f"{name}/cap:{tres}", draft) for name, tres in limits)


def limiting_associations(job: Job, picture: Accounting) -> list[Association]:
    """Return the associations whose limits apply to a job: its user's, its account's and those above."""
    own = picture.limited_user(job.account, job.user_id, job.partition)
    line = (picture.of_account(name) for name in picture.line_of(job.account))
    return [each for each in (own, *line) if each is not None]


def _is_full(owner: str, limits: Tres, used: Tres, job: Job, draft: Draft) -> bool:
    """Return whether the job would exceed a limit of ours."""
    asks = parse_tres(job.requested)
    return any(
        used.get(tres, 0) + asks[tres] > limit and is_ours(f"{owner}/cap:{tres}", draft)
        for tres, limit in limits.items()
        if asks.get(tres)
    )


def is_ours(key: str, draft: Draft) -> bool:
    """Return whether we wrote the field, and it was not set by hand since."""
    known = draft.quota_writes.get(key)
    return known is not None and known.foreign is None


def _used_by(team: str, draft: Draft, picture: Accounting) -> Mapping[str, int]:
    """Return the amounts, by TRES, that jobs of the team's account and of accounts below it use."""
    above = {name: team in picture.line_of(name) for name in {job.account for job in draft.seen.jobs.values()}}
    found: dict[str, int] = {}
    for job in draft.seen.jobs.values():
        if above[job.account] and holds_nodes(job):
            for tres, amount in parse_tres(job.allocated or job.requested).items():
                found[tres] = found.get(tres, 0) + amount
    return found
