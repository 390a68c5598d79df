"""Brute force over small worlds of quotas: on which nodes a job of any shape could start, and who of those that borrow
could make room for it. Made from the words of the docs alone, and slow."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations

Node = str
Free = Mapping[Node, Mapping[str, int]]
"""What is free on each node, by kind of resource: gpu, cpu, mem, a MIG profile."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a job (or a part of a heterogeneous one) asks for: `each` on every one of `nodes`, or in all (`total`)."""

    each: Mapping[str, int]
    nodes: int = 1
    required: frozenset[Node] = frozenset()
    excluded: frozenset[Node] = frozenset()
    exclusive: bool = False
    feature: str = ""
    total: bool = False
    most: int = 0
    """A total may be on so many nodes; 0: on any number."""

    def amounts(self) -> dict[str, int]:
        """In all, as it asks for them."""
        return {kind: amount if self.total else amount * self.nodes for kind, amount in self.each.items()}


@dataclass(frozen=True, kw_only=True)
class Machines:
    """The nodes of a small cluster: what each has, and the features of some."""

    has: Mapping[Node, Mapping[str, int]]
    features: Mapping[str, frozenset[Node]] = field(default_factory=dict)

    def free(self, held: Iterable[Mapping[Node, Mapping[str, int]]]) -> dict[Node, dict[str, int]]:
        """What is left beside these."""
        found = {node: dict(has) for node, has in self.has.items()}
        for each in held:
            for node, amounts in each.items():
                for kind, amount in amounts.items():
                    found[node][kind] = found[node].get(kind, 0) - amount
        return found

    def starts(self, parts: Sequence[Part], free: Free) -> bool:
        """Whether all parts find nodes at once, each its own: each set of nodes is tried."""
        if not parts:
            return True
        first, *rest = parts
        return any(
            self.starts([replace(part, excluded=part.excluded | set(on)) for part in rest], free)
            for on in self._placed(first, free)
        )

    def starts_beside_kept(self, parts: Sequence[Part], first: Sequence[Part], free: Free) -> bool:
        """Whether all parts find nodes whichever ones Slurm keeps for a heterogeneous job that comes first."""
        return all(
            self.starts([replace(part, excluded=part.excluded | kept) for part in parts], free)
            for kept in self.kept_for(first, free)
        )

    def kept_for(self, first: Sequence[Part], free: Free) -> Iterator[frozenset[Node]]:
        """The nodes of each way to place its parts in their order, as far as they find nodes."""
        is_placed = False
        for on in self._placed(first[0], free) if first else ():
            is_placed = True
            rest = [replace(part, excluded=part.excluded | set(on)) for part in first[1:]]
            yield from (more | set(on) for more in self.kept_for(rest, free))
        if not is_placed:
            yield frozenset()

    def _placed(self, part: Part, free: Free) -> Iterator[tuple[Node, ...]]:
        """The nodes of each way to place one part."""
        may = [n for n in self.has if n not in part.excluded]
        may = [n for n in may if not part.feature or n in self.features.get(part.feature, ())]
        may = [n for n in may if not part.exclusive or dict(free[n]) == dict(self.has[n])]
        counts = (
            range(part.nodes, (part.most or len(may)) + 1) if part.total else (max(part.nodes, len(part.required)),)
        )
        for on in chain.from_iterable(combinations(may, count) for count in counts):
            if part.required <= set(on) and _fits(part, on, free):
                yield on


def _fits(part: Part, on: Collection[Node], free: Free) -> bool:
    """Whether these nodes do for the part."""
    for kind, amount in part.each.items():
        has = [free[node].get(kind, 0) for node in on]
        if not part.total and any(each < amount for each in has):
            return False
        if part.total and (sum(has) < amount or (kind != "mem" and not all(has))):
            return False
    return True


@dataclass(frozen=True, kw_only=True)
class Runs:
    """A job that runs: its team, what it has on each node. `own`: it is in the QOS of what its team owns."""

    id: str
    team: str
    on: Mapping[Node, Mapping[str, int]]
    own: bool
    since: float = 0.0

    def amount(self, kind: str) -> int:
        return sum(each.get(kind, 0) for each in self.on.values())


def beyond(runs: Collection[Runs], owned: Mapping[str, Mapping[str, int]]) -> list[Runs]:
    """Those that their teams' quotas do not cover: a quota covers its guaranteed jobs first, then the oldest."""
    found = []
    for team, nominal in owned.items():
        has = dict.fromkeys(nominal, 0)
        for job in sorted((r for r in runs if r.team == team), key=lambda r: (not r.own, r.since, r.id)):
            needs = {kind: job.amount(kind) for kind in nominal}
            if all(has[kind] + needs[kind] <= nominal[kind] for kind in nominal):
                has = {kind: has[kind] + needs[kind] for kind in nominal}
            else:
                found.append(job)
    return found


def ways(
    machines: Machines,
    parts: Sequence[Part],
    runs: Collection[Runs],
    may_go: Collection[Runs],
    others: Iterable[Mapping[Node, Mapping[str, int]]] = (),
) -> Iterator[frozenset[str]]:
    """Every set of those who may go whose going lets the job start, the smallest first."""
    rest = list(others)
    for some in chain.from_iterable(combinations(may_go, size) for size in range(len(may_go) + 1)):
        gone = {job.id for job in some}
        free = machines.free([*(job.on for job in runs if job.id not in gone), *rest])
        if machines.starts(parts, free):
            yield frozenset(gone)


def may_all_go(some: Collection[Runs], runs: Collection[Runs], owned: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether they may go one after the other, the largest of a team last: each goes while its team borrows."""
    for team in {job.team for job in some}:
        for kind, nominal in owned[team].items():
            used = sum(job.amount(kind) for job in runs if job.team == team)
            going = sorted(job.amount(kind) for job in some if job.team == team)
            if going[-1] and sum(going[:-1]) >= max(0, used - nominal):
                return False
    return True
