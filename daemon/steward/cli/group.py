"""`steward group`: instance groups of the cluster."""

from collections.abc import Collection, Mapping

import click

from steward.cli.capacity import ProgressView, find_cluster, follow, need_cluster, need_group, specification
from steward.cli.context import Context, IntegerInRange, print_json, with_json
from steward.cli.show import line, table
from steward.client import Client, Json

COLUMNS = ("GROUP", "ROLE", "STATUS", "CURRENT", "TARGET", "MIN", "TYPE", "PARTITION")
NO_WAIT = click.option("--no-wait", is_flag=True, help="Return as soon as it is accepted.")
YES = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.group()
def group() -> None:
    """Instance groups: how many machines of which kind."""


@group.command("list")
@with_json
def list_groups(context: Context) -> None:
    """List every group: wanted size, nodes in service, state."""
    cluster = find_cluster(context.client())
    groups = cluster["InstanceGroups"] if cluster else []
    if context.as_json:
        print_json(groups)
        return
    if cluster:
        why = f": {cluster['FailureMessage']}" if "FailureMessage" in cluster else ""
        line(f"{cluster['ClusterName']}: {cluster['ClusterStatus']}{why}", "bold")
    table(COLUMNS, [row(one) for one in groups], empty="No cluster: `steward cluster apply FILE` makes one.")


@group.command()
@click.argument("name")
@click.argument("count", type=IntegerInRange(0))
@click.option(
    "--min",
    "minimum",
    type=IntegerInRange(0),
    default=None,
    help="Keep the partition closed until this many are in service.",
)
@NO_WAIT
@with_json
def scale(context: Context, name: str, count: int, minimum: int | None, no_wait: bool) -> None:
    """Change the size of a group. A smaller group gives up the nodes whose loss does the least harm."""
    client = context.client()
    cluster = need_cluster(client)
    changes = {"InstanceCount": count} | ({} if minimum is None else {"MinInstanceCount": minimum})
    entry = specification(need_group(cluster, name), **changes)
    answer = client.operate("UpdateCluster", {"ClusterName": cluster["ClusterName"], "InstanceGroups": [entry]})
    finish(context, answer, {name: count}, no_wait=no_wait)


@group.command()
@click.argument("name")
@YES
@NO_WAIT
@with_json
def delete(context: Context, name: str, yes: bool, no_wait: bool) -> None:
    """Delete a group and end all of its machines."""
    client = context.client()
    cluster = need_cluster(client)
    count = need_group(cluster, name)["CurrentCount"]
    if not yes:
        click.confirm(f"Delete group {name} with {count} nodes in service; their jobs end?", abort=True)
    members = {"ClusterName": cluster["ClusterName"], "InstanceGroupsToDelete": [name]}
    finish(context, client.operate("UpdateCluster", members), {}, [name], no_wait=no_wait)


def finish(
    context: Context,
    answer: Json,
    wanted: Mapping[str, int],
    gone: Collection[str] = (),
    *,
    no_wait: bool,
) -> None:
    """Print the answer to an accepted change, then follow the groups until they are as wanted."""
    if context.as_json:
        print_json(answer)
    elif no_wait:
        line("Accepted; `steward group list` shows how far it is.")
    else:
        follow_groups(context.client(), wanted, gone)


def follow_groups(client: Client, wanted: Mapping[str, int], gone: Collection[str] = ()) -> None:
    """Show the groups until those of `wanted` have their size and those of `gone` are deleted.

    Raises HeadError if they cannot get there.
    """
    follow(lambda: _look(find_cluster(client), wanted, gone), COLUMNS)


def _look(cluster: Json | None, wanted: Mapping[str, int], gone: Collection[str]) -> ProgressView:
    if cluster is None:
        return ProgressView(rows=(), is_over=True, failed="the cluster is gone")
    groups = {one["InstanceGroupName"]: one for one in cluster["InstanceGroups"]}
    rows = [row(one) for name, one in groups.items() if name in wanted or name in gone]
    is_over = all(name in groups and _is_settled(groups[name]) for name in wanted) and not groups.keys() & set(gone)
    return ProgressView(rows=rows, is_over=is_over, failed=_failure(cluster, groups, wanted))


def _is_settled(group: Json) -> bool:
    return bool(group["Status"] == "InService" and group["CurrentCount"] == group["TargetCount"])


def _failure(cluster: Json, groups: Mapping[str, Json], wanted: Mapping[str, int]) -> str:
    if cluster["ClusterStatus"] == "Failed":
        return f"the cluster failed: {cluster.get('FailureMessage', 'see `steward events`')}"
    for name, count in wanted.items():
        if name not in groups:
            return f"group {name} is gone"
        if groups[name]["Status"] == "Failed":
            return f"group {name} failed; `steward explain group {name}` says why"
        if (target := groups[name]["TargetCount"]) != count:
            return (
                f"group {name} is now to have {target}, not {count}: rolled back, or changed by another person or tool"
            )
    return ""


def row(group: Json) -> tuple[str, ...]:
    """Return one line of the table of groups."""
    slurm = group.get("SlurmConfig", {})
    kinds = group.get("InstanceRequirements", {}).get("DesiredInstanceTypes") or [group.get("InstanceType", "")]
    return (
        group["InstanceGroupName"],
        slurm.get("NodeType", ""),
        group["Status"],
        str(group["CurrentCount"]),
        str(group["TargetCount"]),
        str(group.get("MinCount", "")),
        ",".join(kinds),
        ",".join(slurm.get("PartitionNames", [])),
    )
