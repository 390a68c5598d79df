"""What `steward cluster apply` would change: a file in CreateCluster's form against the cluster as it is. Pure."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from steward.cli.capacity import specification

Json = dict[str, Any]

_COUNTS = {"InstanceCount": "TargetCount", "MinInstanceCount": "MinCount"}
_IMAGES = {"ImageId": "DesiredImageId", "ImageReleaseVersion": "DesiredImageReleaseVersion"}
_ONCE = frozenset({"InstanceGroupName", "InstanceRequirements"})
_OF_CLUSTER = ("NodeRecovery", "NodeProvisioningMode", "ClusterRole")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`lines` are for people; `members` is the request of `operation` (none: nothing is to be done). `wanted` are the
    sizes of the groups afterwards, `gone` the groups that are deleted, `tags` those to be set."""

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
    """`cluster` is DescribeCluster's answer, `tags` its tags."""
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
    """Members that the file gives and that are otherwise now."""
    for name, value in entry.items():
        before = _present(group, name)
        if name not in _ONCE and before != value:
            yield f"    {name}: {_shown(before)} -> {_shown(value)}"
    types = entry.get("InstanceRequirements")
    if types is not None and types != specification(group).get("InstanceRequirements"):
        yield "    InstanceRequirements: other types"


def _present(group: Json, name: str) -> Any:
    """A member as the group has it now."""
    if name == "SlurmConfig":
        return {key: value for key, value in group.get(name, {}).items() if value}
    return group.get(_COUNTS.get(name) or _IMAGES.get(name) or name)


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
