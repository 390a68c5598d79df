"""Describe for people the changes that an order would make to the quotas, before the order is carried out."""

from collections.abc import Iterator, Mapping

from steward.model.desired import Desired
from steward.model.memory import Memory
from steward.model.quota import ComputeQuota, QuotaStatus, Resource, SchedulerConfig, Share
from steward.policy.quota.fill_in import Owned, owned
from steward.policy.quota.words import amounts_text


def changes(before: Memory, after: Memory, want: Desired) -> list[str]:
    """Return lines about each change: `+` created, `-` deleted, `~` changed, with values filled in; empty if none."""
    old = {quota.name: quota for quota in before.quotas.values()}
    new = {quota.name: quota for quota in after.quotas.values()}
    lines = list(_scheduler(before.scheduler, after.scheduler))
    for name in sorted(old.keys() | new.keys()):
        lines += _quota(old.get(name), new.get(name), want)
    return lines


def warnings(memory: Memory, want: Desired, capacity: Mapping[Resource, int]) -> list[str]:
    """Return warnings about quotas that are valid but seldom meant so, such as a sum above what the cluster has."""
    worth = [_worth(quota, want) for quota in memory.quotas.values() if _counts(quota)]
    found = [text for each in worth for text in each.warnings]
    for name in sorted({name for each in worth for name in each.counted}):
        total = sum(each.nominal.get(name, 0) for each in worth)
        if name in capacity and total > capacity[name]:
            have = amounts_text({name: capacity[name]})
            found.append(
                f"the quotas are {amounts_text({name: total})} in all, but the cluster has {have}: some jobs will wait"
            )
    for quota in memory.quotas.values():
        if _counts(quota) and quota.strategy.borrows and not quota.weight:
            found.append(f"{quota.team} has FairShareWeight 0: when teams compete for what is lent, it comes last")
    return found


def capacity_of(memory: Memory, want: Desired, has: Mapping[Resource, int]) -> dict[Resource, int]:
    """Return the capacity of every resource that a quota names; 0 if the cluster has none of it."""
    named = {name for quota in memory.quotas.values() for name in _worth(quota, want).nominal}
    return {name: has.get(name, 0) for name in named}


def _counts(quota: ComputeQuota) -> bool:
    return quota.enabled and quota.status is not QuotaStatus.DELETING


def _worth(quota: ComputeQuota, want: Desired) -> Owned:
    return owned(quota, want.capacity.types, count_filled=want.quota.count_filled)


def _scheduler(old: SchedulerConfig | None, new: SchedulerConfig | None) -> Iterator[str]:
    if new is None:
        yield from [f"- scheduler configuration {old.name}"] if old else []
    elif old is None:
        yield f"+ scheduler configuration {new.name}: {'; '.join(_words(new).values())}"
    elif (before := _words(old)) != (after := _words(new)):
        yield f"~ scheduler configuration {new.name}"
        yield from (f"    {before[key]} -> {after[key]}" for key in after if before[key] != after[key])


def _words(config: SchedulerConfig) -> dict[str, str]:
    classes = ", ".join(f"{each.name} {each.weight}" for each in config.classes) or "none"
    return {
        "classes": f"priority classes {classes}",
        "fair_share": "fair share" if config.fair_share else "first come, first served",
        "idle_sharing": f"what no team owns is {'' if config.idle_sharing else 'not '}lent",
        "description": f"description '{config.description}'",
    }


def _quota(old: ComputeQuota | None, new: ComputeQuota | None, want: Desired) -> Iterator[str]:
    if new is None or (old is not None and new.status is QuotaStatus.DELETING is not old.status):
        yield f"- quota {(new or old).name} of team {(new or old).team}"  # type: ignore[union-attr]
    elif old is None or (old.status is QuotaStatus.DELETING is not new.status):
        yield f"+ quota {new.name} of team {new.team}"
        yield from (f"    {text}" for text in _facts(new, want).values())
    else:
        before, after = _facts(old, want), _facts(new, want)
        if changed := [key for key in after if before[key] != after[key]]:
            yield f"~ quota {new.name} of team {new.team}"
            yield from (f"    {before[key]} -> {after[key]}" for key in changed)


def _facts(quota: ComputeQuota, want: Desired) -> dict[str, str]:
    """Return the parts of a quota, each in a few words."""
    worth = _worth(quota, want)
    asked = {name: amount for name, amount in worth.nominal.items() if name in worth.counted}
    rest = {name: amount for name, amount in worth.nominal.items() if name not in worth.counted}
    filled = f"; filled in, and not a limit: {amounts_text(rest)}" if rest else ""
    borrow = {name: amount for name, amount in worth.may_borrow.items() if name in worth.counted or amount}
    return {
        "shares": f"owns {amounts_text(asked)}{filled}",
        "asked": f"asked for {'; '.join(map(_share, quota.shares)) or 'nothing'}",
        "sharing": _sharing(quota, borrow),
        "weight": f"weight {quota.weight}",
        "preempt": f"preempts its own jobs: {quota.preempt.value}",
        "enabled": "enabled" if quota.enabled else "disabled",
        "description": f"description '{quota.description}'",
    }


def _sharing(quota: ComputeQuota, borrow: Mapping[Resource, int]) -> str:
    if not quota.strategy.borrows:
        return f"{quota.strategy.value}: borrows nothing"
    limits = "" if quota.borrow_absolute else f" ({quota.borrow_percent} %)"
    return f"{quota.strategy.value}: may borrow {amounts_text(borrow)}{limits}"


def _share(share: Share) -> str:
    given = {"Count": share.count, "Accelerators": share.accelerators, "VCpu": share.vcpu}
    words = [
        f"{name} {value:g}" for name, value in {**given, "MemoryInGiB": share.memory_gib}.items() if value is not None
    ]
    if share.partition:
        words.append(f"{share.partition[1]} x {share.partition[0]}")
    return f"{share.machine_type} {', '.join(words)}"
