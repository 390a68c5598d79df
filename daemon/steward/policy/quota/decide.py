"""Decide which jobs may run now, which borrowers are evicted for them, and which must wait. Pure."""

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.quota import PreemptTeamTasks, Reclaimed, Resource
from steward.policy.quota import pick
from steward.policy.quota.pick import Room
from steward.policy.quota.places import Wish
from steward.policy.quota.requests import Amounts, Unit

_NOT_YET = frozenset({"", "None"})
"""Slurm's reasons for jobs that it has not looked at yet."""


class UnitStanding(Enum):
    """The standing of a waiting unit after this turn."""

    OWN = "own"
    """The quota of the job's team covers the job: it runs when nodes are free."""
    BORROWED = "borrowed"
    """The job may run on resources that other teams lend."""
    WAITS = "waits"
    """The job waits until its team, or the lenders, have enough unused quota."""
    NEVER = "never"
    """The job asks for more than its team may ever have, or for machines that the cluster lacks."""
    BACKS_OFF = "backs off"
    """The job was evicted before, and may borrow again only later."""
    BEHIND = "behind"
    """The jobs of the job's team start in order, and an earlier one waits."""


@dataclass(slots=True, kw_only=True, eq=False)
class UnitRuling:
    """The ruling on one waiting unit; never changed afterwards.

    `amounts` is the use of one task on the chosen machine type, `granted` the number of tasks that may run, `borrowed`
    how many of these borrow. `nodes` is the granted node count (0: as requested). `short` are the lacking amounts,
    `until` is when the unit may borrow again (Unix s). `hopeless`: no eviction would free nodes for the unit.
    """

    unit: Unit
    standing: UnitStanding
    amounts: Amounts = field(default_factory=dict)
    granted: int = 0
    borrowed: int = 0
    nodes: int = 0
    short: Mapping[Resource, int] = field(default_factory=dict)
    until: float | None = None
    hopeless: bool = False

    @property
    def may_run(self) -> bool:
        """Return whether at least one task may run."""
        return self.granted > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Yielding:
    """A running unit that is evicted for the waiting unit `to`.

    `short` are the amounts that `to` lacked in all; `rank` and `rank_to` are the ranks of both teams before the
    eviction. `place` are the nodes that `to` lacked, if the amounts alone would not explain the eviction.
    """

    unit: Unit
    to: Unit
    cause: Reclaimed
    short: Mapping[Resource, int]
    rank: tuple[float, float]
    rank_to: tuple[float, float]
    place: Wish | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings and facts that the rulings depend on. `not_before` is when an evicted job may borrow again."""

    fair_share: bool = True
    in_team: Mapping[str, PreemptTeamTasks] = field(default_factory=dict)
    strict: frozenset[str] = frozenset()
    borrow_priority: int | None = None
    rebalance_before: float | None = None
    """Jobs that started before this time may be evicted for a fairer share; None: no job may be evicted for it now."""
    not_before: Mapping[JobId, float] = field(default_factory=dict)
    held_up: frozenset[JobId] = frozenset()
    """Jobs held up by limits that are not ours: no job is evicted for them."""
    suits: Callable[[Job, frozenset[NodeName] | None], bool] = lambda job, nodes: True
    """Whether a job may start, by Slurm's own test, on these nodes (None: on any) once they are free."""


