"""`steward cluster`: the whole cluster from a file, and its end."""

import json
from pathlib import Path
from typing import Any

import click

from steward.cli.capacity import find_cluster, need_cluster
from steward.cli.context import JSON, Context, one_line_errors, print_json, wants_json
from steward.cli.difference import Difference, difference
from steward.cli.group import COLUMNS, NO_WAIT, YES, follow_groups, row
from steward.cli.progress import Sight, follow
from steward.cli.show import line
from steward.client import Client, Json

_STYLES = {"+": "green", "-": "red", "~": "yellow"}


@click.group()
def cluster() -> None:
    """The cluster as a whole."""


@cluster.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--prune", is_flag=True, help="Delete groups that the file does not have.")
@click.option("--dry-run", is_flag=True, help="Show the difference and change nothing.")
@YES
@NO_WAIT
@JSON
@click.pass_obj
@one_line_errors
def apply(context: Context, file: Path, prune: bool, dry_run: bool, yes: bool, no_wait: bool, as_json: bool) -> None:
    """Make the cluster what FILE says. JSON, as for `aws sagemaker create-cluster --cli-input-json`."""
    client, wanted = context.client(), _read(file)
    found = _difference(client, wanted, prune=prune)
    quiet = wants_json(context, as_json)
    for text in () if quiet else found.lines or ("No change.",):
        line(text, _STYLES.get(text[:1], ""))
    if found.is_empty or dry_run:
        return
    if not yes:
        click.confirm("Apply?", abort=True)
    answer = _carry_out(client, found)
    if quiet:
        print_json(answer)
    elif not no_wait and (found.wanted or found.gone):
        follow_groups(client, found.wanted, found.gone)


@cluster.command()
@YES
@NO_WAIT
@JSON
@click.pass_obj
@one_line_errors
def delete(context: Context, yes: bool, no_wait: bool, as_json: bool) -> None:
    """Delete the cluster: every machine of every group ends."""
    client = context.client()
    name = need_cluster(client)["ClusterName"]
    if not yes:
        click.confirm(f"Delete cluster {name} with all of its machines; jobs on them end?", abort=True)
    answer = client.operate("DeleteCluster", {"ClusterName": name})
    if wants_json(context, as_json):
        print_json(answer)
    elif no_wait:
        line("Accepted; `steward group list` shows how far it is.")
    else:
        follow(lambda: _ending(find_cluster(client)), COLUMNS)
        line(f"Cluster {name} is gone.")


def _ending(found: Json | None) -> Sight:
    groups = found["InstanceGroups"] if found else []
    return Sight(rows=[row(group) for group in groups], is_over=found is None)


def _read(file: Path) -> Json:
    """Raises ClickException where it is not a cluster in CreateCluster's form; the head checks the rest."""
    try:
        document: Any = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{file}: {error}") from error
    found: Json = document if isinstance(document, dict) else {}
    groups = found.get("InstanceGroups", [])
    if not isinstance(groups, list) or not isinstance(found.get("ClusterName"), str):
        raise click.ClickException(f"{file}: an object with ClusterName and a list InstanceGroups is needed")
    for number, group in enumerate(groups, 1):
        needed = {"InstanceGroupName": str, "InstanceCount": int}
        if not isinstance(group, dict) or not all(isinstance(group.get(key), kind) for key, kind in needed.items()):
            raise click.ClickException(f"{file}: group {number} needs InstanceGroupName and InstanceCount")
    return found


def _difference(client: Client, wanted: Json, *, prune: bool) -> Difference:
    present = find_cluster(client)
    if present is None:
        return difference(wanted, None, {}, prune=prune)
    if present["ClusterName"] != wanted["ClusterName"]:
        raise click.ClickException(
            f"the file is about cluster {wanted['ClusterName']}, but this head looks after {present['ClusterName']}"
        )
    tags = client.operate("ListTags", {"ResourceArn": present["ClusterArn"]})["Tags"]
    return difference(wanted, present, {tag["Key"]: tag["Value"] for tag in tags}, prune=prune)


def _carry_out(client: Client, found: Difference) -> Json:
    answer: Json = {}
    if found.operation:
        answer = client.operate(found.operation, found.members)
    if found.tags:
        arn = need_cluster(client)["ClusterArn"]
        client.operate("AddTags", {"ResourceArn": arn, "Tags": list(found.tags)})
        answer = answer or {"ClusterArn": arn}
    return answer
