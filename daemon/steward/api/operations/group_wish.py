"""One entry of InstanceGroups, as our own value."""

import json

from steward.api.json11.errors import invalid
from steward.api.operations.group_shape import REQUIREMENTS, split_checksum
from steward.api.operations.sight import Members
from steward.model.group import Role
from steward.model.order import GroupWish
from steward.model.setup import Lifecycle

_READ = frozenset(
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
"""What has a place in GroupWish; everything else is kept as it was given."""


def group_wish(entry: Members) -> GroupWish:
    """Raises ApiError for what can be seen to be wrong without looking at the cluster."""
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
        extras=json.dumps({name: value for name, value in entry.items() if name not in _READ}, sort_keys=True),
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
    """Not said is None; an empty list is none."""
    names = slurm.get("PartitionNames")
    return None if names is None else "".join(names)


def _image(entry: Members) -> str | None:
    """`default` is the provider's own, as if it were not said; in an update it is what is there."""
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
            raise invalid(f"Instance group {group}: {name!r} is not the name of a file under SourceS3Uri.")
    if digest and (len(digest) != 64 or not set(digest) <= set("0123456789abcdef")):
        raise invalid(f"Instance group {group}: after #sha256= in SourceS3Uri come 64 hex digits.")
