"""CreateCluster, DescribeCluster, ListClusters, UpdateCluster, UpdateClusterSoftware, DeleteCluster, and its tags.

AddTags, ListTags and DeleteTags work on the cluster, on compute quotas and on the cluster scheduler config.
"""

import json
from collections.abc import Mapping
from typing import Any

from steward.api.json11.errors import invalid, not_found
from steward.api.operations.group_shape import REQUIREMENTS, group_details, split_checksum
from steward.api.operations.paging import is_in_time_filter, page
from steward.api.operations.sight import Json, Members, Sight, any_sight, carried, sight_of, snapshot_of
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.arn import arn_of, quota_arn, scheduler_arn
from steward.model.group import BatchSize, Role
from steward.model.order import ChangeTags, CreateCluster, DeleteCluster, GroupWish, UpdateCluster, UpdateSoftware
from steward.model.setup import Lifecycle
from steward.model.text import printable
from steward.policy.facts.serving import current_counts

_KEPT = ("ClusterRole", "VpcConfig")
_AUTOMATIC = "Automatic"
_REFUSED_OF_CLUSTER = {
    "RestrictedInstanceGroups": "there are no restricted groups",
    "RestrictedInstanceGroupsConfig": "there are no restricted groups",
    "AutoScaling": "it is for EKS; groups are scaled with UpdateCluster",
    "TieredStorageConfig": "it is for EKS",
}
_REFUSED_OF_GROUP = {
    "AutoPatchConfig": "use UpdateClusterSoftware",
    "KubernetesConfig": "it is for EKS",
    "ScheduledUpdateConfig": "call UpdateClusterSoftware when it is time",
    "TrainingPlanArn": "capacity is the provider's",
}
_SPOT = "spot instances are chosen in the provider's settings"
_ACCOUNTING = "accounting is set up in slurm.conf and slurmdbd.conf"
_STRATEGY = "with NodeProvisioningMode Continuous, Steward only adds to its own include file"
_READ_OF_GROUP = frozenset(
    {
        "ImageId",
        "ImageReleaseVersion",
        "InstanceCount",
        "InstanceGroupName",
        "InstanceType",
        "LifeCycleConfig",
        "MinInstanceCount",
        "OnStartDeepHealthChecks",
        "SlurmConfig",
        "ThreadsPerCore",
    }
)
"""The members that have a field in GroupWish; all others are stored as given."""


