"""The text of our include file for slurm.conf: the partitions of API groups. Pure: the same groups, the same text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from steward.model.ids import NodeName
from steward.model.node_names import fold

_HEAD = """\
# Written by Steward: partitions of groups made through its API. Changes made by hand are lost.
# A partition's State is what Steward wants now, so that a restart of slurmctld neither opens nor closes it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionShape:
    """`members` is group -> those of its nodes that slurm.conf has; other nodes of a group bear its name as feature.

    No members: jobs of a group that is gone still wait here.
    """

    name: str
    open: bool
    members: Mapping[str, frozenset[NodeName]] = field(default_factory=lambda: MappingProxyType({}))


def partitions_text(shapes: Iterable[PartitionShape]) -> str:
    """The whole file, in an order that depends on names only."""
    ordered = sorted(shapes, key=lambda shape: shape.name)
    sets = {group: nodes for shape in ordered for group, nodes in shape.members.items()}
    lines = [*(_set(group, sets[group]) for group in sorted(sets)), *map(_partition, ordered)]
    return "\n".join([_HEAD, *lines, ""])


def _set(group: str, nodes: frozenset[NodeName]) -> str:
    named = f" Nodes={fold(nodes)}" if nodes else ""
    return f"NodeSet={_set_name(group)} Feature={group}{named}"


def _partition(shape: PartitionShape) -> str:
    sets = ",".join(map(_set_name, sorted(shape.members)))
    nodes = f"Nodes={sets} " if sets else ""
    return f"PartitionName={shape.name} {nodes}State={'UP' if shape.open else 'DOWN'} MaxTime=INFINITE"


def _set_name(group: str) -> str:
    return f"steward-{group}"
