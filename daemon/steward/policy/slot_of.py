"""Slots of API groups for providers and repairs, the node names that they may have, and new slots."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import count, islice

from steward.model.capacity_policy import Pool
from steward.model.desired import Desired
from steward.model.group import Cluster, Group
from steward.model.ids import NodeName
from steward.model.instance import InstanceState, Slot
from steward.model.observed import Observed
from steward.model.slot import SlotRecord, SlotStep
from steward.model.why import Why


def pool_of(group: str, want: Desired) -> Pool | None:
    """Return the `[[groups]]` table that an API group of this name takes its nodes from; None if they are dynamic."""
    return want.capacity.pools.get(group)


def features_of(group: Group) -> frozenset[str]:
    """Return the Slurm features of the group's nodes: those of the group, and its name."""
    return group.features | {group.name}


def slot_of(record: SlotRecord, group: Group, want: Desired) -> Slot:
    """Return the slot as a request to the provider."""
    pool = pool_of(group.name, want)
    return Slot(
        node=record.node,
        group=group.name,
        fixed=pool is not None and pool.fixed,
        reboots=pool is None or pool.reboots,
        types=group.types,
        image=group.version.image,
        release=group.version.release,
        features=features_of(group),
        role=group.role.value,
    )


def free_names(group: str, taken: Collection[NodeName], want: Desired) -> Iterator[NodeName]:
    """Yield node names for new slots: the pool's in order, or for a dynamic group NAME-1, NAME-2, ... without end.

    `taken` are the names in use: nodes of slots, and for dynamic groups every node that Slurm knows.
    """
    pool = pool_of(group, want)
    names = iter(pool.nodes) if pool else (NodeName(f"{group}-{i}") for i in count(1))
    return (name for name in names if name not in taken)


# New slots.


def taken_names(group: str, slots: Collection[NodeName], seen: Observed, want: Desired) -> frozenset[NodeName]:
    """Return the node names that a new slot of the group cannot have."""
    # a dynamic name must not be that of any other node or instance; a pool's names are its own
    taken = frozenset(slots)
    if pool_of(group, want) is not None:
        return taken
    machines = {each.node for each in seen.instances.values() if each.state is not InstanceState.GONE}
    return taken.union(seen.nodes, want.slots, machines)


def new_slots(
    group: Group, many: int, taken: Collection[NodeName], cluster: Cluster, want: Desired, why: Why, now: float
) -> tuple[Cluster, tuple[SlotRecord, ...]]:
    """Return the cluster with its new count of slots, and up to `many` new waiting slots, as far as names are left.

    Logical ids are `<cluster id>-<serial>`: never the same twice, even if a group or a cluster is made anew.
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