class Decider:
    """The rulings of one turn: `rulings` on all waiting units, and `yielding`, the running units to evict."""

    def __init__(self, room: Room, rules: Rules) -> None:
        self._room, self._ledger, self._rules = room, room.ledger, rules
        self.rulings: dict[JobId, UnitRuling] = {}
        self.yielding: list[Yielding] = []
        self._blocked: set[tuple[str, int]] = set()
        """Requests that did not fit in this pass, in which room only shrinks."""
        self._requests: dict[JobId, tuple[str, int]] = {}
        """The team and the request of each unit: equal for units that fit, or do not, for the same reasons."""
        self._without_place: set[tuple[str, Wish | None]] = set()
        """Requests within a quota for which no eviction would free nodes."""
        self._without_victims: set[tuple[tuple[str, int], int]] = set()
        """Requests, each with its class, for which no job may be evicted."""
        self._beyond_limit: dict[tuple[str, int], list[dict[Resource, int]]] = {}
        self._lacking: dict[tuple[str, int], Mapping[Resource, int]] = {}
        self._sizes: dict[tuple[int, int, int], Amounts] = {}

    def decide(self, waiting: Iterable[Unit], kept: Iterable[Unit] = ()) -> None:
        """Rule on all waiting units: grant own quotas, then lend, then evict jobs for units that still wait.

        The units in `kept`, for whose jobs nodes are reserved, are served before all others.
        """
        for unit in kept:
            self._grant_first(unit)
        queue, asked = sorted(waiting, key=_queue_order), self._ledger.asked
        self._requests = {unit.id: (_limits_key(unit), id(asked(unit.team, unit.options))) for unit in queue}
        rest = [unit for unit in self._grant_own_quotas(queue) if not self._rule_if_never(unit)]
        self._lend_to_all(rest)
        for unit in queue:
            if self.rulings[unit.id].standing is UnitStanding.WAITS and not unit.replica and self._may_take(unit):
                self._evict_for(unit)

    def _grant_first(self, unit: Unit) -> None:
        """Grant the unit its request before all others."""
        if not unit.options:
            self._rule(unit, UnitStanding.NEVER)
            return
        amounts = unit.options[0]
        is_own = self._ledger.is_entitled(unit.team, amounts)
        self._ledger.take(unit.team, amounts)
        standing = UnitStanding.OWN if is_own else UnitStanding.BORROWED
        self._rule(unit, standing, amounts=amounts, granted=1, borrowed=int(not is_own))

    def _rule_if_never(self, unit: Unit) -> bool:
        """Rule out a unit that can never run, and return whether this is one; its smallest request counts."""
        key = self._requests[unit.id]
        if key not in self._beyond_limit:
            self._beyond_limit[key] = [self._ledger.over_limit(unit.team, each) for each in unit.options]
        beyond = self._beyond_limit[key]
        if all(beyond):
            self._rule(unit, UnitStanding.NEVER, short=beyond[0] if beyond else {})
        return all(beyond)

    def _grant_own_quotas(self, queue: Sequence[Unit]) -> list[Unit]:
        """Grant units their team's own quota, and return the units that this quota does not cover."""
        rest: list[Unit] = []
        stopped: set[str] = set()
        for unit in queue:
            if unit.team in stopped or unit.replica or self._is_blocked(unit) or not self._give_own(unit):
                rest.append(unit)
                # the jobs of a strict team start in order: none passes the first that the quota does not cover
                if unit.team in self._rules.strict and not unit.replica:
                    stopped.add(unit.team)
        return rest

    def _is_blocked(self, unit: Unit) -> bool:
        """Return whether an equal request did not fit in this pass."""
        request = self._requests[unit.id]
        if request in self._blocked:
            return True
        limits, blocked = _limits_key(unit), self._blocked
        if not all((limits, id(self._ledger.counted(unit.team, each))) in blocked for each in unit.options):
            return False
        blocked.add(request)
        return True

    def _give_own(self, unit: Unit) -> bool:
        """Grant the team's own quota to every task, reclaiming from borrowers where needed.

        Return False if some tasks got none.
        """
        ledger, granted = self._ledger, 0
        for amounts in unit.options:
            part = _limits_key(unit), id(ledger.counted(unit.team, amounts))
            if part in self._blocked:
                continue
            size, asked = self._size(unit, amounts, lambda a: ledger.is_entitled(unit.team, a))
            is_held = False
            while granted < unit.count and ledger.is_entitled(unit.team, asked):
                wish = self._wish(unit, asked, size)
                has_room = self._may_take(unit) and self._finds_room(unit, asked, wish)
                is_held = not has_room
                if is_held and self._may_take(unit) and wish is not None:
                    self._room.places.await_plan(unit)
                if is_held and unit.team not in self._rules.strict:
                    self._rule(unit, UnitStanding.OWN, amounts=asked, granted=unit.count, nodes=size, hopeless=True)
                    return True
                self._take(unit, asked)
                if wish is not None and not is_held:
                    self._room.places.take(wish)
                granted += 1
            if granted:
                self._rule(unit, UnitStanding.OWN, amounts=asked, granted=granted, nodes=size, hopeless=is_held)
                return granted == unit.count
            self._blocked.add(part)
        return False

    def _wish(self, unit: Unit, asked: Amounts, size: int = 0) -> Wish | None:
        """Return the nodes that the unit needs; None if nodes are not known."""
        return self._room.wish(unit, asked, size, self._gets_room)

    def _gets_room(self, id: JobId) -> bool:
        ruling = self.rulings.get(id)
        return ruling is not None and ruling.may_run and not ruling.hopeless

    def _finds_room(self, unit: Unit, asked: Amounts, wish: Wish | None) -> bool:
        """Return whether the unit has room, if needed after evicting borrowers for it."""
        has_room = not self._ledger.lacks_nodes(unit.team, asked) and self._has_place(unit, wish)
        return has_room or self._reclaim(unit, asked, wish)

    def _has_place(self, unit: Unit, wish: Wish | None) -> bool:
        """Return whether the unit has room on nodes, or its nodes need not be tested yet."""
        # Slurm may start a new job at once: test nodes only after Slurm has looked at the job, whatever reason it gave
        # (22.05 may name a limit that has room). Only backfill starts heterogeneous jobs: test theirs at once.
        may_start = len(unit.jobs) == 1 and unit.jobs[0].reason in _NOT_YET
        return wish is None or may_start or self._room.places.has_room(wish)

    def _may_take(self, unit: Unit) -> bool:
        """Return whether the unit could start on nodes that others are evicted from."""
        return not unit.apart and unit.id not in self._rules.held_up

    def _reclaim(self, unit: Unit, asked: Amounts, wish: Wish | None) -> bool:
        """Evict borrowers for the unit, whose team's quota covers it. Return False if no eviction would help."""
        if (unit.team, wish) in self._without_place:
            return False
        ranks = self._ranks()
        short = self._ledger.lacks_nodes(unit.team, asked)
        found = self._if_slurm_would_start(unit, wish, pick.take_back(self._room, unit.team, asked, wish))
        if found is None:
            if wish is not None:
                self._without_place.add((unit.team, wish))
            return False
        self._record_evictions(found, unit, Reclaimed.RECLAIM, short, ranks, wish)
        return True

    def _if_slurm_would_start(self, unit: Unit, wish: Wish | None, found: list[Unit] | None) -> list[Unit] | None:
        """Return the found victims if Slurm would start the job on their nodes; else put them back and return None."""
        if not found:
            return found
        nodes = self._room.places.nodes_with_room(wish) if wish is not None else None
        is_lost = wish is not None and (
            self._room.places.may_be_taken(wish, unit, found, self._coming(unit))
            or self._room.places.may_be_kept(wish, unit, self._gets_room)
        )
        if not is_lost and self._rules.suits(unit.jobs[0], nodes):
            return found
        pick.put_all_back(self._room, found)
        return None

    def _coming(self, unit: Unit) -> Iterator[Job]:
        """Yield the other jobs that get room in this turn."""
        for ruling in self.rulings.values():
            if ruling.may_run and not ruling.hopeless and ruling.unit.id != unit.id:
                yield from ruling.unit.jobs

    def _lend_to_all(self, rest: Sequence[Unit]) -> None:
        """Lend to the units: each time to the next unit of the team with the smallest share."""
        self._blocked.clear()
        queues: defaultdict[str, list[Unit]] = defaultdict(list)
        for unit in reversed(rest):
            queues[unit.team].append(unit)
        heap = [self._borrowing_order(queue[-1]) for queue in queues.values()]
        heapq.heapify(heap)
        while heap:
            team = heapq.heappop(heap)[-1]
            queue = queues[team]
            unit = queue.pop()
            if not self._lend(unit) and team in self._rules.strict:
                for behind in queue:
                    self._rule(behind, UnitStanding.BEHIND)
                continue
            while queue and team not in self._rules.strict and self._rule_if_blocked(queue[-1]):
                queue.pop()
            if queue:
                heapq.heappush(heap, self._borrowing_order(queue[-1]))

    def _rule_if_blocked(self, unit: Unit) -> bool:
        """Rule that the unit waits if an equal request did not fit before it; return whether it was ruled on."""
        if not self._is_blocked(unit):
            return False
        if unit.id in self.rulings or unit.id in self._rules.not_before:
            return False
        self._rule(unit, UnitStanding.WAITS, short=self._least_short(unit))
        return True

    def _borrowing_order(self, unit: Unit) -> tuple[tuple[float, float], int, float, int, str]:
        """Return the place of a team's next unit in the order of borrowing."""
        fair = self._rules.fair_share and unit.options
        rank = self._ledger.rank(unit.team, unit.options[0]) if fair else (0.0, 0.0)
        return rank, -unit.weight, unit.since, unit.id, unit.team

    def _lend(self, unit: Unit) -> bool:
        """Lend to as many of the unit's tasks as fit. Return whether all fit."""
        ledger, before = self._ledger, self.rulings.get(unit.id)
        if before is not None:  # the array's tasks beyond the quota borrow on the machine type of the others
            granted = self._grant(unit, before.amounts, unit.count - before.granted)
            self.rulings[unit.id] = replace(before, granted=before.granted + granted, borrowed=granted)
            return before.granted + granted == unit.count
        until = self._rules.not_before.get(unit.id)
        if until is not None:
            self._rule(unit, UnitStanding.BACKS_OFF, until=until)
            return False
        hopeless = False
        for amounts in unit.options:
            part = _limits_key(unit), id(ledger.counted(unit.team, amounts))
            if part in self._blocked:
                continue
            size, asked = self._size(unit, amounts, lambda a: self._fits(unit, a))
            if self._is_hopeless(unit, asked, size):
                hopeless = True
            elif granted := self._grant(unit, asked, unit.count):
                self._rule(unit, UnitStanding.BORROWED, amounts=asked, granted=granted, borrowed=granted, nodes=size)
                return granted == unit.count
            else:
                self._blocked.add(part)
        self._rule(unit, UnitStanding.WAITS, short=self._least_short(unit), hopeless=hopeless)
        return False

    def _is_hopeless(self, unit: Unit, asked: Amounts, size: int) -> bool:
        """Return whether Slurm has looked at the unit, and no eviction of borrowers would give it nodes.

        A heterogeneous job must find all of its nodes now: if its team might borrow what it asks for, Slurm would keep
        nodes for the first of its parts, though the others find none, and no owner could use these.
        """
        # test this even if Slurm's reason is a limit: otherwise the limit is raised, Slurm reports a lack of nodes, the
        # limit is lowered, and so on
        in_parts = len(unit.jobs) > 1
        if (unit.jobs[0].reason in _NOT_YET and not in_parts) or not self._fits(unit, asked):
            return False
        wish = self._wish(unit, asked, size)
        if wish is None or self._room.places.has_room(wish):
            return False
        return in_parts or self._room.is_hopeless(wish)

    def _grant(self, unit: Unit, asked: Amounts, most: int) -> int:
        """Lend to up to `most` tasks; return how many got their request."""
        granted = 0
        while granted < most and self._fits(unit, asked):
            self._take(unit, asked)
            granted += 1
        return granted

    def _fits(self, unit: Unit, asked: Amounts) -> bool:
        """Return whether the team may use the amounts now."""
        return self._ledger.fits(unit.team, asked, apart=unit.apart)

    def _take(self, unit: Unit, asked: Amounts) -> None:
        """Count the amounts as used by the team."""
        self._ledger.take(unit.team, asked, away=asked if unit.apart else None)

    def _size(self, unit: Unit, amounts: Amounts, suits: Callable[[Amounts], bool]) -> tuple[int, Amounts]:
        """Return the largest node count that suits and fits, else the smallest, with its amounts; 0 if not flexible."""

        def is_too_large(size: int) -> bool:
            asked = self._scaled(unit, amounts, size)
            return not (suits(asked) and self._fits(unit, asked))

        # any user may ask for 1 to 60,000 nodes: where a size does not fit, no larger one does
        if fits := bisect_left(unit.sizes, True, key=is_too_large):
            size = unit.sizes[fits - 1]
            return size, self._scaled(unit, amounts, size)
        return (unit.sizes[0], amounts) if unit.sizes else (0, amounts)

    def _scaled(self, unit: Unit, amounts: Amounts, size: int) -> Amounts:
        """Return the amounts for a node count."""
        key = id(amounts), unit.sizes[0], size
        if key not in self._sizes:
            self._sizes[key] = {name: amount * size // unit.sizes[0] for name, amount in amounts.items()}
        return self._sizes[key]

    def _least_short(self, unit: Unit) -> Mapping[Resource, int]:
        """Return what the unit lacks, on the machine type with the fewest lacking resources."""
        # later equal requests lack the same amounts
        key = self._requests[unit.id]
        if key not in self._lacking:
            short = [self._ledger.shortage(unit.team, each, apart=unit.apart) for each in unit.options]
            self._lacking[key] = min(short, key=len, default={})
        return self._lacking[key]

    def _rule(self, unit: Unit, standing: UnitStanding, **found: Any) -> None:
        """Record the ruling on a unit."""
        self.rulings[unit.id] = UnitRuling(unit=unit, standing=standing, **found)

    def _evict_for(self, unit: Unit) -> None:
        """Evict jobs of lower classes, or of teams that borrowed more, for the unit, if the settings allow that."""
        key = self._requests[unit.id], unit.weight
        if key in self._without_victims:
            return
        for amounts in unit.options:
            if any(self._evict_found(unit, amounts, cause, found) for cause, found in self._searches(unit, amounts)):
                return
        self._without_victims.add(key)

    def _searches(self, unit: Unit, asked: Amounts) -> Iterator[tuple[Reclaimed, Callable[[], list[Unit] | None]]]:
        """Yield each cause for which jobs may be evicted for the unit, with the search for victims."""
        room, rules, wish = self._room, self._rules, self._wish(unit, asked)
        in_team = rules.in_team.get(unit.team) is PreemptTeamTasks.LOWER_PRIORITY
        if in_team and room.has_lower(unit.team, unit.weight):
            yield Reclaimed.IN_TEAM, lambda: pick.make_way(room, unit.team, asked, unit.weight, wish)
        below = rules.borrow_priority
        if below is not None:
            yield Reclaimed.PRIORITY, lambda: pick.evict_lower_classes(room, unit.team, asked, unit.weight, below, wish)
        started = rules.rebalance_before
        if started is not None and not self.yielding:
            yield Reclaimed.REBALANCE, lambda: pick.even_out(room, unit.team, asked, started, wish)

    def _evict_found(self, unit: Unit, asked: Amounts, cause: Reclaimed, find: Callable[[], list[Unit] | None]) -> bool:
        """Evict the victims of one search; return whether the unit may run then."""
        wish = self._wish(unit, asked)
        short, ranks = self._ledger.shortage(unit.team, asked), self._ranks()
        found = self._if_slurm_would_start(unit, wish, find())
        if not found:
            return False
        self._record_evictions(found, unit, cause, short, ranks, wish)
        standing = UnitStanding.OWN if self._ledger.is_entitled(unit.team, asked) else UnitStanding.BORROWED
        self._ledger.take(unit.team, asked)
        self._rule(
            unit,
            standing,
            amounts=asked,
            granted=1,
            borrowed=int(standing is UnitStanding.BORROWED),
            nodes=unit.sizes[0] if unit.sizes else 0,
        )
        return True

    def _ranks(self) -> dict[str, tuple[float, float]]:
        """Return the rank of every team."""
        return {team: self._ledger.rank(team) for team in self._ledger.accounts}

    def _record_evictions(
        self,
        victims: Sequence[Unit],
        to: Unit,
        cause: Reclaimed,
        short: Mapping[Resource, int],
        ranks: Mapping[str, tuple[float, float]],
        wish: Wish | None,
    ) -> None:
        """Record the evictions."""
        rank_to, place = ranks[to.team], wish if _has_victims_for_nodes(victims, short) else None
        for unit in victims:
            rank = ranks[unit.team]
            found = Yielding(unit=unit, to=to, cause=cause, short=short, rank=rank, rank_to=rank_to, place=place)
            self.yielding.append(found)


def _has_victims_for_nodes(victims: Sequence[Unit], short: Mapping[Resource, int]) -> bool:
    """Return whether fewer victims would free the amounts, so that the others are evicted for their nodes."""
    freed = {name: sum(unit.options[0].get(name, 0) for unit in victims) for name in short}
    return any(
        all(freed[name] - unit.options[0].get(name, 0) >= amount for name, amount in short.items()) for unit in victims
    )


def _limits_key(unit: Unit) -> str:
    """Return the key of the units that the same limits apply to: the team's, or those of reserved nodes."""
    return f"{unit.team} apart" if unit.apart else unit.team


def _queue_order(unit: Unit) -> tuple[int, float, int]:
    """Return the sort key of a waiting unit: the highest class first, then the oldest."""
    return -unit.weight, unit.since, unit.id
