"""Choose the jobs to evict: borrowers of other teams, or jobs of the waiting job's own team.

Jobs are taken out of the ledger one by one until there is room; then those that turn out to be needless are put back.
If there is never room, all are put back. The room must be on nodes that the waiting job can use: if the first jobs in
order leave none there, victims are chosen node by node, with the least harm.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from steward.model.ids import JobId, NodeName
from steward.model.quota import Reclaimed, Resource
from steward.policy.quota.ledger import Ledger
from steward.policy.quota.places import Places, Wish
from steward.policy.quota.requests import Amounts, Unit

_WEIGHED_AT_ONCE = 8
"""How many nodes are weighed again before one is cleared: each clearing changes the share of a team."""
_Harm = tuple[int, tuple[float, float], int, bool, float, float]
_On = dict[NodeName, list[Unit]]


class Room:
    """The running units of each team, with the ledger and the nodes that they are counted on.

    `gone` are the units that were taken, and those that may not be taken; taken units are out of ledger and nodes.
    """

    def __init__(
        self, ledger: Ledger, running: Mapping[str, list[Unit]], places: Callable[[], Places] | None = None
    ) -> None:
        """Take the running units; `places` makes the free resources of each node when needed (None: not known)."""
        self.ledger, self._running = ledger, running
        self._make_places = places
        self._places: Places | None = None
        self._hopeless: dict[Wish, bool] = {}
        self._on: dict[NodeName, list[Unit]] | None = None
        self.evictions: dict[tuple[Reclaimed, str, Wish], tuple[_On, list[tuple[_Harm, NodeName]]]] = {}
        """For each request of a team: the units on each node that may be taken, and a heap of nodes to clear."""
        self._excess: dict[str, list[Unit]] = {}
        self._lowest = {team: min((u.weight for u in units), default=0) for team, units in running.items()}
        self.taken: set[JobId] = set()

    def wish(
        self, unit: Unit, asked: Amounts, size: int = 0, gets_room: Callable[[JobId], bool] = lambda id: False
    ) -> Wish | None:
        """Return the nodes that a waiting unit needs; None if nodes do not decide whether it starts.

        All nodes of a job are in one of its partitions: in the first that has room, or else could have.
        """
        found = self.places.wishes(unit, asked, size, gets_room) if self.knows_nodes else ()
        if len(found) <= 1:
            return next(iter(found), None)
        with_room = (each for each in found if self.places.has_room(each))
        return next(with_room, None) or next((each for each in found if not self.is_hopeless(each)), found[0])

    def is_hopeless(self, wish: Wish) -> bool:
        """Return whether even evicting every borrower would not make room; worked out once for each wish."""
        if wish not in self._hopeless:
            if self._on is None:
                self._on = {}
                for unit in chain.from_iterable(map(self.excess, self._running)):
                    for node in {node for job in unit.jobs for node in job.nodes}:
                        self._on.setdefault(node, []).append(unit)
            here = {node: [u for u in self._on.get(node, ()) if u.id not in self.taken] for node in wish.nodes}
            self._hopeless[wish] = not self.places.has_room_without(wish, here)
        return self._hopeless[wish]

    def excess(self, team: str) -> list[Unit]:
        """Return the team's units beyond its quota, the first to evict first."""
        if team not in self._excess:
            nominal = self.ledger.accounts[team].owned.nominal
            # the quota covers first jobs in `g`, then those of the highest class, then the oldest; a job that it covers
            # only in part is beyond it
            covered: dict[Resource, int] = {}
            beyond: list[Unit] = []
            order = sorted(
                self._running.get(team, ()),
                key=lambda u: (not u.is_guaranteed, u.replica, -u.weight, u.since, u.id),
            )
            for unit in order:
                needs = self.ledger.counted(team, unit.options[0])
                if all(covered.get(name, 0) + amount <= nominal.get(name, 0) for name, amount in needs.items()):
                    for name, amount in needs.items():
                        covered[name] = covered.get(name, 0) + amount
                else:
                    beyond.append(unit)
            self._excess[team] = sorted(beyond, key=_victim_order)
        return self._excess[team]

    def has_lower(self, team: str, weight: int) -> bool:
        """Return whether a job of the team runs in a lower class."""
        return self._lowest.get(team, weight) < weight

    def own_lower(self, team: str, weight: int) -> list[Unit]:
        """Return the team's own running units of lower classes, the first to evict first."""
        return sorted((u for u in self._running.get(team, ()) if u.weight < weight), key=_victim_order)

    @property
    def knows_nodes(self) -> bool:
        """Return whether nodes are known."""
        return self._make_places is not None

    @property
    def places(self) -> Places:
        """Return the free resources of each node."""
        if self._places is None:
            assert self._make_places is not None
            self._places = self._make_places()
        return self._places

    def take(self, unit: Unit) -> None:
        """Take the unit out of the ledger and off its nodes."""
        self.taken.add(unit.id)
        self.ledger.take(unit.team, unit.options[0], -1, away=unit.away)
        if self._places is not None:
            self._places.release(unit)

    def put_back(self, unit: Unit) -> None:
        """Put the unit back into the ledger and on its nodes."""
        self.taken.discard(unit.id)
        self.ledger.take(unit.team, unit.options[0], away=unit.away)
        if self._places is not None:
            self._places.release(unit, -1)