class Clusters:
    """The operations on the cluster; a head has at most one."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def create(self, caller: Caller, members: Members) -> Json:
        continuous = "NodeProvisioningMode" in members
        check_cluster(members, continuous=continuous)
        order = CreateCluster(
            who=caller.user,
            name=members["ClusterName"],
            groups=tuple(group_wish(entry) for entry in members.get("InstanceGroups", ())),
            continuous=continuous,
            recovery=members.get("NodeRecovery", _AUTOMATIC) == _AUTOMATIC,
            tags={tag["Key"]: tag["Value"] for tag in members.get("Tags", ())},
            extras=_extras(members),
        )
        answer = carried(self._source, order)
        return {"ClusterArn": self._arn(answer.cluster_id)}

    def describe(self, _caller: Caller, members: Members) -> Json:
        sight = sight_of(self._source, members["ClusterName"])
        cluster, kept = sight.cluster, json.loads(sight.cluster.extras)
        groups = sorted(sight.memory.groups.values(), key=lambda group: (group.created, group.name))
        current = current_counts(sight.memory, sight.seen)
        return {
            "ClusterArn": sight.arn,
            "ClusterName": cluster.name,
            "ClusterStatus": cluster.status.value,
            "CreationTime": cluster.created,
            "FailureMessage": cluster.message or None,
            "InstanceGroups": [group_details(group, sight, current.get(group.name, 0)) for group in groups],
            "Orchestrator": {"Slurm": {}},
            "NodeRecovery": _AUTOMATIC if cluster.recovery else "None",
            "NodeProvisioningMode": "Continuous" if cluster.continuous else None,
            **{name: kept[name] for name in _KEPT if name in kept},
        }

    def list_clusters(self, _caller: Caller, members: Members) -> Json:
        sight = any_sight(self._source)
        found = [sight] if sight is not None and _is_asked(sight, members) else []
        keyed = [((each.cluster.created, each.cluster.name), _summary(each)) for each in found]
        shown, token = page(keyed, members, scope="clusters")
        return {"ClusterSummaries": shown, "NextToken": token}

    def update(self, caller: Caller, members: Members) -> Json:
        sight = sight_of(self._source, members["ClusterName"])
        mode = True if "NodeProvisioningMode" in members else None
        check_cluster(members, continuous=mode or sight.cluster.continuous)
        recovery = members.get("NodeRecovery")
        order = UpdateCluster(
            who=caller.user,
            cluster=members["ClusterName"],
            groups=tuple(group_wish(entry) for entry in members.get("InstanceGroups", ())),
            delete=tuple(members.get("InstanceGroupsToDelete", ())),
            recovery=None if recovery is None else recovery == _AUTOMATIC,
            continuous=mode,
            extras=_extras(members),
        )
        carried(self._source, order)
        return {"ClusterArn": sight.arn}

    def delete(self, caller: Caller, members: Members) -> Json:
        """Delete the cluster; it is shown as Deleting until its last node is gone, and then not at all."""
        order = DeleteCluster(who=caller.user, cluster=members["ClusterName"])
        return {"ClusterArn": self._arn(carried(self._source, order).cluster_id)}

    def _arn(self, id: str) -> str:
        return arn_of(id, self._source.want.capacity)


def _extras(members: Members) -> str:
    """Return the members that are only stored and shown again, as JSON."""
    kept: dict[str, Any] = {name: members[name] for name in _KEPT if name in members}
    return json.dumps(kept, sort_keys=True)


def _is_asked(sight: Sight, members: Members) -> bool:
    """Return whether a list with these filters contains the cluster."""
    # A cluster here never belongs to a training plan.
    cluster = sight.cluster
    is_named = members.get("NameContains", "") in cluster.name
    in_time = is_in_time_filter(cluster.created, members, "CreationTimeAfter", "CreationTimeBefore")
    return is_named and in_time and "TrainingPlanArn" not in members


def _summary(sight: Sight) -> Json:
    return {
        "ClusterArn": sight.arn,
        "ClusterName": sight.cluster.name,
        "CreationTime": sight.cluster.created,
        "ClusterStatus": sight.cluster.status.value,
    }


def check_cluster(members: Members, *, continuous: bool) -> None:
    """Raise ApiError for a member of CreateCluster or UpdateCluster, or of their groups, that is not supported."""
    _refuse(members, _REFUSED_OF_CLUSTER, "")
    _check_orchestrator(members.get("Orchestrator"), continuous=continuous)
    for number, group in enumerate(members.get("InstanceGroups", ()), 1):
        place = f"InstanceGroups.{number}.member."
        _refuse(group, _REFUSED_OF_GROUP, place)
        if "Spot" in group.get("CapacityRequirements", {}):
            raise _unsupported(f"{place}CapacityRequirements.Spot", _SPOT)


def _refuse(members: Members, refused: dict[str, str], place: str) -> None:
    for name, why in refused.items():
        if name in members:
            raise _unsupported(place + name, why)


def _check_orchestrator(orchestrator: Members | None, *, continuous: bool) -> None:
    """Raise ApiError if the orchestrator is not a Slurm cluster that Steward supports; absent means Slurm."""
    if orchestrator is None:
        return
    if "Eks" in orchestrator:
        raise _unsupported("Orchestrator.Eks", "this is a Slurm cluster")
    if "Slurm" not in orchestrator:
        raise invalid("Orchestrator: give Slurm, or leave it out.")
    slurm = orchestrator["Slurm"]
    if "AccountingDatabase" in slurm:
        raise _unsupported("Orchestrator.Slurm.AccountingDatabase", _ACCOUNTING)
    if "SlurmConfigStrategy" in slurm and continuous:
        raise _unsupported("Orchestrator.Slurm.SlurmConfigStrategy", _STRATEGY)


def _unsupported(member: str, why: str) -> Exception:
    return invalid(f"{member} is not supported here: {why}.")


def group_wish(entry: Members) -> GroupWish:
    """Return the wish for an instance group. Raises ApiError for errors that show without the cluster's state."""
    slurm = entry.get("SlurmConfig", {})
    checks = entry.get("OnStartDeepHealthChecks")
    return GroupWish(
        name=entry["InstanceGroupName"],
        count=entry["InstanceCount"],
        minimum=entry.get("MinInstanceCount"),
        types=_types(entry),
        role=Role(slurm["NodeType"]) if slurm else None,
        partition=_partition(slurm),
        lifecycle=_lifecycle(entry),
        on_start_checks=None if checks is None else tuple(checks),
        threads_per_core=entry.get("ThreadsPerCore"),
        image=_image(entry),
        release=entry.get("ImageReleaseVersion"),
        extras=json.dumps({name: value for name, value in entry.items() if name not in _READ_OF_GROUP}, sort_keys=True),
    )


def _types(entry: Members) -> tuple[str, ...]:
    if ("InstanceType" in entry) == (REQUIREMENTS in entry):
        raise invalid(
            f"Instance group {entry['InstanceGroupName']}: give exactly one of InstanceType and InstanceRequirements."
        )
    if "InstanceType" in entry:
        return (entry["InstanceType"],)
    return tuple(dict.fromkeys(entry[REQUIREMENTS]["InstanceTypes"]))


