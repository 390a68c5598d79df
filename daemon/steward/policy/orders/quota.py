"""CreateComputeQuota, UpdateComputeQuota, DeleteComputeQuota: change the resources that a team owns.

The next turns write the changes to Slurm.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

from steward.model.accounting import why_no_team
from steward.model.arn import slurm_cluster_arns
from steward.model.events import Level
from steward.model.machine_types import MachineType
from steward.model.order import OrderAnswer
from steward.model.quota import ComputeQuota, QuotaStatus, Share
from steward.model.quota_order import CreateQuota, DeleteQuota, QuotaWish, SchedulerWish, UpdateQuota
from steward.model.text import printable
from steward.policy.orders.cluster import check_tags
from steward.policy.orders.order_draft import OrderDraft
from steward.policy.orders.refuse import conflict, invalid, limit, not_found

MOST_QUOTAS = 500
"""The most quotas of a cluster: each has two QOS, and Slurm tries a pending job with each QOS of the job."""
_RESOURCES, _ABSOLUTE = "ComputeQuotaResources", "AbsoluteBorrowLimits"


def create_quota(order: CreateQuota, draft: OrderDraft) -> OrderAnswer:
    """Create a quota.

    Raises Refusal if the name is taken, if the team has a quota already, or for a resource that the site does not have.
    """
    check_cluster(order.cluster, draft)
    check_tags(order.tags)
    return OrderAnswer(made=make(order.name, order.wish, draft, tags=order.tags).id)


def update_quota(order: UpdateQuota, draft: OrderDraft) -> OrderAnswer:
    """Change a quota; members that the call leaves out stay unchanged. The answer has the new version."""
    quota = quota_of(order.id, draft)
    check_version(quota, order.version, f"Quota {quota.name}")
    return OrderAnswer(made=quota.id, version=changed_quota(quota, order.wish, draft).version)


def delete_quota(order: DeleteQuota, draft: OrderDraft) -> OrderAnswer:
    """Delete a quota.

    The next turns remove its limits from Slurm. Running jobs go on; pending jobs no longer need the quota.
    """
    quota = quota_of(order.id, draft)
    mark_as_deleting(quota, draft)
    return OrderAnswer(made=quota.id)


def make(name: str, wish: QuotaWish, draft: OrderDraft, *, tags: Any = MappingProxyType({})) -> ComputeQuota:
    """Return a new quota, with defaults for members that are not given."""
    team = wish.team or ""
    _check_name(name, team, draft)
    for other in list(draft.quotas.values()):
        if other.status is QuotaStatus.DELETING and other.team == team:
            del draft.quotas[other.id]  # the new quota takes over the QOS, which are not deleted yet
    made = ComputeQuota(
        id=new_id("quota", name, draft.now),
        name=name,
        team=team,
        shares=(),
        tags=MappingProxyType(dict(tags)),
        created=draft.now,
        created_by=draft.who,
        modified=draft.now,
        modified_by=draft.who,
    )
    made = replace(made, **given_fields(wish))
    _check(made, draft)
    draft.quotas[made.id] = made
    draft.tell("quota.created", f"{draft.who} created quota {name} of team {team}", team=team)
    return made


def changed_quota(quota: ComputeQuota, wish: QuotaWish, draft: OrderDraft) -> ComputeQuota:
    """Return the next version of the quota."""
    if quota.status is QuotaStatus.DELETING:
        raise conflict(f"Quota {quota.name} is being deleted.")
    if wish.team not in (None, quota.team):
        raise invalid(f"Quota {quota.name} is of team {quota.team}: delete it and create one for another team.")
    changed = replace(
        quota,
        **given_fields(wish),
        version=quota.version + 1,
        status=QuotaStatus.UPDATING,
        failure="",
        modified=draft.now,
        modified_by=draft.who,
    )
    _check(changed, draft)
    draft.quotas[quota.id] = changed
    text = f"{draft.who} changed quota {quota.name} of team {quota.team} (version {changed.version})"
    draft.tell("quota.changed", text, team=quota.team)
    return changed


def mark_as_deleting(quota: ComputeQuota, draft: OrderDraft) -> None:
    """Mark a quota as being deleted, unless it is marked already."""
    if quota.status is QuotaStatus.DELETING:
        return
    gone = replace(quota, status=QuotaStatus.DELETING, failure="", modified=draft.now, modified_by=draft.who)
    draft.quotas[quota.id] = gone
    text = f"{draft.who} deleted quota {quota.name} of team {quota.team}: its limits leave Slurm, its jobs go on"
    draft.tell("quota.deleted", text, team=quota.team, level=Level.WARNING)


def quota_of(id: str, draft: OrderDraft) -> ComputeQuota:
    """Return the quota. Raises Refusal if there is none of this id."""
    if id not in draft.quotas:
        raise not_found(f"Compute quota {id} not found.")
    return draft.quotas[id]


def check_cluster(arn: str, draft: OrderDraft) -> None:
    """Check that the ARN names this head's Slurm cluster, with or without API groups. Raises Refusal."""
    if arn not in slurm_cluster_arns(draft.cluster, draft.rules):
        raise not_found(f"Cluster {arn} not found; this head's is {slurm_cluster_arns(draft.cluster, draft.rules)[0]}.")


