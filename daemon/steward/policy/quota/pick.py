"""Who gives way: from whom what was borrowed is taken back, and which of a team's own jobs make room for another.

Jobs are taken one by one until there is room; then those that turn out not to be needed are put back. When it does not
come to that, nobody is taken. The room has to be on nodes of the one that waits: if those who are next leave none
there, they are chosen node by node, with the least harm.
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

_LOOKED_AT = 8
"""So many nodes are weighed anew before one is cleared: with each that is, the share of a team changes."""
_Harm = tuple[int, tuple[float, float], int, bool, float, float]
_On = dict[NodeName, list[Unit]]


class Room:
    """The running units of each team and the ledger that they stand in; those taken are out of both, and `gone`, as are
    those that may not be taken."""

    def __init__(
        self, ledger: Ledger, running: Mapping[str, list[Unit]], places: Callable[[], Places] | None = None
    ) -> None:
        """`places`: what is free on each node; asked for once, when it is needed. None: nobody knows of nodes."""
        self.ledger, self._running = ledger, running
        self._make_places = places
        self._places: Places | None = None
        self._hopeless: dict[Wish, bool] = {}
        self._on: dict[NodeName, list[Unit]] | None = None
        self.ways: dict[tuple[Reclaimed, str, Wish], tuple[_On, list[tuple[_Harm, NodeName]]]] = {}
        """For requests of a team: those on each node who may be taken, and the nodes that can be cleared, a heap; what
        changed since is looked at when a node is taken from it."""
        self._excess: dict[str, list[Unit]] = {}
        self._lowest = {team: min((u.weight for u in units), default=0) for team, units in running.items()}
        self.gone: set[JobId] = set()

    def is_hopeless(self, wish: Wish) -> bool:
        """Not even all that anybody borrowed would make room for it: asked once for each request."""
        if wish not in self._hopeless:
            if self._on is None:
                self._on = {}
                for unit in chain.from_iterable(map(self.excess, self._running)):
                    for node in {node for job in unit.jobs for node in job.nodes}:
                        self._on.setdefault(node, []).append(unit)
            here = {node: [u for u in self._on.get(node, ()) if u.id not in self.gone] for node in wish.nodes}
            self._hopeless[wish] = not self.places.could(wish, here)
        return self._hopeless[wish]

    def excess(self, team: str) -> list[Unit]:
        """Jobs beyond the team's quota, who goes first first. Its quota covers its guaranteed jobs, then those of the
        highest class, then the oldest; a job that fits only in part is beyond."""
        if team not in self._excess:
            nominal = self.ledger.accounts[team].owned.nominal
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
            self._excess[team] = sorted(beyond, key=_goes_first)
        return self._excess[team]

    def has_lower(self, team: str, weight: int) -> bool:
        """Some job of the team runs in a lower class."""
        return self._lowest.get(team, weight) < weight

    def own_lower(self, team: str, weight: int) -> list[Unit]:
        """The team's own running jobs below a class, who goes first first."""
        return sorted((u for u in self._running.get(team, ()) if u.weight < weight), key=_goes_first)

    @property
    def knows_nodes(self) -> bool:
        return self._make_places is not None

    @property
    def places(self) -> Places:
        if self._places is None:
            assert self._make_places is not None
            self._places = self._make_places()
        return self._places

    def take(self, unit: Unit) -> None:
        self.gone.add(unit.id)
        self.ledger.take(unit.team, unit.options[0], -1, away=unit.away)
        if self._places is not None:
            self._places.let_go(unit)

    def put_back(self, unit: Unit) -> None:
        self.gone.discard(unit.id)
        self.ledger.take(unit.team, unit.options[0], away=unit.away)
        if self._places is not None:
            self._places.let_go(unit, -1)


