"""What is free on each node, for the one who makes room: so much in all starts no job whose nodes it is not on.

Only where Steward itself makes room. Slurm, where it does that, looks at nodes by itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest

from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.quota import Resource, machine_type_of
from steward.policy.draft import Draft
from steward.policy.quota.flavors import Flavors
from steward.policy.quota.requests import Amounts, Requests, Unit, holds_nodes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wish:
    """So many nodes of these, with so much on each of them."""

    count: int
    each: Amounts
    nodes: frozenset[NodeName]


class Places:
    """What is free on each usable node. Jobs are taken to have as much on each of their nodes of one machine type."""

    def __init__(self, draft: Draft, flavors: Flavors, requests: Requests, going: Iterable[JobId]) -> None:
        """The jobs that give way already have nothing any more: `going`."""
        self.now = draft.now
        self._draft, self._flavors, self._requests = draft, flavors, requests
        self._wishes: dict[tuple[int, int, str, frozenset[NodeName]], Wish | None] = {}
        self._whole = {name: flavors.of_node(name) for name in sorted(flavors.usable)}
        self._free = {name: dict(has) for name, has in self._whole.items()}
        self._changed: list[NodeName] = []
        """Each node that something came to or left, in order."""
        self._rooms: dict[Wish, tuple[int, dict[NodeName, int]]] = {}
        """Up to which of these changes it was looked at, and the nodes that have room for it."""
        gone = frozenset(going)
        for job in draft.seen.jobs.values():
            if job.nodes and holds_nodes(job) and (job.het_job_id or job.id) not in gone:
                self._hold(job.nodes, self._requests.used((job,)), 1)
        self._changed.clear()

    def wish(self, unit: Unit, asked: Amounts, size: int = 0) -> Wish | None:
        """The nodes that a waiting unit needs for what it asks for. None: nodes do not tell whether it starts. So it is
        with one that asks for a total, has parts, waits for nodes of a reservation, or finds no room on empty nodes."""
        job, count = unit.jobs[0], size or max(unit.jobs[0].node_count, 1)
        if len(unit.jobs) > 1 or job.is_total or unit.apart:
            return None
        key = id(asked), count, job.partition, job.excluded
        if key not in self._wishes:
            self._wishes[key] = self._wish(job, asked, count)
        return self._wishes[key]

    def _wish(self, job: Job, asked: Amounts, count: int) -> Wish | None:
        kinds = {machine_type_of(name) for name in asked}
        if len(kinds) != 1:
            return None
        kind = next(iter(kinds))
        within = self._draft.overview.nodes_of(job.partition) - job.excluded
        each = {name: -(-amount // count) for name, amount in asked.items()}
        nodes = frozenset(n for n in within & self._whole.keys() if self._flavors.type_of[n] == kind)
        wish = Wish(count=count, each=each, nodes=nodes)
        return wish if sum(_holds(self._whole[n], each) for n in nodes) >= count else None

    def has(self, wish: Wish) -> bool:
        return len(self._room_for(wish)) >= wish.count

    def _room_for(self, wish: Wish) -> Mapping[NodeName, int]:
        """The nodes on which it has room, and how much is free there. Only nodes that changed are looked at again."""
        at, found = self._rooms.get(wish, (0, {}))
        if wish not in self._rooms or at < len(self._changed):
            for name in wish.nodes if wish not in self._rooms else wish.nodes.intersection(self._changed[at:]):
                free = self._free[name]
                if _holds(free, wish.each):
                    found[name] = sum(free.get(what, 0) for what in wish.each)
                else:
                    found.pop(name, None)
            self._rooms[wish] = len(self._changed), found
        return found

    def lacks(self, wish: Wish, node: NodeName) -> frozenset[Resource]:
        """What is too little on this node for its part of the job."""
        free = self._free[node]
        return frozenset(name for name, amount in wish.each.items() if free.get(name, 0) < amount)

    def would_have(self, wish: Wish, node: NodeName, without: Iterable[Unit]) -> bool:
        """Whether the node had room for its part at most, if these left it and all that they have were there."""
        free = dict(self._free[node])
        for unit in without:
            for what, amount in unit.options[0].items():
                free[what] = free.get(what, 0) + amount
        return _holds(free, wish.each)

    def take(self, wish: Wish) -> None:
        """It starts where Slurm would start it: on the fullest nodes that have room. Where it has none it waits."""
        found = self._room_for(wish)
        if len(found) < wish.count:
            return
        for name in nsmallest(wish.count, found, key=lambda each: (found[each], each)):
            self._changed.append(name)
            for what, amount in wish.each.items():
                self._free[name][what] = self._free[name].get(what, 0) - amount

    def let_go(self, unit: Unit, times: int = 1) -> None:
        """A running unit leaves; negative `times`: it comes back."""
        for job in unit.jobs:
            self._hold(job.nodes, self._requests.used((job,)), -times)

    def _hold(self, nodes: frozenset[NodeName], amounts: Amounts, times: int) -> None:
        for name, part in self._parts(nodes, amounts):
            free = self._free.get(name)
            if free is not None:
                self._changed.append(name)
                for what, amount in part.items():
                    free[what] = free.get(what, 0) - amount * times

    def _parts(self, nodes: frozenset[NodeName], amounts: Amounts) -> Iterator[tuple[NodeName, Mapping[Resource, int]]]:
        of: dict[str, list[NodeName]] = {}
        for name in nodes:
            of.setdefault(self._flavors.type_of.get(name, ""), []).append(name)
        for kind, names in of.items():
            mine = {what: -(-n // len(names)) for what, n in amounts.items() if machine_type_of(what) == kind}
            for name in names:
                yield name, mine


def _holds(free: Mapping[Resource, int], wanted: Amounts) -> bool:
    return all(free.get(name, 0) >= amount for name, amount in wanted.items())
