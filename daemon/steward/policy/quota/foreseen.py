"""Find limits of the site that will hold a waiting job up, before Slurm says so.

Slurm tests these limits only after it has found nodes, which borrowers still have: they would be evicted in vain. A
limit counts only if it surely holds the job up: the job's request plus what its team keeps is beyond the limit.
"""

from collections.abc import Callable, Iterable, Mapping

from steward.model.accounting import QOS_PREFIX, Accounting, Tres, guaranteed_qos
from steward.model.ids import JobId
from steward.model.job import Job, parse_tres
from steward.policy.draft import Draft
from steward.policy.quota.elsewhere import is_ours, limiting_associations
from steward.policy.quota.requests import Unit

BELIEVED_S = 120.0
"""By then Slurm's backfill has looked at the job, and Slurm's own reason counts in place of our forecast."""


def units_held_up(
    waiting: Iterable[Unit], staying: Mapping[str, list[Unit]], draft: Draft, picture: Accounting
) -> frozenset[JobId]:
    """Return the waiting units that limits of the site will hold up; `staying` are the units that are not evicted."""
    found: set[JobId] = set()
    asked: dict[tuple[object, ...], bool] = {}
    for unit in waiting:
        job = unit.jobs[0]
        until = max(job.submitted or 0.0, job.eligible or 0.0) + BELIEVED_S
        if draft.now >= until or len(unit.jobs) > 1 or unit.sizes:
            continue
        key = job.account, job.user_id, job.partition, job.qos, job.requested, unit.weight
        if key not in asked:
            asked[key] = _is_beyond(unit, staying, draft, picture)
        if asked[key]:
            found.add(unit.id)
            draft.wake(until)
    return frozenset(found)


def _is_beyond(unit: Unit, staying: Mapping[str, list[Unit]], draft: Draft, picture: Accounting) -> bool:
    """Return whether limits hold the unit up in every QOS in which it may run."""
    job = unit.jobs[0]
    partition = draft.seen.partitions.get(job.partition)
    if partition is None or not unit.qos:
        return False
    first = picture.qos.get(partition.own_qos)
    if partition.own_qos and first is None:
        return False
    # a partition's own QOS replaces all other limits of the resources that it limits
    settled = {"node", *(first.limits if first is not None else ())}  # jobs that share a node count the node once
    asks = {tres: amount for tres, amount in parse_tres(job.requested).items() if amount and tres not in settled}
    return all(_is_beyond_in(qos, asks, unit, staying, draft, picture) for qos in unit.qos)


def _is_beyond_in(
    name: str, asks: Tres, unit: Unit, staying: Mapping[str, list[Unit]], draft: Draft, picture: Accounting
) -> bool:
    """Return whether limits of the site hold the unit up in this QOS."""
    qos, job = picture.qos.get(name), unit.jobs[0]
    if qos is None or (name.startswith(QOS_PREFIX) and name != guaranteed_qos(unit.team)):
        return False
    # a limit of a QOS replaces the user's and the accounts' limits of the same TRES. Limits of ours are left out: the
    # ledger counts them.
    mine = {tres: limit for tres, limit in qos.limits.items() if not is_ours(f"{name}/cap:{tres}", draft)}
    if _passes(mine, asks, unit, staying, lambda each: each.qos == name):
        return True
    rest = {tres: amount for tres, amount in asks.items() if tres not in qos.limits}
    for has in limiting_associations(job, picture):
        owner = f"account {has.account}"
        limits = {t: limit for t, limit in has.limits.items() if has.user or not is_ours(f"{owner}/cap:{t}", draft)}
        if _passes(limits, rest, unit, staying, lambda each, has=has: has in limiting_associations(each, picture)):  # type: ignore[misc]
            return True
    return False


def _passes(
    limits: Tres, asks: Tres, unit: Unit, staying: Mapping[str, list[Unit]], counts: Callable[[Job], bool]
) -> bool:
    """Return whether the unit's request, with the jobs of its team that are not evicted for it, passes a limit."""
    names = [tres for tres in limits if asks.get(tres)]
    if not names:
        return False
    # jobs of lower classes may be evicted for the unit
    kept = (each.jobs for each in staying.get(unit.team, ()) if each.weight >= unit.weight)
    used = [parse_tres(job.allocated or job.requested) for jobs in kept for job in jobs if counts(job)]
    return any(sum(each.get(tres, 0) for each in used) + asks[tres] > limits[tres] for tres in names)
