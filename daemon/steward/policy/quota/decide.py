"""Who may run now, who takes something back from whom, and who has to wait for what. Pure: units in, rulings out."""

import heapq
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
"""Slurm's reasons of jobs that it has not looked at."""


class UnitStanding(Enum):
    OWN = "own"
    """The quota of the job's team covers it: it runs when nodes are free."""
    BORROWED = "borrowed"
    """The job may run with what others lend."""
    WAITS = "waits"
    """For quota: of its team, or of those who lend."""
    NEVER = "never"
    """The job asks for more than its team may ever have, or for nothing that the cluster has."""
    BACKS_OFF = "backs off"
    """The job gave way before, and may borrow again only later."""
    BEHIND = "behind"
    """The jobs of its team start in order, and an earlier one waits."""


@dataclass(slots=True, kw_only=True, eq=False)
class UnitRuling:
    """On one waiting unit. Never changed, as a unit.

    `amounts` is what one of it uses where it may run, `granted` how many of it may, `borrowed` how many of these with
    what others lend. `nodes` is the node count that it may have (0: as it asked). `short` is what it lacks, `until`
    when it may borrow again."""

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
        return self.granted > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Yielding:
    """A running unit has to give way to a waiting one. `short` is what that one lacked in all; ranks are those of their
    teams before it. `place`: the nodes that it lacked, where so much in all would not have been a reason for this unit.
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
    """The wishes of the site that the order depends on. `not_before` is until when a job may not borrow again."""

    fair_share: bool = True
    in_team: Mapping[str, PreemptTeamTasks] = field(default_factory=dict)
    strict: frozenset[str] = frozenset()
    borrow_priority: int | None = None
    rebalance_before: float | None = None
    """Jobs that started before this may give way to a fairer share; None: none may now."""
    not_before: Mapping[JobId, float] = field(default_factory=dict)
    held_up: frozenset[JobId] = frozenset()
    """By limits that are not ours: nobody gives way to them."""
    suits: Callable[[Job, frozenset[NodeName] | None], bool] = lambda job, nodes: True
    """Whether by Slurm's own test a job may start on these nodes (None: on any) when the jobs there have ended."""


