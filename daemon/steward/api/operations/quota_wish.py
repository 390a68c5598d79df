"""Convert requests for a quota or a scheduler configuration to values, and such values to the API's shape."""

from steward.api.operations.sight import Json, Members
from steward.model.quota import (
    ComputeQuota,
    PreemptTeamTasks,
    PriorityClass,
    SchedulerConfig,
    Share,
    Strategy,
)
from steward.model.quota_order import QuotaWish, SchedulerWish

_MIG = "mig-"
"""The prefix of HyperPod's names for MIG profiles, which Slurm's types do not have."""
_BORROW_PERCENT = 50
"""HyperPod's default limit on borrowing, in percent."""
_ENABLED, _DISABLED = "Enabled", "Disabled"


def quota_wish(members: Members) -> QuotaWish:
    """Return the wish of CreateComputeQuota or UpdateComputeQuota."""
    config, target = members.get("ComputeQuotaConfig", {}), members.get("ComputeQuotaTarget", {})
    sharing = config.get("ResourceSharingConfig", {})
    return QuotaWish(
        team=target.get("TeamName"),
        weight=target.get("FairShareWeight"),
        shares=_shares(config.get("ComputeQuotaResources")),
        strategy=Strategy(sharing["Strategy"]) if sharing else None,
        borrow_percent=sharing.get("BorrowLimit", _BORROW_PERCENT) if sharing else None,
        borrow_absolute=_shares(sharing.get("AbsoluteBorrowLimits", [])) if sharing else None,
        preempt=PreemptTeamTasks(config["PreemptTeamTasks"]) if "PreemptTeamTasks" in config else None,
        enabled=_switch(members.get("ActivationState")),
        description=members.get("Description"),
    )


def scheduler_wish(members: Members) -> SchedulerWish:
    """Return the wish of CreateClusterSchedulerConfig or UpdateClusterSchedulerConfig."""
    config = members.get("SchedulerConfig", {})
    classes = config.get("PriorityClasses")
    return SchedulerWish(
        classes=None if classes is None else tuple(PriorityClass(name=c["Name"], weight=c["Weight"]) for c in classes),
        fair_share=_switch(config.get("FairShare")),
        idle_sharing=_switch(config.get("IdleResourceSharing")),
        description=members.get("Description"),
    )


def config_shape(quota: ComputeQuota) -> Json:
    """Return the ComputeQuotaConfig as it was requested; `steward quota show` adds the values that were filled in."""
    return {
        "ComputeQuotaResources": [_share_shape(share) for share in quota.shares],
        "ResourceSharingConfig": {
            "Strategy": quota.strategy.value,
            "BorrowLimit": quota.borrow_percent if quota.strategy.borrows else None,
            "AbsoluteBorrowLimits": [_share_shape(share) for share in quota.borrow_absolute] or None,
        },
        "PreemptTeamTasks": quota.preempt.value,
    }


def target_shape(quota: ComputeQuota) -> Json:
    return {"TeamName": quota.team, "FairShareWeight": quota.weight}


def scheduler_shape(config: SchedulerConfig) -> Json:
    return {
        "PriorityClasses": [{"Name": each.name, "Weight": each.weight} for each in config.classes],
        "FairShare": switch_word(on=config.fair_share),
        "IdleResourceSharing": switch_word(on=config.idle_sharing),
    }


def switch_word(*, on: bool) -> str:
    return _ENABLED if on else _DISABLED


def _switch(word: str | None) -> bool | None:
    return None if word is None else word == _ENABLED


def _shares(entries: list[Json] | None) -> tuple[Share, ...] | None:
    return None if entries is None else tuple(_share(entry) for entry in entries)


def _share(entry: Members) -> Share:
    part = entry.get("AcceleratorPartition")
    return Share(
        machine_type=entry["InstanceType"],
        count=entry.get("Count"),
        accelerators=entry.get("Accelerators"),
        vcpu=entry.get("VCpu"),
        memory_gib=entry.get("MemoryInGiB"),
        partition=(part["Type"].removeprefix(_MIG), part["Count"]) if part else None,
    )


def _share_shape(share: Share) -> Json:
    partition = share.partition
    return {
        "InstanceType": share.machine_type,
        "Count": share.count,
        "Accelerators": share.accelerators,
        "VCpu": share.vcpu,
        "MemoryInGiB": share.memory_gib,
        "AcceleratorPartition": {"Type": _MIG + partition[0], "Count": partition[1]} if partition else None,
    }
