"""Who gives way: from whom what was borrowed is taken back, and which of a team's own jobs make room for another.

Jobs are taken one by one until there is room; then those that turn out not to be needed are put back. When it does not
come to that, nobody is taken. Where we make the room ourselves it has to be on nodes of the one that waits: if those
who are next leave none there, they are chosen node by node, with the least harm.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from steward.model.ids import JobId, NodeName
from steward.model.quota import Resource
from steward.policy.quota.ledger import Ledger
from steward.policy.quota.places import Places, Wish
from steward.policy.quota.requests import Amounts, Unit

_LOOKED_AT = 8
"""So many nodes are weighed anew before one is cleared: with each that is, the share of a team changes."""
_Harm = tuple[int, tuple[float, float], int, bool, float, float]


class Room:
    """The running units of each team and the ledger that they stand in; those taken are out of both, and `gone`, as are
    those that may not be taken."""

    def __init__(
        self, ledger: Ledger, running: Mapping[str, list[Unit]], places: Callable[[], Places] | None = None
    ) -> None:
        """`places`: where we make room ourselves, what is free on each node; asked for once, when it is needed."""
        self.ledger, self._running = ledger, running
        self._make_places = places
        self._places: Places | None = None
        self._hopeless: dict[Wish, bool] = {}
        self._on: dict[NodeName, list[Unit]] | None = None
        self.ways: dict[tuple[str, Wish], tuple[dict[NodeName, list[Unit]], list[tuple[_Harm, NodeName]]]] = {}
        """For requests of a team: the borrowers on each node, and the nodes that can be cleared, a heap; what changed
        since is looked at when a node is taken from it."""
        self._excess: dict[str, list[Unit]] = {}
        self._lowest = {team: min((u.weight for u in units), default=0) for team, units in running.items()}
        self.gone: set[JobId] = set()

    def is_hopeless(self, places: Places, wish: Wish) -> bool:
        """Not even all that anybody borrowed would make room for it: asked once for each request."""
        if wish not in self._hopeless:
            if self._on is None:
                self._on = {}
                for unit in chain.from_iterable(map(self.excess, self._running)):
                    for node in {node for job in unit.jobs for node in job.nodes}:
                        self._on.setdefault(node, []).append(unit)
            here = {node: [u for u in self._on.get(node, ()) if u.id not in self.gone] for node in wish.nodes}
            can = sum(places.would_have(wish, node, units) for node, units in here.items())
            self._hopeless[wish] = can < wish.count
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
    def places(self) -> Places | None:
        """None: Slurm makes the room, and looks at nodes by itself."""
        if self._places is None and self._make_places is not None:
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


def take_back(room: Room, team: str, wanted: Amounts, wish: Wish | None = None) -> list[Unit] | None:
    """For a job that its team's quota covers: from the team with the highest share on what is lacking, again and
    again. `wish`: the nodes that it needs."""
    places = room.places
    if wish is not None and places is not None and not places.has(wish) and room.is_hopeless(places, wish):
        return None
    found = _make_room(room, team, wanted, lambda short: _borrowed(room, team, short))
    if found is None or wish is None or places is None or places.has(wish):
        return found
    _put_all_back(room, found)
    return _make_place(room, places, team, wanted, wish)


def _make_place(room: Room, places: Places, team: str, wanted: Amounts, wish: Wish) -> list[Unit] | None:
    """Node by node, the one with the least harm first, until the job has its nodes; then the quotas' part. None: nobody
    who may be taken would let it start."""
    taken = _clear_nodes(room, places, team, wanted, wish)
    more = None
    if places.has(wish):
        more = _make_room(room, team, wanted, lambda short: _borrowed(room, team, short))
    if more is None:
        _put_all_back(room, taken)
        return None
    for unit in taken[::-1]:
        room.put_back(unit)
        if not (room.ledger.fits(team, wanted) and places.has(wish)):
            room.take(unit)
    return [unit for unit in (*taken, *more) if unit.id in room.gone]


def _clear_nodes(room: Room, places: Places, team: str, wanted: Amounts, wish: Wish) -> list[Unit]:
    """Those taken for it, until the job has its nodes or no node can be cleared any more."""
    counted = room.ledger.counted(team, wanted)
    if (known := room.ways.get((team, wish))) is None:
        on: dict[NodeName, list[Unit]] = {}
        for unit in _borrowed(room, team, counted):
            for node in {node for job in unit.jobs for node in job.nodes & wish.nodes}:
                on.setdefault(node, []).append(unit)
        found = ((_clear(room, places, counted, wish, node, on), node) for node in on)
        known = room.ways[team, wish] = on, [(_harm(room, way, places.now), node) for way, node in found if way]
        heapq.heapify(known[1])
    on, ways = known
    taken: list[Unit] = []
    while not places.has(wish):
        first = [heapq.heappop(ways)[1] for _ in range(min(len(ways), _LOOKED_AT))]
        now = ((_clear(room, places, counted, wish, node, on), node) for node in first)
        again = sorted((_harm(room, way, places.now), node, way) for way, node in now if way)
        if not again:
            if not ways:
                break
            continue
        for harm, node, _ in again[1:]:
            heapq.heappush(ways, (harm, node))
        for unit in again[0][2]:
            room.take(unit)
        taken += again[0][2]
    return taken


def _clear(
    room: Room, places: Places, counted: Amounts, wish: Wish, node: NodeName, on: Mapping[NodeName, list[Unit]]
) -> list[Unit]:
    """The borrowers who would have to leave this node for one part of the job; empty: it has room, or gets none. All
    of them stay for now."""
    taken: list[Unit] = []
    for unit in on[node]:
        lacking = places.lacks(wish, node) & counted.keys()
        if unit.id not in room.gone and _gives(room, unit, lacking):
            room.take(unit)
            taken.append(unit)
    is_clear = not places.lacks(wish, node)
    for unit in taken[::-1]:
        room.put_back(unit)
        if is_clear and places.lacks(wish, node):
            room.take(unit)
    needed = [unit for unit in taken if unit.id in room.gone]
    _put_all_back(room, needed)
    return needed


def _gives(room: Room, unit: Unit, lacking: Iterable[Resource]) -> bool:
    """It has something of what is lacking, and its team still borrows that."""
    needs, account = room.ledger.counted(unit.team, unit.options[0]), room.ledger.accounts[unit.team]
    return any(needs.get(name) and account.borrowed(name) for name in lacking)


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


def _put_all_back(room: Room, taken: Iterable[Unit]) -> None:
    for unit in taken:
        room.put_back(unit)


def make_way(room: Room, team: str, wanted: Amounts, weight: int) -> list[Unit] | None:
    """Within the team, from jobs of a lower class; what it borrows does not grow."""
    before = dict(room.ledger.accounts[team].use)
    own = room.own_lower(team, weight)
    found = _make_room(room, team, wanted, lambda short: (u for u in own if _helps(room, u, short)))
    if found is not None and _borrows_more(room, team, wanted, before):
        for unit in found:
            room.put_back(unit)
        return None
    return found


def outrank(room: Room, team: str, wanted: Amounts, weight: int, below: int) -> list[Unit] | None:
    """For a job that would borrow: from what other teams borrowed, jobs of lower classes than its own and `below`."""

    def candidates(short: Mapping[Resource, int]) -> Iterator[Unit]:
        return (unit for unit in _borrowed(room, team, short) if unit.weight < min(weight, below))

    return _make_room(room, team, wanted, candidates)


def even_out(room: Room, team: str, wanted: Amounts, started_before: float) -> list[Unit] | None:
    """For a job that would borrow: one job of a team that has borrowed more than its team will have."""
    after = room.ledger.rank(team, wanted)

    def candidates(short: Mapping[Resource, int]) -> Iterator[Unit]:
        for unit in _borrowed(room, team, short):
            if room.ledger.rank(unit.team) > after and unit.since <= started_before and not room.gone:
                yield unit

    return _make_room(room, team, wanted, candidates)


def _make_room(
    room: Room, team: str, wanted: Amounts, candidates: Callable[[Mapping[Resource, int]], Iterable[Unit]]
) -> list[Unit] | None:
    """The ones taken, out of the ledger; None: there is no room that way, and nobody is."""
    taken: list[Unit] = []
    while short := room.ledger.shortage(team, wanted):
        found = next((unit for unit in candidates(short) if unit.id not in room.gone), None)
        if found is None:
            for unit in taken:
                room.put_back(unit)
            return None
        room.take(found)
        taken.append(found)
    for unit in taken[::-1]:
        room.put_back(unit)
        if not room.ledger.fits(team, wanted):
            room.take(unit)
    return [unit for unit in taken if unit.id in room.gone]


def _borrowed(room: Room, team: str, short: Mapping[Resource, int]) -> Iterator[Unit]:
    """Jobs that other teams run beyond their quotas on what is lacking."""
    ledger = room.ledger
    others = [other for other in ledger.accounts if other != team and ledger.borrows(other, short)]
    for other in sorted(others, key=lambda each: (ledger.rank(each), each), reverse=True):
        account = ledger.accounts[other]
        names = [name for name in short if account.borrowed(name)]
        for unit in room.excess(other):
            needs = ledger.counted(other, unit.options[0])
            if unit.id not in room.gone and any(needs.get(name) for name in names):
                yield unit


def _helps(room: Room, unit: Unit, short: Mapping[Resource, int]) -> bool:
    needs = room.ledger.counted(unit.team, unit.options[0])
    return unit.id not in room.gone and any(needs.get(name) for name in short)


def _borrows_more(room: Room, team: str, wanted: Amounts, before: Mapping[Resource, int]) -> bool:
    account, needs = room.ledger.accounts[team], room.ledger.counted(team, wanted)
    for name in account.use.keys() | needs.keys():
        nominal = account.owned.nominal.get(name, 0)
        after = account.use.get(name, 0) + needs.get(name, 0)
        if max(0, after - nominal) > max(0, before.get(name, 0) - nominal):
            return True
    return False
