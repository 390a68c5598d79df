"""Read the API's cluster for the commands, and show the progress of changes to it.

The cluster's nodes are read page by page and found by any of their names. Progress is a live table on a terminal, and a
line for each change in a pipe.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from rich.live import Live
from rich.table import Table
from rich.text import Text

from steward.cli.show import console, line
from steward.client import Client, HeadError, Json, OperationError, Unreachable
from steward.model.node_names import unfold

Seen = TypeVar("Seen")

_NOT_FOUND = "ResourceNotFound"
_NO_CLUSTER = (
    "`steward cluster apply FILE` makes one; nodes of [[groups]] are replaced with "
    "`scontrol update nodename=NODE state=fail reason=Action:Replace`"
)
_PAGE = 100
_REPEATED = ("InstanceGroupName", "ExecutionRole", "ThreadsPerCore")


def find_cluster(client: Client) -> Json | None:
    """Return DescribeCluster's answer for the only cluster, or None if there is none."""
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
    """Return DescribeCluster's answer for the only cluster. Raises ClickException if there is none."""
    cluster = find_cluster(client)
    if cluster is None:
        raise click.ClickException(f"there is no cluster of the API: {_NO_CLUSTER}")
    return cluster


def need_group(cluster: Json, name: str) -> Json:
    """Return the cluster's group of this name. Raises ClickException with the existing names if there is none."""
    groups: dict[str, Json] = {group["InstanceGroupName"]: group for group in cluster["InstanceGroups"]}
    if name not in groups:
        raise click.ClickException(f"{cluster['ClusterName']} has no group {name}; it has {', '.join(sorted(groups))}")
    return groups[name]


def all_nodes(client: Client, cluster: str) -> list[Json]:
    """Return all nodes from every page of ListClusterNodes, including those without an instance."""
    asked: dict[str, Any] = {"ClusterName": cluster, "IncludeNodeLogicalIds": True, "MaxResults": _PAGE}
    found: list[Json] = []
    while True:
        page = client.operate("ListClusterNodes", asked)
        found += page["ClusterNodeSummaries"]
        if "NextToken" not in page:
            return found
        asked["NextToken"] = page["NextToken"]


def select_nodes(nodes: list[Json], words: tuple[str, ...]) -> list[Json]:
    """Return the nodes named by `words`: node names (or a list such as `n[1-3]`), instance ids or logical ids.

    Raises ClickException for an unknown name.
    """
    try:
        words = tuple(name for word in words for name in unfold(word))
    except ValueError as error:
        raise click.ClickException(f"not a list of nodes: {error}") from error
    by_name = {name: node for node in nodes for name in names_of(node)}
    if unknown := [word for word in words if word not in by_name]:
        raise click.ClickException(f"not nodes of the cluster: {', '.join(unknown)} (`steward node list` shows them)")
    return list({by_name[word]["NodeLogicalId"]: by_name[word] for word in words}.values())


def names_of(node: Json) -> list[str]:
    """Return those of node name, instance id and logical id that the node has."""
    names = (node.get("PrivateDnsHostname"), node["InstanceId"], node.get("NodeLogicalId"))
    return [name for name in names if name]


def specification(group: Json, **changes: Any) -> Json:
    """Return a group's entry for UpdateCluster: the members to repeat unchanged, then `changes`."""
    repeated: Json = {name: group[name] for name in _REPEATED if name in group}
    if "InstanceRequirements" in group:
        repeated["InstanceRequirements"] = {"InstanceTypes": group["InstanceRequirements"]["DesiredInstanceTypes"]}
    else:
        repeated["InstanceType"] = group["InstanceType"]
    return {**repeated, "InstanceCount": group["TargetCount"], **changes}


_TOO_OFTEN = "ThrottlingException"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressView:
    """One reading of the progress: its rows, whether the change is over, and the final failure, if any.

    The first cell of a row names the row.
    """

    rows: Sequence[Sequence[str]]
    is_over: bool
    failed: str = ""


def follow(look: Callable[[], ProgressView], columns: Sequence[str], *, every_s: float = 1.0) -> None:
    """Show the progress until the change is over. Raises HeadError if it failed for good; Ctrl-C ends only the view."""
    out = console()
    live: AbstractContextManager[Live | None] = (
        Live(console=out, auto_refresh=False, transient=False) if out.is_terminal else nullcontext()
    )
    try:
        with live as view:
            _follow(look, columns, view, every_s)
    except KeyboardInterrupt:
        line("This command stops waiting; the work goes on. `steward group list` shows how far it is.", "yellow")
        raise click.exceptions.Exit(130) from None


def _follow(look: Callable[[], ProgressView], columns: Sequence[str], view: Live | None, every_s: float) -> None:
    shown: set[tuple[str, ...]] = set()
    while True:
        sight = look_or_wait(look)
        if sight is not None:
            shown = _show(sight, columns, view, shown)
            if sight.failed:
                raise HeadError(sight.failed)
            if sight.is_over:
                return
        time.sleep(every_s)


def look_or_wait(look: Callable[[], Seen]) -> Seen | None:
    """Return what is to be seen now; None while the head restarts or this user's requests are throttled."""
    try:
        return look()
    except Unreachable:
        return None
    except OperationError as error:
        if error.code == _TOO_OFTEN:
            return None
        raise


def _show(
    sight: ProgressView, columns: Sequence[str], view: Live | None, before: set[tuple[str, ...]]
) -> set[tuple[str, ...]]:
    rows = [tuple(row) for row in sight.rows]
    if view is not None:
        view.update(_grid(columns, rows), refresh=True)
    else:
        for row in rows:
            if row not in before:
                line("  ".join(cell or "-" for cell in row))
    return set(rows)


def _grid(columns: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column)
    for row in rows:
        grid.add_row(*(Text(cell or "-") for cell in row))
    return grid