def _goes_first(unit: Unit) -> tuple[int, bool, float, int, int]:
    """The lowest class, then replicas of elastic runs, then the newest, then the smallest."""
    return unit.weight, not unit.replica, -unit.since, unit.nodes, -unit.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Of a waiting job of a team. `lacks` is what it lacks now, `candidates` are those who may be taken for that, who
    goes first first. `wish`: the nodes that it needs; None: nobody knows."""

    team: str
    wanted: Amounts
    wish: Wish | None
    cause: Reclaimed
    lacks: Callable[[], Mapping[Resource, int]]
    candidates: Callable[[Iterable[Resource]], Iterable[Unit]]


def take_back(room: Room, team: str, wanted: Amounts, wish: Wish | None = None) -> list[Unit] | None:
    """For a job that its team's quota covers: from the team with the highest share on what is lacking, again and
    again. It needs free nodes, and no more: what others borrowed beyond these is no reason to end their jobs."""
    if wish is not None and not room.places.has(wish) and room.is_hopeless(wish):
        return None
    return _taken(
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
    """Within the team, from jobs of a lower class; what it borrows does not grow."""
    before = dict(room.ledger.accounts[team].use)
    own = room.own_lower(team, weight)

    def candidates(names: Iterable[Resource]) -> Iterator[Unit]:
        return (unit for unit in own if _helps(room, unit, names))

    found = _taken(room, _pushing(room, team, wanted, wish, Reclaimed.IN_TEAM, candidates))
    if found is not None and _borrows_more(room, team, wanted, before):
        put_all_back(room, found)
        return None
    return found


def outrank(
    room: Room, team: str, wanted: Amounts, weight: int, below: int, wish: Wish | None = None
) -> list[Unit] | None:
    """For a job that would borrow: from what other teams borrowed, jobs of lower classes than its own and `below`."""

    def candidates(names: Iterable[Resource]) -> Iterator[Unit]:
        return (unit for unit in _borrowed(room, team, names) if unit.weight < min(weight, below))

    return _taken(room, _pushing(room, team, wanted, wish, Reclaimed.PRIORITY, candidates))


def even_out(
    room: Room, team: str, wanted: Amounts, started_before: float, wish: Wish | None = None
) -> list[Unit] | None:
    """For a job that would borrow: one job of a team that has borrowed more than its team will have."""
    after = room.ledger.rank(team, wanted)

    def candidates(names: Iterable[Resource]) -> Iterator[Unit]:
        for unit in _borrowed(room, team, names):
            if room.ledger.rank(unit.team) > after and unit.since <= started_before and not room.gone:
                yield unit

    found = _taken(room, _pushing(room, team, wanted, wish, Reclaimed.REBALANCE, candidates))
    if found is not None and len(found) > 1:
        put_all_back(room, found)
        return None
    return found


def _pushing(
    room: Room,
    team: str,
    wanted: Amounts,
    wish: Wish | None,
    cause: Reclaimed,
    candidates: Callable[[Iterable[Resource]], Iterable[Unit]],
) -> Demand:
    """The demand of a job that needs room in the quotas, too."""
    return Demand(
        team=team,
        wanted=wanted,
        wish=wish,
        cause=cause,
        lacks=lambda: room.ledger.shortage(team, wanted),
        candidates=candidates,
    )


def _taken(room: Room, demand: Demand) -> list[Unit] | None:
    """The ones taken, out of the ledger; None: there is no room that way, and nobody is."""
    found, wish = _make_room(room, demand), demand.wish
    if found is None or wish is None or room.places.has(wish):
        return found
    put_all_back(room, found)
    return _make_place(room, demand, wish)


def _make_place(room: Room, demand: Demand, wish: Wish) -> list[Unit] | None:
    """Node by node, the one with the least harm first, until the job has its nodes; then the quotas' part. None: nobody
    who may be taken would let it start."""
    places = room.places
    taken = _clear_nodes(room, demand, wish) if wish.is_by_node else _clear_in_all(room, demand, wish)
    more = _make_room(room, demand) if places.has(wish) else None
    if more is None:
        put_all_back(room, taken)
        return None
    for unit in taken[::-1]:
        room.put_back(unit)
        if demand.lacks() or not places.has(wish):
            room.take(unit)
    return [unit for unit in (*taken, *more) if unit.id in room.gone]


def _clear_in_all(room: Room, demand: Demand, wish: Wish) -> list[Unit]:
    """For a job that asks for a total, or has parts: those on its nodes, one by one, until it has that."""
    taken: list[Unit] = []
    for unit in list(demand.candidates(demand.wanted)):
        if room.places.has(wish):
            break
        if unit.id not in room.gone and any(job.nodes & wish.nodes for job in unit.jobs):
            room.take(unit)
            taken.append(unit)
    return taken


def _clear_nodes(room: Room, demand: Demand, wish: Wish) -> list[Unit]:
    """Those taken for it, until the job has its nodes or no node can be cleared any more. The nodes that it requires
    come first."""
    places, (on, ways) = room.places, _ways(room, demand, wish)
    taken: list[Unit] = []
    for node in sorted(wish.required):
        if places.lacks(wish, node):
            way = _clear(room, wish, node, on, demand.cause)
            if not way:
                return taken
            _take_all(room, way)
            taken += way
    while not places.has(wish):
        first = [heapq.heappop(ways)[1] for _ in range(min(len(ways), _LOOKED_AT))]
        now = ((_clear(room, wish, node, on, demand.cause), node) for node in first)
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


def _ways(room: Room, demand: Demand, wish: Wish) -> tuple[_On, list[tuple[_Harm, NodeName]]]:
    key = demand.cause, demand.team, wish
    if (known := room.ways.get(key)) is None:
        on: _On = {}
        for unit in demand.candidates(demand.wanted):
            for node in {node for job in unit.jobs for node in job.nodes & wish.nodes}:
                on.setdefault(node, []).append(unit)
        found = ((_clear(room, wish, node, on, demand.cause), node) for node in on)
        known = room.ways[key] = on, [(_harm(room, way, room.places.now), node) for way, node in found if way]
        heapq.heapify(known[1])
    return known


def _take_all(room: Room, units: Iterable[Unit]) -> None:
    for unit in units:
        room.take(unit)


def _clear(room: Room, wish: Wish, node: NodeName, on: _On, cause: Reclaimed) -> list[Unit]:
    """Those who would have to leave this node for one part of the job; empty: it has room, or gets none. All of them
    stay for now."""
    places, taken = room.places, list[Unit]()
    for unit in on.get(node, ()):
        is_theirs = cause is Reclaimed.IN_TEAM or room.ledger.borrows(unit.team, unit.options[0])
        if is_theirs and _helps(room, unit, places.lacks(wish, node)):
            room.take(unit)
            taken.append(unit)
    is_clear = not places.lacks(wish, node)
    for unit in taken[::-1]:
        room.put_back(unit)
        if is_clear and places.lacks(wish, node):
            room.take(unit)
    needed = [unit for unit in taken if unit.id in room.gone]
    put_all_back(room, needed)
    return needed


def _harm(room: Room, units: Sequence[Unit], now: float) -> _Harm:
    """The fewest jobs, then those of who borrowed most, of the lowest class, replicas, the newest; at last those that
    lose the fewest hours of accelerators (or CPUs)."""
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
    for unit in taken:
        room.put_back(unit)


def _make_room(room: Room, demand: Demand) -> list[Unit] | None:
    """Those taken one by one until nothing is lacking, without those that turn out not to be needed. None: something
    still is, and nobody is taken."""
    taken: list[Unit] = []
    while short := demand.lacks():
        found = next((unit for unit in demand.candidates(short) if unit.id not in room.gone), None)
        if found is None:
            put_all_back(room, taken)
            return None
        room.take(found)
        taken.append(found)
    for unit in taken[::-1]:
        room.put_back(unit)
        if demand.lacks():
            room.take(unit)
    return [unit for unit in taken if unit.id in room.gone]


def _borrowed(room: Room, team: str, names: Iterable[Resource]) -> Iterator[Unit]:
    """Jobs that other teams run beyond their quotas and that have something of what is lacking."""
    ledger, short = room.ledger, list(names)
    others = [other for other in ledger.accounts if other != team and ledger.borrows(other)]
    for other in sorted(others, key=lambda each: (ledger.rank(each), each), reverse=True):
        for unit in room.excess(other):
            if _helps(room, unit, short) and ledger.borrows(other, unit.options[0]):
                yield unit


def _helps(room: Room, unit: Unit, names: Iterable[Resource]) -> bool:
    """It has something of these, and nobody has taken it."""
    return unit.id not in room.gone and any(unit.options[0].get(name) for name in names)


def _borrows_more(room: Room, team: str, wanted: Amounts, before: Mapping[Resource, int]) -> bool:
    account, needs = room.ledger.accounts[team], room.ledger.counted(team, wanted)
    for name in account.use.keys() | needs.keys():
        nominal = account.owned.nominal.get(name, 0)
        after = account.use.get(name, 0) + needs.get(name, 0)
        if max(0, after - nominal) > max(0, before.get(name, 0) - nominal):
            return True
    return False
