"""The reservations of the fake Slurm, and the jobs of those that are ours."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from steward.adapters.slurm.reservations import ours
from steward.model.ids import NodeName
from steward.model.reservation import Reservation
from steward.ports import Stale


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

    def keeps(self, node: NodeName, partition: str, now: float) -> bool:
        """Whether a job of this partition must not start on the node."""
        return any(node in each.nodes and name != partition for name, each in self.shown(now).items())

    def drop(self, name: str) -> None:
        self.table.pop(ours(name), None)
