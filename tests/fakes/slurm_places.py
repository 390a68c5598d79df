"""The partitions of the fake Slurm: those of slurm.conf, and those of the file that slurm.conf includes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from steward.adapters.slurm.include import parse_partitions
from steward.model.ids import NodeName
from steward.model.node import Node
from steward.model.partition import Partition, PartitionState
from steward.ports import Stale


@dataclass(kw_only=True)
class FakePartitions:
    """`site` and `ours` have the present states, `file` is ours in full, `loaded` when slurmctld began (Unix s)."""

    site: dict[str, PartitionState] = field(default_factory=lambda: {"main": PartitionState.UP})
    ours: dict[str, PartitionState] = field(default_factory=dict)
    file: str = ""
    loaded: float = 1000.0

    def shown(self, nodes: Mapping[NodeName, Node]) -> dict[str, Partition]:
        site = {name: frozenset(n for n, node in nodes.items() if name in node.partitions) for name in self.site}
        lines = parse_partitions(self.file)
        ours = {
            name: frozenset(n for each in lines.members[name] for n in _members(*lines.sets[each], nodes))
            for name in self.ours
        }
        states = self.site | self.ours
        return {
            name: Partition(name=name, state=states[name], nodes=members, loaded=self.loaded)
            for name, members in (site | ours).items()
        }

    def set(self, partition: str, state: PartitionState) -> None:
        table = self.ours if partition in self.ours else self.site
        if partition not in table:
            raise Stale(f"Invalid partition name specified: {partition}")
        table[partition] = state

    def write(self, text: str) -> None:
        self.file = text
        states = parse_partitions(text).states
        self.ours = {name: self.ours.get(name, PartitionState(state)) for name, state in states.items()}

    def restart(self, now: float) -> None:
        """slurmctld starts anew: states are as the files say."""
        self.ours = {name: PartitionState(state) for name, state in parse_partitions(self.file).states.items()}
        self.site = dict.fromkeys(self.site, PartitionState.UP)
        self.loaded = now


def _members(feature: str, named: frozenset[NodeName], nodes: Mapping[NodeName, Node]) -> frozenset[NodeName]:
    return named | {name for name, node in nodes.items() if feature in node.features}
