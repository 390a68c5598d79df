"""A slot of an API group as providers and repairs see it, and the names that its nodes may have."""

from collections.abc import Collection, Iterator
from itertools import count

from steward.model.capacity_policy import Pool
from steward.model.desired import Desired
from steward.model.group import Group
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.model.slot import SlotRecord


def pool_of(group: str, want: Desired) -> Pool | None:
    """The `[[groups]]` table that an API group of this name takes its nodes from; None: its nodes are dynamic."""
    return want.capacity.pools.get(group)


def features_of(group: Group) -> frozenset[str]:
    """Slurm's features of the group's nodes: its own and its name."""
    return group.features | {group.name}


def slot_of(record: SlotRecord, group: Group, want: Desired) -> Slot:
    """The slot that a provider is asked for."""
    pool = pool_of(group.name, want)
    return Slot(
        node=record.node,
        group=group.name,
        fixed=pool is not None and pool.fixed,
        types=group.types,
        image=group.version.image,
        release=group.version.release,
        features=features_of(group),
        role=group.role.value,
    )


def free_names(group: str, taken: Collection[NodeName], want: Desired) -> Iterator[NodeName]:
    """Node names for new slots, the first ones first: the pool's in their order, else NAME-1, NAME-2, ... for ever.

    `taken` are the names that cannot be had: nodes of slots, and for dynamic groups every node that Slurm knows.
    """
    pool = pool_of(group, want)
    names = iter(pool.nodes) if pool else (NodeName(f"{group}-{i}") for i in count(1))
    return (name for name in names if name not in taken)