def _victim_order(unit: Unit) -> tuple[int, bool, float, int, int]:
    """Return the sort key of victims: the lowest class, then replicas of elastic runs, the newest, the smallest."""
    return unit.weight, not unit.replica, -unit.since, unit.nodes, -unit.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The demand of a waiting job of a team.

    `lacks` returns the amounts that the job lacks now, `candidates` the units that may be taken for given resources,
    the first to evict first. `wish` are the nodes that the job needs; None: not known.
    """

    team: str
    wanted: Amounts
    wish: Wish | None
    cause: Reclaimed
    lacks: Callable[[], Mapping[Resource, int]]
    candidates: Callable[[Iterable[Resource]], Iterable[Unit]]


def take_back(room: Room, team: str, wanted: Amounts, wish: Wish | None = None) -> list[Unit] | None:
    """Return the units to evict for a job within its team's quota, largest borrowers first; None if none make room."""
    # the job needs only free nodes: without a lack of nodes, a team's borrowing is no reason to evict its jobs
    if wish is not None and not room.places.has_room(wish) and room.is_hopeless(wish):
        return None
    return _choose(
        room,
        Demand(
            team=team,
            wanted=wanted,
            wish=wish,
            cause=Reclaimed.RECLAIM,
            lacks=lambda: room.ledger.lacks_nodes(team, wanted),
            candidates=lambda names: _borrowed(room, team, names),
        ),
    )


def make_way(room: Room, team: str, wanted: Amounts, weight: int, wish: Wish | None = None) -> list[Unit] | None:
    """Return the team's own units of lower classes to evict; None without room, or if the team would borrow more."""
    before = dict(room.ledger.accounts[team].use)
    own = room.own_lower(team, weight)

    def candidates(names: Iterable[Resource]) -> Iterator[Unit]:
        return (unit for unit in own if _helps(room, unit, names))

    found = _choose(room, _demand_with_quotas(room, team, wanted, wish, Reclaimed.IN_TEAM, candidates))
    if found is not None and _borrows_more(room, team, wanted, before):
        put_all_back(room, found)
        return None
    return found


def evict_lower_classes(
    room: Room, team: str, wanted: Amounts, weight: int, below: int, wish: Wish | None = None
) -> list[Unit] | None:
    """Return the units to evict for a job that would borrow: other teams' borrowers of lower classes; else None.

    Their class must be below the job's own (`weight`) and below the site's bound (`below`).
    """

    def candidates(names: Iterable[Resource]) -> Iterator[Unit]:
        return (unit for unit in _borrowed(room, team, names) if unit.weight < min(weight, below))

    return _choose(room, _demand_with_quotas(room, team, wanted, wish, Reclaimed.PRIORITY, candidates))


