"""The cluster of the API as the commands need it: read page by page, found by any of a node's names; and progress
while it works: a live table on a terminal, a line for each change in a pipe."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import click
from rich.live import Live
from rich.table import Table
from rich.text import Text

from steward.cli.show import console, line
from steward.client import Client, HeadError, Json, OperationError, Unreachable
from steward.model.node_names import unfold

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
    """The nodes that are meant: by node name (also a list, `n[1-3]`), instance id or logical id. Raises ClickException
    for an unknown one."""
    try:
        words = tuple(name for word in words for name in unfold(word))
    except ValueError as error:
        raise click.ClickException(f"not a list of nodes: {error}") from error
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


_TOO_OFTEN = "ThrottlingException"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressView:
    """One look: rows to show (the first cell names the row), whether it is over, and what went wrong for good."""

    rows: Sequence[Sequence[str]]
    is_over: bool
    failed: str = ""


def follow(look: Callable[[], ProgressView], columns: Sequence[str], *, every_s: float = 1.0) -> None:
    """Until it is over. Raises HeadError when it failed for good; Ctrl-C ends only the looking."""
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
        sight = _patiently(look)
        if sight is not None:
            shown = _show(sight, columns, view, shown)
            if sight.failed:
                raise HeadError(sight.failed)
            if sight.is_over:
                return
        time.sleep(every_s)


def _patiently(look: Callable[[], ProgressView]) -> ProgressView | None:
    """A head that restarts goes on where it was: so do we. So do we when others of this user ask too often."""
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
