"""Create, change and delete the whole cluster (`steward cluster`).

`apply` finds its changes without the head: it compares a file in CreateCluster's form with DescribeCluster's answer.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from steward.cli.capacity import ProgressView, find_cluster, follow, need_cluster, specification
from steward.cli.context import Context, print_json, with_json
from steward.cli.group import COLUMNS, NO_WAIT, YES, follow_groups, row
from steward.cli.show import change_lines, line
from steward.client import Client, Json
from steward.model.text import cause

_COUNTS = {"InstanceCount": "TargetCount", "MinInstanceCount": "MinCount"}
_IMAGES = {"ImageId": "DesiredImageId", "ImageReleaseVersion": "DesiredImageReleaseVersion"}
_ONCE = frozenset({"InstanceGroupName", "InstanceRequirements"})
_OF_CLUSTER = ("NodeRecovery", "NodeProvisioningMode", "ClusterRole")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The difference between the file and the cluster, and the request that removes the difference.

    `lines` describe it for people. `members` is the request of `operation`, which is empty if there is nothing to
    request. `wanted` are the groups' sizes afterwards, `gone` the groups to delete, `tags` the tags to set.
    """

    lines: tuple[str, ...]
    operation: str = ""
    members: Json
    wanted: Mapping[str, int]
    gone: tuple[str, ...] = ()
    tags: tuple[Json, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.operation and not self.tags


def difference(file: Json, cluster: Json | None, tags: Mapping[str, str], *, prune: bool) -> Difference:
    """Return how `file` differs from `cluster` (DescribeCluster's answer; None: there is none) and its `tags`."""
    entries = {entry["InstanceGroupName"]: entry for entry in file.get("InstanceGroups", [])}
    wanted = {name: entry["InstanceCount"] for name, entry in entries.items()}
    if cluster is None:
        lines = (f"+ cluster {file['ClusterName']}", *(_new(entry) for entry in entries.values()))
        return Difference(lines=lines, operation="CreateCluster", members=file, wanted=wanted)
    return _update(file, entries, cluster, tags, prune=prune)


def _update(
    file: Json, entries: Mapping[str, Json], cluster: Json, tags: Mapping[str, str], *, prune: bool
) -> Difference:
    there = {group["InstanceGroupName"]: group for group in cluster["InstanceGroups"]}
    changed = {name: list(_changes(entry, there[name])) for name, entry in entries.items() if name in there}
    surplus = tuple(name for name in there if name not in entries and there[name]["Status"] != "Deleting")
    gone = surplus if prune else ()
    sent = [entry for name, entry in entries.items() if name not in there or changed[name]]
    own = {name: file[name] for name in _OF_CLUSTER if name in file and file[name] != cluster.get(name)}
    put = tuple(tag for tag in file.get("Tags", []) if tags.get(tag["Key"]) != tag["Value"])
    members = own | ({"InstanceGroups": sent} if sent else {}) | ({"InstanceGroupsToDelete": [*gone]} if gone else {})
    lines = [
        *(f"~ {name}: {cluster.get(name, 'not set')} -> {value}" for name, value in own.items()),
        *(_new(entry) for name, entry in entries.items() if name not in there),
        *(text for name, found in changed.items() if found for text in (f"~ group {name}", *found)),
        *(_surplus(there[name], prune=prune) for name in surplus),
        *(f"~ tag {tag['Key']}: {tags.get(tag['Key'], 'not set')} -> {tag['Value']}" for tag in put),
    ]
    return Difference(
        lines=tuple(lines),
        operation="UpdateCluster" if members else "",
        members={"ClusterName": cluster["ClusterName"], **members},
        wanted={entry["InstanceGroupName"]: entry["InstanceCount"] for entry in sent},
        gone=gone,
        tags=put,
    )


def _new(entry: Json) -> str:
    kinds = entry.get("InstanceRequirements", {}).get("InstanceTypes") or [entry.get("InstanceType", "?")]
    slurm = entry.get("SlurmConfig", {})
    partition = "".join(f", partition {name}" for name in slurm.get("PartitionNames", []))
    minimum = f", min {entry['MinInstanceCount']}" if "MinInstanceCount" in entry else ""
    about = slurm.get("NodeType", "Compute") + minimum + partition
    return f"+ group {entry['InstanceGroupName']}: {entry['InstanceCount']} x {','.join(kinds)} ({about})"


def _surplus(group: Json, *, prune: bool) -> str:
    about = f"group {group['InstanceGroupName']} ({group['TargetCount']} instances)"
    return f"- {about}" if prune else f"= {about}: not in the file, stays (--prune deletes it)"


def _changes(entry: Json, group: Json) -> Iterator[str]:
    """Yield a line for each member whose value in the file differs from the group's."""
    for name, value in entry.items():
        before = _present(group, name)
        if name not in _ONCE and before != value:
            yield f"    {name}: {_shown(before)} -> {_shown(value)}"
    types = entry.get("InstanceRequirements")
    if types is not None and types != specification(group).get("InstanceRequirements"):
        yield "    InstanceRequirements: other types"


def _present(group: Json, name: str) -> Any:
    """Return the group's present value of a member that the file names."""
    if name == "SlurmConfig":
        return {key: value for key, value in group.get(name, {}).items() if value}
    return group.get(_COUNTS.get(name) or _IMAGES.get(name) or name)


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


@click.group()
def cluster() -> None:
    """Manage the cluster as a whole."""


@cluster.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--prune", is_flag=True, help="Delete groups that the file does not have.")
@click.option("--dry-run", is_flag=True, help="Show the difference and change nothing.")
@YES
@NO_WAIT
@with_json
def apply(context: Context, file: Path, prune: bool, dry_run: bool, yes: bool, no_wait: bool) -> None:
    """Make the cluster what FILE says. JSON, as for `aws sagemaker create-cluster --cli-input-json`."""
    client, wanted = context.client(), _read(file)
    found = _difference(client, wanted, prune=prune)
    if not context.as_json:
        change_lines(found.lines)
    if found.is_empty or dry_run:
        return
    if not yes:
        click.confirm("Apply?", abort=True)
    answer = _carry_out(client, found)
    if context.as_json:
        print_json(answer)
    elif not no_wait and (found.wanted or found.gone):
        follow_groups(client, found.wanted, found.gone)


@cluster.command()
@YES
@NO_WAIT
@with_json
def delete(context: Context, yes: bool, no_wait: bool) -> None:
    """Delete the cluster: every machine of every group ends."""
    client = context.client()
    name = need_cluster(client)["ClusterName"]
    if not yes:
        click.confirm(f"Delete cluster {name} with all of its machines; jobs on them end?", abort=True)
    answer = client.operate("DeleteCluster", {"ClusterName": name})
    if context.as_json:
        print_json(answer)
    elif no_wait:
        line("Accepted; `steward group list` shows how far it is.")
    else:
        follow(lambda: _ending(find_cluster(client)), COLUMNS)
        line(f"Cluster {name} is gone.")


def _ending(found: Json | None) -> ProgressView:
    groups = found["InstanceGroups"] if found else []
    return ProgressView(rows=[row(group) for group in groups], is_over=found is None)


def _read(file: Path) -> Json:
    """Return the cluster in the file. Raises ClickException if the file is not in CreateCluster's form."""
    try:
        # The head checks the other members.
        document: Any = json.loads(file.read_text())
    except OSError as error:
        raise click.ClickException(f"{file}: {cause(error)}") from error
    except ValueError as error:
        raise click.ClickException(f"{file}: not JSON: {cause(error)}") from error
    found: Json = document if isinstance(document, dict) else {}
    groups = found.get("InstanceGroups", [])
    if not isinstance(groups, list) or not isinstance(found.get("ClusterName"), str):
        raise click.ClickException(f"{file}: an object with ClusterName and a list InstanceGroups is needed")
    for number, group in enumerate(groups, 1):
        found_here: Json = group if isinstance(group, dict) else {}
        # `true` is no number, although Python counts it as one
        if not isinstance(found_here.get("InstanceGroupName"), str) or type(found_here.get("InstanceCount")) is not int:
            raise click.ClickException(
                f"{file}: group {number} needs InstanceGroupName, a text, and InstanceCount, a whole number"
            )
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