def even_out(
    room: Room, team: str, wanted: Amounts, started_before: float, wish: Wish | None = None
) -> list[Unit] | None:
    """Return one unit to evict for a job that would borrow, of a team that has borrowed more; None if there is none."""
    after = room.ledger.rank(team, wanted)

    def candidates(names: Iterable[Resource]) -> Iterator[Unit]:
        for unit in _borrowed(room, team, names):
            if room.ledger.rank(unit.team) > after and unit.since <= started_before and not room.taken:
                yield unit

    found = _choose(room, _demand_with_quotas(room, team, wanted, wish, Reclaimed.REBALANCE, candidates))
    if found is not None and len(found) > 1:
        put_all_back(room, found)
        return None
    return found


def _demand_with_quotas(
    room: Room,
    team: str,
    wanted: Amounts,
    wish: Wish | None,
    cause: Reclaimed,
    candidates: Callable[[Iterable[Resource]], Iterable[Unit]],
) -> Demand:
    """Return the demand of a job that needs room in the quotas as well as on nodes."""
    return Demand(
        team=team,
        wanted=wanted,
        wish=wish,
        cause=cause,
        lacks=lambda: room.ledger.shortage(team, wanted),
        candidates=candidates,
    )


def _choose(room: Room, demand: Demand) -> list[Unit] | None:
    """Return the units to evict, already removed from the ledger; None if evicting them makes no room."""
    found, wish = _make_room(room, demand), demand.wish
    if found is None or wish is None or room.places.has_room(wish):
        return found
    put_all_back(room, found)
    return _make_place(room, demand, wish)


def _make_place(room: Room, demand: Demand, wish: Wish) -> list[Unit] | None:
    """Return the units to evict, chosen node by node with the least harm; None if that would not let the job start."""
    places = room.places
    taken = _clear_nodes(room, demand, wish) if wish.is_by_node else _clear_in_all(room, demand, wish)
    more = _make_room(room, demand) if places.has_room(wish) else None
    if more is None:
        put_all_back(room, taken)
        return None
    for unit in taken[::-1]:
        room.put_back(unit)
        if demand.lacks() or not places.has_room(wish):
            room.take(unit)
    return [unit for unit in (*taken, *more) if unit.id in room.taken]


def _clear_in_all(room: Room, demand: Demand, wish: Wish) -> list[Unit]:
    """Take units off the job's nodes, one by one, until the job has room; return the taken units."""
    taken: list[Unit] = []
    for unit in list(demand.candidates(demand.wanted)):
        if room.places.has_room(wish):
            break
        if unit.id not in room.taken and any(job.nodes & wish.nodes for job in unit.jobs):
            room.take(unit)
            taken.append(unit)
    return taken


def _clear_nodes(room: Room, demand: Demand, wish: Wish) -> list[Unit]:
    """Clear node after node, required nodes first, until the job has its nodes or no node is left; return the units."""
    places, (on, ways) = room.places, _nodes_to_clear(room, demand, wish)
    taken: list[Unit] = []
    for node in sorted(wish.required):
        if places.lacks(wish, node):
            way = _units_to_clear(room, wish, node, on, demand.cause)
            if not way:
                return taken
            _take_all(room, way)
            taken += way
    while not places.has_room(wish):
        first = [heapq.heappop(ways)[1] for _ in range(min(len(ways), _WEIGHED_AT_ONCE))]
        now = ((_units_to_clear(room, wish, node, on, demand.cause), node) for node in first)
        again = sorted((_harm(room, way, places.now), node, way) for way, node in now if way)
        if not again:
            if not ways:
                break
            continue
        for harm, node, _ in again[1:]:
            heapq.heappush(ways, (harm, node))
        _take_all(room, again[0][2])
        taken += again[0][2]
    return taken


def _nodes_to_clear(room: Room, demand: Demand, wish: Wish) -> tuple[_On, list[tuple[_Harm, NodeName]]]:
    """Return the units on each node that may be taken for the demand, and a heap of nodes to clear."""
    key = demand.cause, demand.team, wish
    if (known := room.evictions.get(key)) is None:
        on: _On = {}
        for unit in demand.candidates(demand.wanted):
            for node in {node for job in unit.jobs for node in job.nodes & wish.nodes}:
                on.setdefault(node, []).append(unit)
        found = ((_units_to_clear(room, wish, node, on, demand.cause), node) for node in on)
        known = room.evictions[key] = on, [(_harm(room, way, room.places.now), node) for way, node in found if way]
        heapq.heapify(known[1])
    return known


