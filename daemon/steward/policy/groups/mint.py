"""New slots: node names and logical ids, minted in one place for orders and for the keeper of the groups."""

from collections.abc import Collection
from dataclasses import replace
from itertools import islice

from steward.model.desired import Desired
from steward.model.group import Cluster, Group
from steward.model.ids import NodeName
from steward.model.instance import InstanceState
from steward.model.observed import Observed
from steward.model.slot import SlotRecord, SlotStep
from steward.model.why import Why
from steward.policy.groups.slot_of import free_names, pool_of


def taken_names(group: str, slots: Collection[NodeName], seen: Observed, want: Desired) -> frozenset[NodeName]:
    """Node names that a new slot of the group cannot have. Dynamic ones must not be those of anybody's node or
    instance; a pool's are its own."""
    taken = frozenset(slots)
    if pool_of(group, want) is not None:
        return taken
    machines = {each.node for each in seen.instances.values() if each.state is not InstanceState.GONE}
    return taken.union(seen.nodes, want.slots, machines)


def mint(
    group: Group, many: int, taken: Collection[NodeName], cluster: Cluster, want: Desired, why: Why, now: float
) -> tuple[Cluster, tuple[SlotRecord, ...]]:
    """Up to `many` waiting slots (fewer where the pool has no more names), and the cluster with its count of slots.

    Logical ids are `<cluster id>-<serial>`: never the same twice, also when a group or a cluster is made anew.
    """
    names = list(islice(free_names(group.name, taken, want), many))
    first = cluster.serial + 1
    slots = tuple(
        SlotRecord(
            node=name,
            group=group.name,
            logical=f"{cluster.id}-{serial}",
            step=SlotStep.WAITING,
            entered=now,
            created=now,
            why=why,
            version=group.version,
        )
        for serial, name in enumerate(names, first)
    )
    return replace(cluster, serial=cluster.serial + len(slots)), slots