class Decider:
    """The rulings of one turn. `rulings` has every waiting unit, `yielding` those that give way."""

    def __init__(self, room: Room, rules: Rules) -> None:
        self._room, self._ledger, self._rules = room, room.ledger, rules
        self.rulings: dict[JobId, UnitRuling] = {}
        self.yielding: list[Yielding] = []
        self._blocked: set[tuple[str, int]] = set()
        """(team, the part of a request that counts) that did not fit in this pass: there is only less later in it. And
        (team, all that a unit asks for), where none of its options fits."""
        self._requests: dict[JobId, tuple[str, int]] = {}
        """(team, all that a unit asks for): equal for units that differ in nothing that counts."""
        self._without_place: set[tuple[str, Wish | None]] = set()
        """Nobody could give way for such a request of the team."""
        self._in_vain: set[tuple[tuple[str, int], int]] = set()
        self._beyond: dict[tuple[str, int], list[dict[Resource, int]]] = {}
        self._lacking: dict[tuple[str, int], Mapping[Resource, int]] = {}
        self._sizes: dict[tuple[int, int, int], Amounts] = {}

    def decide(self, waiting: Iterable[Unit], kept: Iterable[Unit] = ()) -> None:
        """Rule on all waiting units: first those that their team's own quota covers, then those that borrow, then those
        that push out others. Nodes are kept for the units `kept`: they get what they ask for before all others."""
        for unit in kept:
            self._keep(unit)
        queue, asked = sorted(waiting, key=_turn), self._ledger.asked
        self._requests = {unit.id: (_kin(unit), id(asked(unit.team, unit.options))) for unit in queue}
        rest = [unit for unit in self._owners(queue) if not self._ruled_out(unit)]
        self._borrowers(rest)
        for unit in queue:
            if self.rulings[unit.id].standing is UnitStanding.WAITS and not unit.replica and self._may_take(unit):
                self._push_out(unit)

    def _keep(self, unit: Unit) -> None:
        if not unit.options:
            self._rule(unit, UnitStanding.NEVER)
            return
        amounts = unit.options[0]
        is_own = self._ledger.is_entitled(unit.team, amounts)
        self._ledger.take(unit.team, amounts)
        standing = UnitStanding.OWN if is_own else UnitStanding.BORROWED
        self._rule(unit, standing, amounts=amounts, granted=1, borrowed=int(not is_own))

    def _ruled_out(self, unit: Unit) -> bool:
        """The unit can never run; of sizes and machine types the smallest request counts."""
        key = self._requests[unit.id]
        if key not in self._beyond:
            self._beyond[key] = [self._ledger.over_limit(unit.team, each) for each in unit.options]
        beyond = self._beyond[key]
        if all(beyond):
            self._rule(unit, UnitStanding.NEVER, short=beyond[0] if beyond else {})
        return all(beyond)

    def _owners(self, queue: Sequence[Unit]) -> list[Unit]:
        """Give own quota to units, and return those left over. Of a team whose jobs start in order these are all behind
        the first that its quota does not cover."""
        rest: list[Unit] = []
        stopped: set[str] = set()
        for unit in queue:
            if unit.team in stopped or unit.replica or self._is_blocked(unit) or not self._give_own(unit):
                rest.append(unit)
                if unit.team in self._rules.strict and not unit.replica:
                    stopped.add(unit.team)
        return rest

    def _is_blocked(self, unit: Unit) -> bool:
        """A request like it did not fit in this pass."""
        request = self._requests[unit.id]
        if request in self._blocked:
            return True
        kin, blocked = _kin(unit), self._blocked
        if not all((kin, id(self._ledger.counted(unit.team, each))) in blocked for each in unit.options):
            return False
        blocked.add(request)
        return True

    def _give_own(self, unit: Unit) -> bool:
        """All of it, with what it takes to get it back from borrowers. False: something of it is left."""
        ledger, granted = self._ledger, 0
        for amounts in unit.options:
            part = _kin(unit), id(ledger.counted(unit.team, amounts))
            if part in self._blocked:
                continue
            size, asked = self._size(unit, amounts, lambda a: ledger.is_entitled(unit.team, a))
            is_held = False
            while granted < unit.count and ledger.is_entitled(unit.team, asked):
                wish = self._wish(unit, asked, size)
                is_held = not (self._may_take(unit) and self._finds_room(unit, asked, wish))
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
        """The nodes that it needs, where they are known."""
        return self._room.places.wish(unit, asked, size, self._gets_room) if self._room.knows_nodes else None

    def _gets_room(self, id: JobId) -> bool:
        ruling = self.rulings.get(id)
        return ruling is not None and ruling.may_run and not ruling.hopeless

    def _finds_room(self, unit: Unit, asked: Amounts, wish: Wish | None) -> bool:
        """It has room, or others make some."""
        has_room = not self._ledger.lacks_nodes(unit.team, asked) and self._has_place(unit, wish)
        return has_room or self._reclaim(unit, asked, wish)

    def _has_place(self, unit: Unit, wish: Wish | None) -> bool:
        """What has just come may start at once: nodes are looked at when Slurm has looked, whatever its reason, which
        (22.05) may be a limit that has room."""
        return wish is None or unit.jobs[0].reason in _NOT_YET or self._room.places.has(wish)

    def _may_take(self, unit: Unit) -> bool:
        """Whether it could start on what others leave it."""
        return not unit.apart and unit.id not in self._rules.held_up

    def _reclaim(self, unit: Unit, asked: Amounts, wish: Wish | None) -> bool:
        """Take back what others borrowed. False: nobody can give way, so nodes are lacking, and the unit waits for
        them."""
        if (unit.team, wish) in self._without_place:
            return False
        ranks = self._ranks()
        short = self._ledger.lacks_nodes(unit.team, asked)
        found = self._checked(unit, wish, pick.take_back(self._room, unit.team, asked, wish))
        if found is None:
            if wish is not None:
                self._without_place.add((unit.team, wish))
            return False
        self._yield(found, unit, Reclaimed.RECLAIM, short, ranks, wish)
        return True

    def _checked(self, unit: Unit, wish: Wish | None, found: list[Unit] | None) -> list[Unit] | None:
        """Those found, if Slurm would start the job on what they leave; else they stay."""
        nodes = self._room.places.having_room(wish) if found and wish is not None else None
        if not found or self._rules.suits(unit.jobs[0], nodes):
            return found
        pick.put_all_back(self._room, found)
        return None

    def _borrowers(self, rest: Sequence[Unit]) -> None:
        """Team by team in the order of shares, each with its next job."""
        self._blocked.clear()
        queues: defaultdict[str, list[Unit]] = defaultdict(list)
        for unit in reversed(rest):
            queues[unit.team].append(unit)
        heap = [self._key(queue[-1]) for queue in queues.values()]
        heapq.heapify(heap)
        while heap:
            team = heapq.heappop(heap)[-1]
            queue = queues[team]
            unit = queue.pop()
            if not self._lend(unit) and team in self._rules.strict:
                for behind in queue:
                    self._rule(behind, UnitStanding.BEHIND)
                continue
            while queue and team not in self._rules.strict and self._waits_too(queue[-1]):
                queue.pop()
            if queue:
                heapq.heappush(heap, self._key(queue[-1]))

    def _waits_too(self, unit: Unit) -> bool:
        """Rule at once that the unit waits, where its turn can change nothing. True: it was ruled on."""
        if not self._is_blocked(unit):
            return False
        if unit.id in self.rulings or unit.id in self._rules.not_before:
            return False
        self._rule(unit, UnitStanding.WAITS, short=self._least_short(unit))
        return True

    def _key(self, unit: Unit) -> tuple[tuple[float, float], int, float, int, str]:
        fair = self._rules.fair_share and unit.options
        rank = self._ledger.rank(unit.team, unit.options[0]) if fair else (0.0, 0.0)
        return rank, -unit.weight, unit.since, unit.id, unit.team

    def _lend(self, unit: Unit) -> bool:
        """Lend to as many of the unit's tasks as fit. True: to all."""
        ledger, before = self._ledger, self.rulings.get(unit.id)
        if before is not None:  # tasks of an array that the quota does not cover go on as one machine type's
            granted = self._grant(unit, before.amounts, unit.count - before.granted)
            self.rulings[unit.id] = replace(before, granted=before.granted + granted, borrowed=granted)
            return before.granted + granted == unit.count
        until = self._rules.not_before.get(unit.id)
        if until is not None:
            self._rule(unit, UnitStanding.BACKS_OFF, until=until)
            return False
        hopeless = False
        for amounts in unit.options:
            part = _kin(unit), id(ledger.counted(unit.team, amounts))
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
        """Slurm has looked at it, and nobody's borrowed jobs are what keeps it from having nodes. Also where a limit is
        its reason: raised in vain, that would be told as nodes, lowered, and raised again in turn."""
        if unit.jobs[0].reason in _NOT_YET or not self._fits(unit, asked):
            return False
        wish = self._wish(unit, asked, size)
        return wish is not None and not self._room.places.has(wish) and self._room.is_hopeless(wish)

    def _grant(self, unit: Unit, asked: Amounts, most: int) -> int:
        granted = 0
        while granted < most and self._fits(unit, asked):
            self._take(unit, asked)
            granted += 1
        return granted

    def _fits(self, unit: Unit, asked: Amounts) -> bool:
        return self._ledger.fits(unit.team, asked, apart=unit.apart)

    def _take(self, unit: Unit, asked: Amounts) -> None:
        self._ledger.take(unit.team, asked, away=asked if unit.apart else None)

    def _size(self, unit: Unit, amounts: Amounts, suits: Callable[[Amounts], bool]) -> tuple[int, Amounts]:
        """The largest node count of it that suits and fits, else the smallest; 0 where it takes just one."""
        for size in reversed(unit.sizes):
            asked = self._scaled(unit, amounts, size)
            if suits(asked) and self._fits(unit, asked):
                return size, asked
        return (unit.sizes[0], amounts) if unit.sizes else (0, amounts)

    def _scaled(self, unit: Unit, amounts: Amounts, size: int) -> Amounts:
        key = id(amounts), unit.sizes[0], size
        if key not in self._sizes:
            self._sizes[key] = {name: amount * size // unit.sizes[0] for name, amount in amounts.items()}
        return self._sizes[key]

    def _least_short(self, unit: Unit) -> Mapping[Resource, int]:
        """On the machine type where it lacks the fewest things. Equal requests that come later lack as much."""
        key = self._requests[unit.id]
        if key not in self._lacking:
            short = [self._ledger.shortage(unit.team, each, apart=unit.apart) for each in unit.options]
            self._lacking[key] = min(short, key=len, default={})
        return self._lacking[key]

    def _rule(self, unit: Unit, standing: UnitStanding, **found: Any) -> None:
        self.rulings[unit.id] = UnitRuling(unit=unit, standing=standing, **found)

    def _push_out(self, unit: Unit) -> None:
        """Jobs of lower classes, or of teams that borrowed more, where that is wanted."""
        key = self._requests[unit.id], unit.weight
        if key in self._in_vain:
            return
        for amounts in unit.options:
            if any(self._pushed(unit, amounts, cause, found) for cause, found in self._ways(unit, amounts)):
                return
        self._in_vain.add(key)

    def _ways(self, unit: Unit, asked: Amounts) -> Iterator[tuple[Reclaimed, Callable[[], list[Unit] | None]]]:
        room, rules, wish = self._room, self._rules, self._wish(unit, asked)
        in_team = rules.in_team.get(unit.team) is PreemptTeamTasks.LOWER_PRIORITY
        if in_team and room.has_lower(unit.team, unit.weight):
            yield Reclaimed.IN_TEAM, lambda: pick.make_way(room, unit.team, asked, unit.weight, wish)
        below = rules.borrow_priority
        if below is not None:
            yield Reclaimed.PRIORITY, lambda: pick.outrank(room, unit.team, asked, unit.weight, below, wish)
        started = rules.rebalance_before
        if started is not None and not self.yielding:
            yield Reclaimed.REBALANCE, lambda: pick.even_out(room, unit.team, asked, started, wish)

    def _pushed(self, unit: Unit, asked: Amounts, cause: Reclaimed, find: Callable[[], list[Unit] | None]) -> bool:
        wish = self._wish(unit, asked)
        short, ranks = self._ledger.shortage(unit.team, asked), self._ranks()
        found = self._checked(unit, wish, find())
        if not found:
            return False
        self._yield(found, unit, cause, short, ranks, wish)
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
        return {team: self._ledger.rank(team) for team in self._ledger.accounts}

    def _yield(
        self,
        victims: Sequence[Unit],
        to: Unit,
        cause: Reclaimed,
        short: Mapping[Resource, int],
        ranks: Mapping[str, tuple[float, float]],
        wish: Wish | None,
    ) -> None:
        rank_to, place = ranks[to.team], wish if _more_than_enough(victims, short) else None
        for unit in victims:
            rank = ranks[unit.team]
            found = Yielding(unit=unit, to=to, cause=cause, short=short, rank=rank, rank_to=rank_to, place=place)
            self.yielding.append(found)


def _more_than_enough(victims: Sequence[Unit], short: Mapping[Resource, int]) -> bool:
    """So much in all would be there without one of them: it is nodes that are lacking."""
    freed = {name: sum(unit.options[0].get(name, 0) for unit in victims) for name in short}
    return any(
        all(freed[name] - unit.options[0].get(name, 0) >= amount for name, amount in short.items()) for unit in victims
    )


def _kin(unit: Unit) -> str:
    """The units of the same word fit, or do not, for the same reasons."""
    return f"{unit.team} apart" if unit.apart else unit.team


def _turn(unit: Unit) -> tuple[int, float, int]:
    """The highest class first, then the oldest."""
    return -unit.weight, unit.since, unit.id
