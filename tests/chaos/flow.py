"""A flow: what is under way when a fault comes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from steward.model.ids import NodeName
from tests.chaos.bench import Bench
from tests.chaos.watch import MAINTENANCE, unrest

Reached = Callable[[Bench], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """`make` gives the healthy cluster, `begin` starts what is under way; `steps` tell when each has come.

    `node` is the one that it is about. `ends`: what must be true at the end besides calm, each with its name; `exact`
    is that too, but for each (step, column) of `otherwise`, whose fault rightly leads to another end.
    """

    name: str
    make: Callable[[], Bench]
    begin: Callable[[Bench], None]
    node: str
    steps: Mapping[str, Reached]
    ends: Mapping[str, Reached]
    exact: Mapping[str, Reached] = field(default_factory=dict)
    otherwise: Mapping[tuple[str, str], Mapping[str, Reached]] = field(default_factory=dict)

    def unrest(self, bench: Bench, step: str = "", column: str = "") -> list[str]:
        found = unrest(bench.world, bench.memory, bench.watch.foreign)
        ends = {**self.ends, **self.otherwise.get((step, column), self.exact)}
        return found + [f"not yet: {name}" for name, holds in ends.items() if not holds(bench)]


def take_out(bench: Bench, node: NodeName) -> None:
    bench.world.slurm.admin(node, "DRAIN", MAINTENANCE, bench.world.now)
    bench.watch.foreign.add(node)