def check_version(present: Any, target: int, what: str) -> None:
    if target != present.version:
        raise conflict(f"{what} is at version {present.version}, not {target}: read it again, then change it.")


def new_id(kind: str, name: str, created: float) -> str:
    """Return the last part of an ARN: 12 of a-z0-9."""
    return hashlib.sha256(f"{kind}:{name}:{created:.6f}".encode()).hexdigest()[:12]


def given_fields(wish: QuotaWish | SchedulerWish) -> dict[str, Any]:
    """Return the members that a wish gives, by field."""
    given = {each.name: getattr(wish, each.name) for each in fields(wish)}
    return {name: value for name, value in given.items() if value is not None}


def _check_name(name: str, team: str, draft: OrderDraft) -> None:
    if why := why_no_team(team):
        raise invalid(f"TeamName {printable(team, 40)!r} cannot be used: {why}.")
    for other in draft.quotas.values():
        if other.status is QuotaStatus.DELETING and other.team == team:
            continue
        if other.name == name:
            raise conflict(f"Quota {name} exists already (id {other.id}, of team {other.team}).")
        if other.team == team:
            raise conflict(f"Team {team} has quota {other.name} already (id {other.id}).")
    if len(draft.quotas) >= MOST_QUOTAS:
        raise limit(f"{len(draft.quotas)} compute quotas; a cluster has at most {MOST_QUOTAS}.")


def _check(quota: ComputeQuota, draft: OrderDraft) -> None:
    _check_shares(quota.shares, _RESOURCES, draft)
    _check_shares(quota.borrow_absolute, _ABSOLUTE, draft)
    if quota.borrow_absolute and not quota.strategy.borrows:
        raise invalid(f"{_ABSOLUTE}: with Strategy {quota.strategy.value} the team borrows nothing; leave them out.")


def _check_shares(shares: Sequence[Share], where: str, draft: OrderDraft) -> None:
    check_once(((share.machine_type, share.partition[0] if share.partition else "") for share in shares), where)
    for number, share in enumerate(shares, 1):
        _check_share(share, f"{where}.{number}.member ({share.machine_type})", draft)


def check_once(keys: Iterable[tuple[str, str]], where: str) -> None:
    """Check that no pair of machine type and MIG profile comes twice. Raises Refusal."""
    seen: set[tuple[str, str]] = set()
    for key in keys:
        if key in seen:
            raise invalid(f"{where} names {' with '.join(filter(None, key))} more than once.")
        seen.add(key)


def _check_share(share: Share, place: str, draft: OrderDraft) -> None:
    known = draft.rules.types.get(share.machine_type)
    if known is None:
        raise invalid(f"{place}: this machine type is not known; add it to [[machine_types]] in steward.toml.")
    single = (share.accelerators, share.vcpu, share.memory_gib, share.partition)
    if share.count is None and all(value is None for value in single):
        raise invalid(f"{place}: give Count, Accelerators, VCpu, MemoryInGiB or AcceleratorPartition.")
    if share.count is not None and any(value is not None for value in single):
        raise invalid(f"{place}: Count is whole machines; give it alone, or Accelerators, VCpu and MemoryInGiB.")
    _check_figures(share, known, place)


def _check_figures(share: Share, known: MachineType, place: str) -> None:
    """Check that the figures of the machine that this share needs are known. Raises Refusal."""
    if share.accelerators and not known.gpus:
        raise invalid(f"{place}: it has no accelerators; give VCpu or MemoryInGiB.")
    if share.partition is not None and share.partition[1] and not known.gpus:
        raise invalid(f"{place}: it has no accelerators that could have partitions.")
    if not known.cpus or not known.memory_mb:
        raise invalid(
            f"{place}: its CPUs and memory are not known; add it to [[machine_types]] with cpus and memory_mb."
        )
