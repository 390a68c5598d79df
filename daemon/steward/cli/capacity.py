"""The cluster of the API as the commands need it: read page by page, found by any of a node's names."""

from typing import Any

import click

from steward.client import Client, Json, OperationError

_NOT_FOUND = "ResourceNotFound"
_NO_CLUSTER = (
    "`steward cluster apply FILE` makes one; nodes of [[groups]] are replaced with "
    "`scontrol update nodename=NODE state=fail reason=Action:Replace`"
)
_PAGE = 100
_REPEATED = ("InstanceGroupName", "ExecutionRole", "ThreadsPerCore")


def find_cluster(client: Client) -> Json | None:
    """DescribeCluster of the one cluster; None: there is none (any more)."""
    summaries = client.operate("ListClusters", {})["ClusterSummaries"]
    if not summaries:
        return None
    try:
        return client.operate("DescribeCluster", {"ClusterName": summaries[0]["ClusterName"]})
    except OperationError as error:
        if error.code == _NOT_FOUND:
            return None
        raise


def need_cluster(client: Client) -> Json:
    """Raises ClickException when there is no cluster."""
    cluster = find_cluster(client)
    if cluster is None:
        raise click.ClickException(f"there is no cluster of the API: {_NO_CLUSTER}")
    return cluster


def need_group(cluster: Json, name: str) -> Json:
    """Raises ClickException with the names that there are."""
    groups: dict[str, Json] = {group["InstanceGroupName"]: group for group in cluster["InstanceGroups"]}
    if name not in groups:
        raise click.ClickException(f"{cluster['ClusterName']} has no group {name}; it has {', '.join(sorted(groups))}")
    return groups[name]


def all_nodes(client: Client, cluster: str) -> list[Json]:
    """Every page of ListClusterNodes, nodes without an instance included."""
    asked: dict[str, Any] = {"ClusterName": cluster, "IncludeNodeLogicalIds": True, "MaxResults": _PAGE}
    found: list[Json] = []
    while True:
        page = client.operate("ListClusterNodes", asked)
        found += page["ClusterNodeSummaries"]
        if "NextToken" not in page:
            return found
        asked["NextToken"] = page["NextToken"]


def named(nodes: list[Json], words: tuple[str, ...]) -> list[Json]:
    """The nodes that are meant: by node name, instance id or logical id. Raises ClickException for an unknown one."""
    by_name = {name: node for node in nodes for name in names_of(node)}
    if unknown := [word for word in words if word not in by_name]:
        raise click.ClickException(f"not nodes of the cluster: {', '.join(unknown)} (`steward node list` shows them)")
    return list({by_name[word]["NodeLogicalId"]: by_name[word] for word in words}.values())


def names_of(node: Json) -> list[str]:
    """Node name, instance id, logical id."""
    names = (node.get("PrivateDnsHostname"), node["InstanceId"], node.get("NodeLogicalId"))
    return [name for name in names if name]


def specification(group: Json, **changes: Any) -> Json:
    """A group's entry for UpdateCluster: what must be repeated unchanged, and `changes`."""
    repeated: Json = {name: group[name] for name in _REPEATED if name in group}
    if "InstanceRequirements" in group:
        repeated["InstanceRequirements"] = {"InstanceTypes": group["InstanceRequirements"]["DesiredInstanceTypes"]}
    else:
        repeated["InstanceType"] = group["InstanceType"]
    return {**repeated, "InstanceCount": group["TargetCount"], **changes}
