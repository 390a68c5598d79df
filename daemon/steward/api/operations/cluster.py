"""CreateCluster, DescribeCluster, ListClusters, UpdateCluster, DeleteCluster."""

import json
from typing import Any

from steward.api.operations.group_shape import group_details
from steward.api.operations.group_wish import group_wish
from steward.api.operations.orders import carried
from steward.api.operations.paging import between, page
from steward.api.operations.sight import Json, Members, Sight, any_sight, sight_of
from steward.api.operations.unsupported import check_cluster
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.arn import arn_of
from steward.model.order import CreateCluster, DeleteCluster, UpdateCluster
from steward.policy.groups.count import current_counts

_KEPT = ("ClusterRole", "VpcConfig")
_AUTOMATIC = "Automatic"


class Clusters:
    """There is one at most."""

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
        answer = carried(self._source.commands.give, order)
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
        carried(self._source.commands.give, order)
        return {"ClusterArn": sight.arn}

    def delete(self, caller: Caller, members: Members) -> Json:
        """The cluster is shown as Deleting until its last node is gone, then no more."""
        order = DeleteCluster(who=caller.user, cluster=members["ClusterName"])
        return {"ClusterArn": self._arn(carried(self._source.commands.give, order).cluster_id)}

    def _arn(self, id: str) -> str:
        return arn_of(id, self._source.want.capacity)


def _extras(members: Members) -> str:
    """What is given back and nothing depends on."""
    kept: dict[str, Any] = {name: members[name] for name in _KEPT if name in members}
    return json.dumps(kept, sort_keys=True)


def _is_asked(sight: Sight, members: Members) -> bool:
    """No cluster here belongs to a training plan."""
    cluster = sight.cluster
    is_named = members.get("NameContains", "") in cluster.name
    in_time = between(cluster.created, members, "CreationTimeAfter", "CreationTimeBefore")
    return is_named and in_time and "TrainingPlanArn" not in members


def _summary(sight: Sight) -> Json:
    return {
        "ClusterArn": sight.arn,
        "ClusterName": sight.cluster.name,
        "CreationTime": sight.cluster.created,
        "ClusterStatus": sight.cluster.status.value,
    }
