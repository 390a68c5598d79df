"""An instance group in the shape of DescribeCluster."""

import json

from steward.api.operations.sight import Json, Sight
from steward.model.group import BatchSize, Group, Rollout, RolloutState, Version
from steward.model.slot import SlotStep

REQUIREMENTS = "InstanceRequirements"
_KEPT = (
    "CapacityRequirements",
    "ExecutionRole",
    "InstanceStorageConfigs",
    "NetworkInterface",
    "OverrideVpcConfig",
)
_UNDER_WAY = (RolloutState.PENDING, RolloutState.IN_PROGRESS, RolloutState.ROLLBACK_IN_PROGRESS)
_CHECKSUM = "#sha256="


def group_details(group: Group, sight: Sight, current: int) -> Json:
    """Return the ClusterInstanceGroupDetails of a group."""
    kept = json.loads(group.extras)
    return {
        "InstanceGroupName": group.name,
        "Status": group.status.value,
        **_counts(group, sight, current),
        **_types(group, sight, is_list=REQUIREMENTS in kept),
        "LifeCycleConfig": lifecycle_of(group),
        "ThreadsPerCore": group.threads_per_core or None,
        "OnStartDeepHealthChecks": group.on_start_checks,
        "SlurmConfig": {
            "NodeType": group.role.value,
            "PartitionNames": [group.partition] if group.partition else None,
        },
        **_software(group),
        **{name: kept[name] for name in _KEPT if name in kept},
    }


def lifecycle_of(group: Group) -> Json | None:
    """Return the group's LifeCycleConfig as it was given; None if it has no source."""
    cycle = group.lifecycle
    if not cycle.source:
        return None
    return {
        "SourceS3Uri": cycle.source + (f"{_CHECKSUM}{cycle.sha256}" if cycle.sha256 else ""),
        "OnCreate": cycle.on_create or None,
        "OnInitComplete": cycle.on_init_complete or None,
    }


def split_checksum(uri: str) -> tuple[str, str]:
    """Return the folder, and the digest that its content must have; empty if none was given."""
    folder, _, digest = uri.partition(_CHECKSUM)
    return folder, digest


def _counts(group: Group, sight: Sight, current: int) -> Json:
    scaling = sum(
        operation.finished is None and group.name in operation.after for operation in sight.memory.operations.values()
    )
    return {
        "CurrentCount": current,
        "TargetCount": group.goal.target,
        "MinCount": group.goal.minimum if sight.cluster.continuous else None,
        "TargetStateCount": sum(
            slot.step is SlotStep.SERVING and slot.version == group.version for slot in sight.slots_of(group)
        ),
        "ActiveOperations": {"Scaling": scaling} if scaling else None,
    }


def _types(group: Group, sight: Sight, *, is_list: bool) -> Json:
    if not is_list:
        return {"InstanceType": next(iter(group.types), None)}
    having = [instance.type for slot in sight.slots_of(group) if (instance := sight.instance_of(slot))]
    return {
        "InstanceRequirements": {
            "CurrentInstanceTypes": sorted({type for type in having if type}),
            "DesiredInstanceTypes": group.types,
        },
        "InstanceTypeDetails": [{"InstanceType": type, "CurrentCount": having.count(type)} for type in group.types],
    }


def _software(group: Group) -> Json:
    rollout = group.rollout
    current, desired = _versions(group)
    return {
        "CurrentImageId": current.image or "default",
        "DesiredImageId": desired.image or "default",
        "CurrentImageReleaseVersion": current.release or None,
        "DesiredImageReleaseVersion": desired.release or None,
        "SoftwareUpdateStatus": rollout.state.value if rollout else None,
        "ActiveSoftwareUpdateConfig": _deployment(rollout) if rollout and rollout.state in _UNDER_WAY else None,
    }


def _versions(group: Group) -> tuple[Version, Version]:
    """Return the version that most instances have, and the one that they are to get; a rollback swaps them."""
    rollout = group.rollout
    if rollout is None or rollout.state not in _UNDER_WAY:
        return group.version, group.version
    if rollout.state is RolloutState.ROLLBACK_IN_PROGRESS:
        return rollout.wanted, rollout.previous
    return rollout.previous, rollout.wanted


def _deployment(rollout: Rollout) -> Json | None:
    """Return the DeploymentConfiguration; None if all nodes are updated at once."""
    if rollout.batch is None:
        return None
    return {
        "RollingUpdatePolicy": {
            "MaximumBatchSize": _batch(rollout.batch),
            "RollbackMaximumBatchSize": _batch(rollout.rollback_batch) if rollout.rollback_batch else None,
        },
        "WaitIntervalInSeconds": round(rollout.wait_s),
        "AutoRollbackConfiguration": [{"AlarmName": name} for name in rollout.alarms],
    }


def _batch(size: BatchSize) -> Json:
    if size.count:
        return {"Type": "INSTANCE_COUNT", "Value": size.count}
    return {"Type": "CAPACITY_PERCENTAGE", "Value": size.percent}
