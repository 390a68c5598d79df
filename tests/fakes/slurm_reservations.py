"""The reservations of the fake Slurm, and the jobs of those that are ours."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from steward.adapters.slurm.reservations import kept, ours
from steward.model.ids import NodeName
from steward.model.reservation import Reservation
from steward.ports import Retryable, Stale


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
        there = self.shown(now).get(ours(name))
        if there is not None and there.nodes != wanted:
            raise Stale(f"reservation {name} is there for other nodes")
        self.table.setdefault(name, Reservation(name=name, nodes=wanted, starts=now, ends=now + seconds))

    def keep(self, name: str, nodes: Iterable[NodeName], seconds: float, now: float) -> None:
        wanted, there = frozenset(nodes), self.shown(now).get(kept(name))
        if any(wanted & other.nodes for other in self.table.values() if other.name != name):
            raise Retryable("Requested nodes are busy: another reservation has some of them")
        starts = there.starts if there else now
        self.table[name] = Reservation(name=name, nodes=wanted, starts=starts, ends=now + seconds)

    def free(self, name: str) -> None:
        self.table.pop(kept(name), None)

    def keeps(self, node: NodeName, partition: str, now: float) -> bool:
        """Whether a job of this partition must not start on the node."""
        return any(node in each.nodes and name != partition for name, each in self.shown(now).items())

    def drop(self, name: str) -> None:
        self.table.pop(ours(name), None)