def _partition(slurm: Members) -> str | None:
    """Return the partition's name, empty for an empty list; None if PartitionNames is absent."""
    names = slurm.get("PartitionNames")
    return None if names is None else "".join(names)


def _image(entry: Members) -> str | None:
    """Return the image; None for `default`: the provider's own image, or in an update the present one."""
    image = entry.get("ImageId")
    return None if image == "default" else image


def _lifecycle(entry: Members) -> Lifecycle | None:
    config = entry.get("LifeCycleConfig")
    if config is None:
        return None
    source, digest = split_checksum(config.get("SourceS3Uri", ""))
    on_create, on_init = config.get("OnCreate", ""), config.get("OnInitComplete", "")
    _check_scripts(entry["InstanceGroupName"], source, digest, (on_create, on_init))
    return Lifecycle(source=source, on_create=on_create, on_init_complete=on_init, sha256=digest)


def _check_scripts(group: str, source: str, digest: str, names: tuple[str, str]) -> None:
    if any(names) and not source:
        raise invalid(f"Instance group {group}: LifeCycleConfig has scripts but no SourceS3Uri.")
    for name in names:
        parts = name.split("/")
        if name.startswith("/") or ".." in parts or not name.isprintable():
            raise invalid(
                f"Instance group {group}: '{printable(name, 100)}' is not the name of a file under SourceS3Uri."
            )
    if digest and (len(digest) != 64 or not set(digest) <= set("0123456789abcdef")):
        raise invalid(f"Instance group {group}: after #sha256= in SourceS3Uri come 64 hex digits.")


# UpdateClusterSoftware.

_PERCENT = "CAPACITY_PERCENTAGE"


class Software:
    def __init__(self, source: Source) -> None:
        self._source = source

    def update(self, caller: Caller, members: Members) -> Json:
        """Update the software of the cluster; without DeploymentConfig, of all nodes at once."""
        config = members.get("DeploymentConfig", {})
        rolling = config.get("RollingUpdatePolicy", {})
        image = members.get("ImageId", "")
        order = UpdateSoftware(
            who=caller.user,
            cluster=members["ClusterName"],
            groups=tuple(
                (entry["InstanceGroupName"], entry.get("ImageReleaseVersion", ""))
                for entry in members.get("InstanceGroups", ())
            ),
            image="" if image == "default" else image,
            batch=_batch(rolling, "MaximumBatchSize"),
            rollback_batch=_batch(rolling, "RollbackMaximumBatchSize"),
            wait_s=float(config.get("WaitIntervalInSeconds", 0)),
            alarms=tuple(alarm["AlarmName"] for alarm in config.get("AutoRollbackConfiguration", ())),
        )
        answer = carried(self._source, order)
        return {"ClusterArn": arn_of(answer.cluster_id, self._source.want.capacity)}


def _batch(rolling: Members, name: str) -> BatchSize | None:
    size = rolling.get(name)
    if size is None:
        return None
    if size["Type"] != _PERCENT:
        return BatchSize(count=size["Value"])
    if size["Value"] > 100:
        raise invalid(f"{name}: {size['Value']} percent is more than the whole group.")
    return BatchSize(percent=size["Value"])


class Tags:
    def __init__(self, source: Source) -> None:
        self._source = source

    def add(self, caller: Caller, members: Members) -> Json:
        """Add tags and return all tags of the resource."""
        put = {tag["Key"]: tag["Value"] for tag in members["Tags"]}
        answer = carried(self._source, ChangeTags(who=caller.user, arn=self._arn(members), put=put))
        return {"Tags": _shape(answer.tags)}

    def list_tags(self, _caller: Caller, members: Members) -> Json:
        tags = _shape(self._tags(members))
        shown, token = page((((tag["Key"],), tag) for tag in tags), members, scope="tags")
        return {"Tags": shown, "NextToken": token}

    def delete(self, caller: Caller, members: Members) -> Json:
        drop = tuple(members["TagKeys"])
        carried(self._source, ChangeTags(who=caller.user, arn=self._arn(members), drop=drop))
        return {}

    def _arn(self, members: Members) -> str:
        """Return the ARN of the request. Raises ApiError (ResourceNotFound) if there is no such resource."""
        self._tags(members)
        return str(members["ResourceArn"])

    def _tags(self, members: Members) -> Mapping[str, str]:
        memory, rules = snapshot_of(self._source).memory, self._source.want.capacity
        of = {quota_arn(quota.id, rules): quota.tags for quota in memory.quotas.values()}
        if memory.scheduler is not None:
            of[scheduler_arn(memory.scheduler.id, rules)] = memory.scheduler.tags
        if (sight := any_sight(self._source)) is not None:
            of[sight.arn] = sight.cluster.tags
        if members["ResourceArn"] not in of:
            raise not_found(f"Resource {members['ResourceArn']} not found.")
        return of[members["ResourceArn"]]


def _shape(tags: Mapping[str, str]) -> list[Json]:
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]
