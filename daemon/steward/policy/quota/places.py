"""The free resources of each node: a job cannot start on a free sum that is spread over nodes which it cannot use.

Only nodes that a job may use count for it: those of its partition that it does not exclude, with its features and types
of GRES.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest, nsmallest
from itertools import combinations, islice, permutations

from steward.model.accounting import Capabilities
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, parse_tres
from steward.model.quota import CPU, MEM, Resource, kind_of, machine_type_of, resource
from steward.policy.draft import Draft
from steward.policy.quota.constraint import eligible_nodes
from steward.policy.quota.flavors import Flavors
from steward.policy.quota.planned import Newcomers, PlannedNodes, PlannedStarts
from steward.policy.quota.requests import Amounts, Requests, Unit, holds_nodes

_UNTOLD_MB = 1
"""Slurm's default for RealMemory: on such a node, memory is unlimited."""
_UNBOUND = 1 << 62
_ENDLESS_S = 365 * 86400.0
"""The time for which Slurm plans a job without a time limit."""
_RESOLUTION_S = 60.0
"""Backfill's default resolution (bf_resolution): ends within this time are the same to it."""
_ORDERS = 6
"""The most orders in which the parts of a heterogeneous job are tried."""
_WAYS = 64
"""The most sets of nodes that are tried as those which Slurm keeps for a part."""
_Free = dict[NodeName, dict[Resource, int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wish:
    """The nodes that a job needs: at least `count` of `nodes`, among them all of `required`, with `each` free on each.

    `total` must be free on at most `most` of the nodes together (0: any number). `whole`: no other job may be on them.
    `kept` are nodes that would do but for Slurm's plan of a part of a heterogeneous job, which may move.
    `parts` are the wishes of a heterogeneous job's parts, each on nodes of its own; `nodes` are then the nodes of any
    part, and the other fields do not count.
    """

    count: int
    each: Amounts
    nodes: frozenset[NodeName]
    required: frozenset[NodeName] = frozenset()
    most: int = 0
    total: Amounts = field(default_factory=dict)
    whole: bool = False
    kept: frozenset[NodeName] = frozenset()
    parts: "tuple[Wish, ...]" = ()

    def with_kept(self) -> "Wish":
        """Return the wish as if Slurm kept no node for a part of another job."""
        return replace(self, nodes=self.nodes | self.kept, parts=tuple(part.with_kept() for part in self.parts))

    @property
    def is_by_node(self) -> bool:
        """Return whether each cleared node helps the job, regardless of its other nodes."""
        return not self.total and not self.parts


class Places:
    """The free resources of each usable node.

    A running job is assumed to use the same amount on each of its nodes of one machine type.
    """

    def __init__(self, draft: Draft, flavors: Flavors, requests: Requests, going: Iterable[JobId]) -> None:
        """Take the picture; the jobs `going`, which are being evicted, count as gone."""
        self.now = draft.now
        self._draft, self._flavors, self._requests = draft, flavors, requests
        self._wishes: dict[tuple[object, ...], Wish | None] = {}
        self._of_parts: dict[tuple[JobId, PlannedNodes], Wish | None] = {}
        self._may_use: dict[tuple[object, ...], frozenset[NodeName]] = {}
        """For each request: the nodes on which Slurm may start a job."""
        accounting = draft.seen.accounting
        self._can = accounting.can if accounting is not None else Capabilities()
        self._whole = {name: self._resources_of(name) for name in sorted(flavors.usable)}
        backfill_s = self._can.backfill_s
        self.plans = PlannedStarts(draft.seen.jobs.values(), draft.now, backfill_s, self.nodes_for)
        self._free = {name: dict(has) for name, has in self._whole.items()}
        self._changed: list[NodeName] = []
        """The nodes whose free resources changed, in order."""
        self._rooms: dict[Wish, tuple[int, dict[NodeName, int]]] = {}
        """For each wish: how many changes were considered, and the nodes with room for it."""
        gone = frozenset(going)
        for job in draft.seen.jobs.values():
            if job.nodes and holds_nodes(job) and job.whole_id not in gone:
                self._hold(job.nodes, self._requests.used((job,)), 1)
        self._changed.clear()
        self._at_first = {name: dict(has) for name, has in self._free.items()}
        """The free resources before any were promised in this turn."""
        self.awaits_look: dict[JobId, JobId] = {}
        """For each unit for which no job is evicted now: the new job that may take what is free and that it needs."""
        self.behind_parts: dict[JobId, JobId] = {}
        """For each unit for which no job is evicted now: the heterogeneous job for which Slurm would keep the nodes."""

    def _resources_of(self, name: NodeName) -> Mapping[Resource, int]:
        """Return the resources of a node."""
        has = self._flavors.of_node(name)
        if self._draft.seen.nodes[name].memory_mb <= _UNTOLD_MB or not self._can.counts_memory:
            return {**has, resource(self._flavors.type_of[name], MEM): _UNBOUND}
        return has

    def wishes(
        self, unit: Unit, asked: Amounts, size: int = 0, gets_room: Callable[[JobId], bool] = lambda id: False
    ) -> Sequence[Wish]:
        """Return the nodes that a waiting unit needs, by partition; empty if nodes do not decide whether it starts.

        `gets_room` tells whether a waiting job gets room in this turn.
        """
        if unit.apart:
            return ()  # the unit waits for reserved nodes
        job = unit.jobs[0]
        kept = self.plans.kept_from(job, gets_room)
        not_for_it = PlannedNodes(kept.firmly | self._reserved_before_end(job), kept.for_parts)
        if len(unit.jobs) > 1:
            found = [self._wish_of_parts(unit, not_for_it)]
        elif size > 1 or job.node_count > 1 or job.is_total:
            found = [self._wish_of_job(job, asked, size, not_for_it, each) for each in job.partitions]
        else:
            found = [self._wish_of_job(job, asked, size, not_for_it)]
        return [wish for wish in found if wish is not None]

    def _reserved_before_end(self, job: Job) -> frozenset[NodeName]:
        """Return the nodes of reservations that begin before the job would be over: Slurm does not start it there."""
        if not self._flavors.reserved_later:
            return frozenset()
        over = _end(job, self.now)
        return frozenset[NodeName]().union(*(each.nodes for each in self._flavors.reserved_later if each.starts < over))

    def _wish_of_parts(self, unit: Unit, kept: PlannedNodes) -> Wish | None:
        """Return the nodes that a heterogeneous job needs, the most demanding parts first."""
        if (unit.id, kept) not in self._of_parts:
            asked = [(job, options[0]) for job in unit.jobs if (options := self._requests.asks(job))]
            found = [wish for job, amounts in asked if (wish := self._wish_of_job(job, amounts, 0, kept))]
            parts = sorted(found, key=lambda w: (len(w.nodes), -max(w.each.values(), default=0)))
            nodes = frozenset[NodeName]().union(*(wish.nodes for wish in parts))
            planned = frozenset[NodeName]().union(*(wish.kept for wish in parts))
            is_known = len(parts) == len(unit.jobs)
            wish = Wish(count=0, each={}, nodes=nodes, kept=planned, parts=tuple(parts)) if is_known else None
            self._of_parts[unit.id, kept] = wish
        return self._of_parts[unit.id, kept]

    def _wish_of_job(self, job: Job, asked: Amounts, size: int, kept: PlannedNodes, partition: str = "") -> Wish | None:
        """Return the nodes that one job needs in this partition (empty: in any); None if nodes do not decide."""
        count, partition = size or max(job.node_count, 1), partition or job.partition
        like = job.excluded, job.required, job.features, job.exclusive, job.requested
        key = id(asked), count, partition, kept, like
        if key not in self._wishes:
            self._wishes[key] = self._work_out_wish(job, asked, count, partition, kept)
        return self._wishes[key]

    def _work_out_wish(self, job: Job, asked: Amounts, count: int, partition: str, kept: PlannedNodes) -> Wish | None:
        """Work out the nodes that one job needs; None if nodes do not decide."""
        kinds = {machine_type_of(name) for name in asked}
        if len(kinds) != 1:
            return None
        kind = next(iter(kinds))
        count = max(count, len(job.required))
        within = self._draft.overview.nodes_of(partition) - job.excluded - kept.firmly
        usable = (n for n in within & self._whole.keys() if self._flavors.type_of[n] == kind)
        each = {name: -(-amount // count) for name, amount in asked.items()}
        is_total = job.is_total and job.most_nodes != 1
        if is_total:
            # Slurm uses no node that has none of the accelerators or CPUs free
            each = {name: 1 for name in asked if kind_of(name) != MEM}
        found = frozenset(eligible_nodes(job, usable, self._draft.seen.nodes, 1 if is_total else count))
        return Wish(
            count=1 if is_total and job.most_nodes != count else count,
            each=each,
            nodes=found - kept.for_parts,
            kept=found & kept.for_parts,
            required=job.required,
            most=job.most_nodes,
            total=asked if is_total else {},
            whole=job.exclusive,
        )

    def nodes_for(self, job: Job) -> frozenset[NodeName]:
        """Return the nodes on which Slurm may start a job."""
        if job.required and len(job.required) >= job.node_count:
            return job.required
        key = job.partition, job.excluded, job.features, job.requested, job.node_count
        if key not in self._may_use:
            usable = self._draft.overview.nodes_of(job.partition) - job.excluded & self._whole.keys()
            found = eligible_nodes(job, usable, self._draft.seen.nodes, max(job.node_count, 1))
            self._may_use[key] = frozenset(found)
        return self._may_use[key]

    def await_plan(self, unit: Unit) -> None:
        """Keep the nodes of a unit without room from jobs behind it until backfill has looked at it."""
        for job in unit.jobs:
            if (by := self.plans.looked_at(job)) is not None:
                self.plans.add(job)
                self._draft.wake(by)

    def has_room(self, wish: Wish) -> bool:
        """Return whether the nodes have room for the job now."""
        if wish.parts:
            return self._left_by_parts(wish, self._free) is not None
        return self._is_met(wish, self._nodes_with_room(wish), self._free)

    def _left_by_parts(self, wish: Wish, free: Mapping[NodeName, Mapping[Resource, int]]) -> _Free | None:
        """Return what stays free on the nodes if all parts find room in some order; None if they do not."""
        orders = islice(permutations(wish.parts), _ORDERS)
        return next((left for order in orders if (left := self._left_in_order(order, free)) is not None), None)

    def _left_in_order(self, parts: Iterable[Wish], free: Mapping[NodeName, Mapping[Resource, int]]) -> _Free | None:
        """Return what stays free on the nodes if the parts find room in this order; None if they do not."""
        left: _Free = {}
        for part in parts:
            # Slurm never gives two parts the same node (backfill.c, _het_job_start_now, 22.05 to 26.05).
            room = {n: _free_amount(part, free[n]) for n in part.nodes - left.keys() if self._suits(part, n, free[n])}
            if not self._is_met(part, room, free):
                return None
            left.update(self._left_by_job(part, _fullest_first(part, room), free))
        return left

    def had_room_at_first(self, wish: Wish) -> bool:
        """Return whether the job would have room if no nodes were promised to others in this turn."""
        if wish.parts:
            return self._left_by_parts(wish, self._at_first) is not None
        nodes = [node for node in wish.nodes if self._suits(wish, node, self._at_first[node])]
        return self._is_met(wish, nodes, self._at_first)

    def may_be_taken(self, wish: Wish, unit: Unit, victims: Iterable[Unit], coming: Iterable[Job]) -> bool:
        """Return whether new jobs may start on resources that a new unit needs beside those of its victims.

        `coming` are the jobs that get room in this turn.
        """
        if (by := self.plans.looked_at(unit.jobs[0])) is None:
            return False
        new = self._smaller_one(wish, coming) or self._one_that_takes_room(wish, unit, victims)
        if new is not None:
            self.awaits_look[unit.id] = new.id
            self._draft.wake(by)
        return new is not None

    def may_be_kept(self, wish: Wish, unit: Unit, gets_room: Callable[[JobId], bool]) -> bool:
        """Return whether Slurm may keep nodes that the unit needs for parts of a heterogeneous job that comes first."""
        for parts in self.plans.parts_before(unit.jobs[0], gets_room):
            count, nodes = self._nodes_for_first_parts(parts)
            # the plan may move to what was freed: then the unit may start on the nodes that Slurm keeps now
            wide = wish.with_kept()
            room = {name for name in wide.nodes if self._suits(wide, name, self._free[name])}
            if count and not self._has_room_without_some(wide, room, nodes & room, count):
                self.behind_parts[unit.id] = parts[0].whole_id
                return True
        return False

    def _nodes_for_first_parts(self, parts: Iterable[Job]) -> tuple[int, frozenset[NodeName]]:
        """Return how many nodes Slurm's backfill keeps from now on for parts of a job, and all that it may choose from.

        It plans part by part, no part before the one ahead of it, and starts none before all can start.
        """
        count, nodes = 0, frozenset[NodeName]()
        for job in parts:
            on = self.nodes_for(job) & self._whole.keys()
            room = {name for name in on if (asked := self._asked_on(job, name)) and _holds(self._free[name], asked)}
            needed = max(job.node_count, 1)
            if len(room) < needed or not self._has_room_in_limits(job):
                break
            count, nodes = count + needed, nodes | room
        return count, nodes

    def _has_room_without_some(
        self, wish: Wish, room: Collection[NodeName], kept: Collection[NodeName], count: int
    ) -> bool:
        """Return whether the nodes satisfy the wish whichever `count` of the `kept` ones are left out."""
        if wish.is_by_node:
            return not wish.required & set(kept) and len(room) - min(count, len(kept)) >= wish.count
        by_free = sorted(kept, key=lambda name: (-sum(self._free[name].values()), name))
        ways = islice(combinations(by_free, min(count, len(by_free))), _WAYS)
        return all(self._has_room_beside(wish, room, frozenset(gone)) for gone in ways)

    def _has_room_beside(self, wish: Wish, room: Collection[NodeName], gone: frozenset[NodeName]) -> bool:
        """Return whether nodes satisfy the wish without those that are gone."""
        if wish.parts:
            left = {name: {} if name in gone else self._free[name] for name in wish.nodes}
            return self._left_by_parts(wish, left) is not None
        return self._is_met(wish, [name for name in room if name not in gone], self._free)

    def _smaller_one(self, wish: Wish, coming: Iterable[Job]) -> Job | None:
        """Return a new job on fewer nodes that is about to start on nodes of the wish; None if there is none."""
        # Slurm may put several such jobs together on one of the nodes
        count = len(wish.parts) or wish.count
        if count < 2:
            return None
        new = (job for job in coming if max(job.node_count, 1) < count and self.plans.looked_at(job) is not None)
        return next((job for job in new if wish.nodes & self.nodes_for(job)), None)

    def _one_that_takes_room(self, wish: Wish, unit: Unit, victims: Iterable[Unit]) -> Job | None:
        """Return a new job behind the unit that may start on what is free and that both need; None without one."""
        # Backfill starts a job on nodes of one that comes first if it is over when the others there end. Until it has
        # looked, count a new job on every node that has room for it now.
        over = max((_end(job, self.now) for victim in victims for job in victim.jobs), default=0.0) + _RESOLUTION_S
        left = {node: dict(self._free[node]) for node in wish.nodes}
        free = {node: dict(self._at_first[node]) for node in wish.nodes}
        for new in self.plans.newcomers_behind(unit.jobs[0]):
            if new.job.whole_id == unit.id or _end(new.job, self.now) > over or not self._has_room_in_limits(new.job):
                continue
            for node in wish.nodes & self.nodes_for(new.job):
                _take_most(new, self._asked_on(new.job, node), free[node], left[node])
            room = [node for node in wish.nodes if self._suits(wish, node, left[node])]
            if not (self._left_by_parts(wish, left) is not None if wish.parts else self._is_met(wish, room, left)):
                return new.job
        return None

    def _asked_on(self, job: Job, node: NodeName) -> Mapping[Resource, int]:
        """Return what a waiting job asks for on each node of this node's type; empty if it may not run there."""
        kind, count = self._flavors.type_of.get(node, ""), max(job.node_count, 1)
        for amounts in self._requests.asks(job):
            if all(machine_type_of(name) == kind for name in amounts):
                return {name: -(-amount // count) for name, amount in amounts.items()}
        return {}

    def _has_room_in_limits(self, job: Job) -> bool:
        """Return whether Slurm's limits of one of the job's QOS have room for it now."""
        picture, asked = self._draft.seen.accounting, parse_tres(job.requested)
        found = [picture.qos.get(name) for name in job.qos.split(",")] if picture is not None else [None]
        return any(
            qos is None or all(qos.used.get(n, 0) + asked.get(n, 0) <= most for n, most in qos.limits.items())
            for qos in found
        )

    def nodes_with_room(self, wish: Wish) -> frozenset[NodeName]:
        """Return the nodes on which the job has room now."""
        return frozenset(self._nodes_with_room(wish))

    def has_room_without(self, wish: Wish, without: Mapping[NodeName, Iterable[Unit]]) -> bool:
        """Return whether the job would have room if these units left their nodes."""
        free = {}
        for node in wish.nodes:
            free[node] = has = dict(self._free[node])
            for unit in without.get(node, ()):
                # an upper bound: as if all resources of the unit were on this node
                for what, amount in unit.options[0].items():
                    has[what] = has.get(what, 0) + amount
        if wish.parts:
            return self._left_by_parts(wish, free) is not None
        return self._is_met(wish, [node for node in wish.nodes if self._suits(wish, node, free[node])], free)

    def _is_met(self, wish: Wish, nodes: Collection[NodeName], free: Mapping[NodeName, Mapping[Resource, int]]) -> bool:
        """Return whether these nodes satisfy the wish."""
        if len(nodes) < wish.count or not wish.required.issubset(nodes):
            return False
        most = wish.most or len(nodes)
        return all(
            sum(nlargest(most, (free[node].get(name, 0) for node in nodes))) >= amount
            for name, amount in wish.total.items()
        )

    def _suits(self, wish: Wish, node: NodeName, free: Mapping[Resource, int]) -> bool:
        """Return whether the node has enough free for the job's share of one node."""
        return _holds(free, wish.each) and (not wish.whole or self._is_empty(node, free))

    def _is_empty(self, node: NodeName, free: Mapping[Resource, int]) -> bool:
        """Return whether no job is on the node."""
        # every job uses at least one CPU
        cpus = resource(self._flavors.type_of[node], CPU)
        return free.get(cpus, 0) >= self._whole[node].get(cpus, 0)

    def _nodes_with_room(self, wish: Wish) -> Mapping[NodeName, int]:
        """Return the nodes with room for the job, and how much is free on each."""
        # only nodes that changed since the last call are tested again
        at, found = self._rooms.get(wish, (0, {}))
        if wish not in self._rooms or at < len(self._changed):
            for name in wish.nodes if wish not in self._rooms else wish.nodes.intersection(self._changed[at:]):
                free = self._free[name]
                if self._suits(wish, name, free):
                    found[name] = _free_amount(wish, free)
                else:
                    found.pop(name, None)
            self._rooms[wish] = len(self._changed), found
        return found

    def lacks(self, wish: Wish, node: NodeName) -> frozenset[Resource]:
        """Return the resources of which the node has too little free for the job's share of one node."""
        free = self._free[node]
        if wish.whole and not self._is_empty(node, free):
            return frozenset(self._whole[node])
        return frozenset(name for name, amount in wish.each.items() if free.get(name, 0) < amount)

    def take(self, wish: Wish) -> None:
        """Place the job where Slurm would start it: on the fullest nodes with room; do nothing without room."""
        if wish.parts:
            left = self._left_by_parts(wish, self._free) or {}
        elif self.has_room(wish):
            left = dict(self._left_by_job(wish, _fullest_first(wish, self._nodes_with_room(wish)), self._free))
        else:
            return
        self._free.update(left)
        self._changed += left

    def _left_by_job(
        self, wish: Wish, order: Sequence[NodeName], free: Mapping[NodeName, Mapping[Resource, int]]
    ) -> Iterator[tuple[NodeName, dict[Resource, int]]]:
        """Yield what the job leaves free on each of its nodes."""
        left = dict(wish.total)
        for name in order if left else order[: wish.count]:
            found = dict(free[name])
            each = self._whole[name] if wish.whole else wish.each
            if left:
                each = {what: min(amount, max(found.get(what, 0), 0)) for what, amount in left.items()}
                left = {what: amount - each[what] for what, amount in left.items()}
            for what, amount in each.items():
                found[what] = found.get(what, 0) - amount
            yield name, found

    def release(self, unit: Unit, times: int = 1) -> None:
        """Remove a running unit from its nodes; with negative `times`, put it back."""
        for job in unit.jobs:
            self._hold(job.nodes, self._requests.used((job,)), -times)

    def _hold(self, nodes: frozenset[NodeName], amounts: Amounts, times: int) -> None:
        """Count the amounts as held on the nodes."""
        for name, part in self._split_over_nodes(nodes, amounts):
            free = self._free.get(name)
            if free is not None:
                self._changed.append(name)
                for what, amount in part.items():
                    free[what] = free.get(what, 0) - amount * times

    def _split_over_nodes(
        self, nodes: frozenset[NodeName], amounts: Amounts
    ) -> Iterator[tuple[NodeName, Mapping[Resource, int]]]:
        """Yield the part of the amounts on each node."""
        of: dict[str, list[NodeName]] = {}
        for name in nodes:
            of.setdefault(self._flavors.type_of.get(name, ""), []).append(name)
        for kind, names in of.items():
            mine = {what: -(-n // len(names)) for what, n in amounts.items() if machine_type_of(what) == kind}
            for name in names:
                yield name, mine


def _end(job: Job, now: float) -> float:
    """Return when the time limit of a running job ends, or that of a waiting job if it started now (Unix s)."""
    limit_s = job.time_limit_s if job.time_limit_s is not None else _ENDLESS_S
    return (now if job.is_pending or job.started is None else job.started) + limit_s


def _holds(free: Mapping[Resource, int], asked: Mapping[Resource, int]) -> bool:
    """Return whether a node with this much free has room for a request."""
    return all(free.get(name, 0) >= amount for name, amount in asked.items())


def _take_most(
    new: Newcomers, asked: Mapping[Resource, int], free: dict[Resource, int], left: dict[Resource, int]
) -> None:
    """Take as many of the new jobs as `free` holds out of it and out of `left`."""
    fit = min((free.get(name, 0) // amount for name, amount in asked.items() if amount > 0), default=0)
    for name, amount in asked.items():
        for has in (free, left):
            has[name] = has.get(name, 0) - amount * max(0, min(fit, new.count))


def _free_amount(wish: Wish, free: Mapping[Resource, int]) -> int:
    """Return the sum of the free amounts of the wanted resources."""
    return sum(free.get(what, 0) for what in wish.each)


def _fullest_first(wish: Wish, room: Mapping[NodeName, int]) -> list[NodeName]:
    """Return the nodes in the order in which Slurm would use them."""
    return [*wish.required, *nsmallest(len(room), room.keys() - wish.required, key=lambda n: (room[n], n))]
