"""Where jobs may start in the fake Slurm: its partitions (those of slurm.conf, and those of the file that slurm.conf
includes), its reservations, and the jobs of those that are ours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steward.adapters.slurm.include import parse_partitions
from steward.adapters.slurm.reservations import checked_deep_name, checked_keep_name
from steward.model.ids import NodeName
from steward.model.node import Node
from steward.model.partition import Partition, PartitionState
from steward.model.reservation import Reservation
from steward.ports import Retryable, Stale


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


@dataclass(kw_only=True)
class FakeReservations:
    """`submitted` are the command lines of deep checks' jobs by reservation."""

    table: dict[str, Reservation] = field(default_factory=dict)
    submitted: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def shown(self, now: float) -> dict[str, Reservation]:
        self.table = {name: each for name, each in self.table.items() if now < each.ends}
        return dict(self.table)

    def make(self, name: str, nodes: Iterable[NodeName], seconds: float, now: float) -> None:
        wanted = frozenset(nodes)
        there = self.shown(now).get(checked_deep_name(name))
        if there is not None and there.nodes != wanted:
            raise Stale(f"reservation {name} is there for other nodes")
        self.table.setdefault(name, Reservation(name=name, nodes=wanted, starts=now, ends=now + seconds))

    def keep(self, name: str, nodes: Iterable[NodeName], seconds: float, now: float) -> None:
        wanted, there = frozenset(nodes), self.shown(now).get(checked_keep_name(name))
        if any(wanted & other.nodes for other in self.table.values() if other.name != name):
            raise Retryable("Requested nodes are busy: another reservation has some of them")
        starts = there.starts if there else now
        self.table[name] = Reservation(name=name, nodes=wanted, starts=starts, ends=now + seconds)

    def free(self, name: str) -> None:
        self.table.pop(checked_keep_name(name), None)

    def keeps(self, node: NodeName, reservation: str, now: float) -> bool:
        """Whether a job of this reservation must not start on the node."""
        return any(node in each.nodes and name != reservation for name, each in self.shown(now).items())

    def drop(self, name: str) -> None:
        self.table.pop(checked_deep_name(name), None)
