"""`steward node`: single nodes of the cluster."""

from collections.abc import Callable, Mapping

import click

from steward.cli.capacity import ProgressView, all_nodes, find_cluster, follow, need_cluster, select_nodes
from steward.cli.context import Context, print_json, with_json
from steward.cli.group import NO_WAIT, YES
from steward.cli.show import line, listed, when
from steward.client import Client, HeadError, Json
from steward.model.node_names import fold

_COLUMNS = ("NODE", "GROUP", "STATUS", "INSTANCE", "MESSAGE")
_NODES = click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
_IsDone = Callable[[Json | None], bool]


def _on_nodes(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments and options of all commands that act on nodes."""
    return _NODES(YES(NO_WAIT(with_json(command))))


@click.group()
def node() -> None:
    """Reboot, replace or delete machines of instance groups.

    NODES are node names (also n[1-3]), instance ids or logical ids. `steward nodes` shows the health of every node.
    """


@node.command("list")
@with_json
def list_nodes(context: Context) -> None:
    """List every node of the groups, also those without a machine yet."""
    client = context.client()
    cluster = find_cluster(client)
    found = all_nodes(client, cluster["ClusterName"]) if cluster else []
    rows = ((*_row(one), one.get("NodeLogicalId"), when(one["LaunchTime"])) for one in found)
    columns = (*_COLUMNS, "LOGICAL ID", "LAUNCHED")
    listed(context, found, columns, rows, empty="No node: `steward group list` shows the groups.")


@node.command()
@_on_nodes
def replace(context: Context, nodes: tuple[str, ...], yes: bool, no_wait: bool) -> None:
    """Give nodes another machine. Jobs on them end or come back elsewhere."""
    _touch(context, "BatchReplaceClusterNodes", nodes, _is_back, yes=yes, no_wait=no_wait)


@node.command()
@_on_nodes
def reboot(context: Context, nodes: tuple[str, ...], yes: bool, no_wait: bool) -> None:
    """Reboot nodes; jobs on them end or come back elsewhere."""
    _touch(context, "BatchRebootClusterNodes", nodes, _is_back, yes=yes, no_wait=no_wait)


@node.command()
@_on_nodes
def delete(context: Context, nodes: tuple[str, ...], yes: bool, no_wait: bool) -> None:
    """End the machines of nodes; their groups get smaller by that many."""
    _touch(context, "BatchDeleteClusterNodes", nodes, _is_gone, yes=yes, no_wait=no_wait)


def _is_gone(found: Json | None) -> bool:
    return found is None


def _is_back(found: Json | None) -> bool:
    """Return whether the node is in service without a message, or was deleted in the meantime."""
    return found is None or (
        found["InstanceStatus"]["Status"] == "Running" and "Message" not in found["InstanceStatus"]
    )


def _touch(
    context: Context,
    operation: str,
    words: tuple[str, ...],
    is_done: _IsDone,
    *,
    yes: bool,
    no_wait: bool,
) -> None:
    client = context.client()
    cluster = need_cluster(client)["ClusterName"]
    chosen = select_nodes(all_nodes(client, cluster), words)
    if not yes:
        names = fold(str(one.get("PrivateDnsHostname")) for one in chosen)
        click.confirm(f"{operation} of {names}?", abort=True)
    answer = client.operate(operation, {"ClusterName": cluster, **_ids(chosen)})
    accepted = [one for one in chosen if one["InstanceId"] in answer.get("Successful", [])]
    accepted += [one for one in chosen if one["NodeLogicalId"] in answer.get("SuccessfulNodeLogicalIds", [])]
    if context.as_json:
        print_json(answer)
    elif no_wait or not accepted:
        line(f"Accepted for {len(accepted)} of {len(chosen)} nodes.")
    else:
        _follow(client, cluster, accepted, is_done)
    _raise_failures(answer)


def _ids(chosen: list[Json]) -> Json:
    """Return the request's members that name the nodes: by instance id; by logical id if there is no instance yet."""
    ids = [one["InstanceId"] for one in chosen if one["InstanceId"]]
    logical = [one["NodeLogicalId"] for one in chosen if not one["InstanceId"]]
    return ({"NodeIds": ids} if ids else {}) | ({"NodeLogicalIds": logical} if logical else {})


def _follow(client: Client, cluster: str, accepted: list[Json], is_done: _IsDone) -> None:
    wanted = [one["NodeLogicalId"] for one in accepted]

    def look() -> ProgressView:
        now: Mapping[str, Json] = {one["NodeLogicalId"]: one for one in all_nodes(client, cluster)}
        rows = [_row(now[logical]) for logical in wanted if logical in now]
        return ProgressView(rows=rows, is_over=all(is_done(now.get(logical)) for logical in wanted))

    follow(look, _COLUMNS)


def _raise_failures(answer: Json) -> None:
    """Raise HeadError if the answer refuses some nodes."""
    failed = [*answer.get("Failed", []), *answer.get("FailedNodeLogicalIds", [])]
    lines = [
        f"{one.get('NodeId') or one.get('NodeLogicalId')}: {one.get('Code') or one.get('ErrorCode')}: {one['Message']}"
        for one in failed
    ]
    if lines:
        raise HeadError("; ".join(lines))


def _row(found: Json) -> tuple[str, ...]:
    status = found["InstanceStatus"]
    return (
        found.get("PrivateDnsHostname", ""),
        found["InstanceGroupName"],
        status["Status"],
        found["InstanceId"],
        status.get("Message", ""),
    )
