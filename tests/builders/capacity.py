"""A head with API groups, and what befalls their slots, in the words of `picture`."""

from dataclasses import replace
from typing import Any

from steward.model.desired import CapacityPolicy, Desired, RepairPolicy
from steward.model.group import Cluster, ClusterStatus, Goal, Group, GroupStatus, Role
from steward.model.memory import Memory
from steward.model.observed import Freshness, Observed
from steward.model.slot import SlotRecord
from tests.builders.picture import T0, Picture, n


def a_group(name: str = "workers", target: int = 4, minimum: int = 0, **fields: Any) -> Group:
    default: dict[str, Any] = {
        "role": Role.COMPUTE,
        "types": ("ml.g5.xlarge",),
        "status": GroupStatus.CREATING,
        "created": T0,
        "partition": name,
        "minimum_since": T0,
    }
    return Group(name=name, goal=Goal(target=target, minimum=minimum), **{**default, **fields})


def an_empty_head(*groups: Group, cluster: dict[str, Any] | None = None, **capacity: Any) -> Picture:
    """No machine, no node; the cluster and its groups were just asked for."""
    fields: dict[str, Any] = {"name": "demo", "id": "abcdef012345", "created": T0, "status": ClusterStatus.CREATING}
    seen = Observed(at=T0, agents_since=T0 - 10_000, provider=Freshness.FRESH)
    want = Desired(repair=RepairPolicy(), capacity=CapacityPolicy(**capacity))
    memory = Memory(
        cluster=Cluster(**{**fields, **(cluster or {})}), groups={g.name: g for g in groups or (a_group(),)}
    )
    return Picture(seen=seen, want=want, memory=memory)


def slot(picture: Picture, node: str) -> SlotRecord:
    return picture.memory.slots[n(node)]


def group(picture: Picture, name: str = "workers") -> Group:
    return picture.memory.groups[name]


def with_group(picture: Picture, name: str = "workers", **fields: Any) -> Picture:
    """Somebody changed the group."""
    groups = {**picture.memory.groups, name: replace(picture.memory.groups[name], **fields)}
    return replace(picture, memory=replace(picture.memory, groups=groups))