def _take_all(room: Room, units: Iterable[Unit]) -> None:
    """Take the units out of the ledger and off their nodes."""
    for unit in units:
        room.take(unit)


def _units_to_clear(room: Room, wish: Wish, node: NodeName, on: _On, cause: Reclaimed) -> list[Unit]:
    """Return the units that must leave the node so that the job has room there; empty if it has room, or gets none."""
    places, taken = room.places, list[Unit]()
    for unit in on.get(node, ()):
        is_theirs = cause is Reclaimed.IN_TEAM or room.ledger.borrows(unit.team, unit.options[0])
        if is_theirs and _helps(room, unit, places.lacks(wish, node)):
            room.take(unit)
            taken.append(unit)
    is_clear = not places.lacks(wish, node)
    # put back the needless ones; then, as this only finds the units, the needed ones, too
    for unit in taken[::-1]:
        room.put_back(unit)
        if is_clear and places.lacks(wish, node):
            room.take(unit)
    needed = [unit for unit in taken if unit.id in room.taken]
    put_all_back(room, needed)
    return needed


def _harm(room: Room, units: Sequence[Unit], now: float) -> _Harm:
    """Return the harm of an eviction as a sort key."""
    # least harm: fewest jobs, teams that borrowed most, lowest class, replicas, newest jobs, fewest lost hours of
    # accelerators (or CPUs)
    least = min(room.ledger.rank(unit.team) for unit in units)
    lost = sum(room.ledger.decisive(unit.options[0]) * max(0.0, now - unit.since) for unit in units)
    return (
        len(units),
        (-least[0], -least[1]),
        max(unit.weight for unit in units),
        any(not unit.replica for unit in units),
        -min(unit.since for unit in units),
        lost,
    )


def put_all_back(room: Room, taken: Iterable[Unit]) -> None:
    """Put the units back into the ledger and on their nodes."""
    for unit in taken:
        room.put_back(unit)


def _make_room(room: Room, demand: Demand) -> list[Unit] | None:
    """Take units until nothing is lacking, and return the needed ones; None, with all put back, if that fails."""
    taken: list[Unit] = []
    while short := demand.lacks():
        found = next((unit for unit in demand.candidates(short) if unit.id not in room.taken), None)
        if found is None:
            put_all_back(room, taken)
            return None
        room.take(found)
        taken.append(found)
    for unit in taken[::-1]:
        room.put_back(unit)
        if demand.lacks():
            room.take(unit)
    return [unit for unit in taken if unit.id in room.taken]


def _borrowed(room: Room, team: str, names: Iterable[Resource]) -> Iterator[Unit]:
    """Yield other teams' units beyond their quotas that have one of the lacking resources."""
    ledger, short = room.ledger, list(names)
    others = [other for other in ledger.accounts if other != team and ledger.borrows(other)]
    for other in sorted(others, key=lambda each: (ledger.rank(each), each), reverse=True):
        for unit in room.excess(other):
            if _helps(room, unit, short) and ledger.borrows(other, unit.options[0]):
                yield unit


def _helps(room: Room, unit: Unit, names: Iterable[Resource]) -> bool:
    """Return whether the unit has one of these resources and is not taken."""
    return unit.id not in room.taken and any(unit.options[0].get(name) for name in names)


def _borrows_more(room: Room, team: str, wanted: Amounts, before: Mapping[Resource, int]) -> bool:
    """Return whether the team would borrow more than before."""
    account, needs = room.ledger.accounts[team], room.ledger.counted(team, wanted)
    for name in account.use.keys() | needs.keys():
        nominal = account.owned.nominal.get(name, 0)
        after = account.use.get(name, 0) + needs.get(name, 0)
        if max(0, after - nominal) > max(0, before.get(name, 0) - nominal):
            return True
    return False
