"""Random small worlds against brute force over who could go: an owner waits only where nobody's going would help, and
nobody goes without that owner starting for it. `WORLDS=2000` tries more of them."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.model.accounting import Capabilities
from steward.model.ids import JobId, NodeName
from steward.policy.draft import Draft
from steward.policy.quota.turn import take_turn
from steward.views.explain_quota import quota_lines
from tests.builders.picture import Picture
from tests.builders.quota import LISTS, MARKS, WEAK, own
from tests.builders.quota_site import a_site, done, runs, waits

WORLDS = int(os.environ.get("WORLDS", "120"))
NODES, GPUS = ("n1", "n2", "n3"), 4
OWNER, HOPELESS = 99, 98
BIG = "big"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """`gpus` on each of `nodes`, or in all (`total`)."""

    gpus: int
    nodes: int = 1
    required: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    exclusive: bool = False
    feature: str = ""
    total: bool = False

    def starts(self, free: Mapping[str, int], big: Collection[str]) -> bool:
        """Try every set of nodes."""
        may = [n for n in NODES if n not in self.excluded and (not self.feature or n in big)]
        may = [n for n in may if not self.exclusive or free[n] == GPUS]
        counts = range(1, len(may) + 1) if self.total else (self.nodes,)
        sets = chain.from_iterable(combinations(may, count) for count in counts)
        return any(self.required <= set(on) and self._has(free, on) for on in sets)

    def _has(self, free: Mapping[str, int], on: Collection[str]) -> bool:
        if self.total:
            return sum(free[n] for n in on) >= self.gpus and all(free[n] for n in on)
        return all(free[n] >= self.gpus for n in on)

    @property
    def all_gpus(self) -> int:
        return self.gpus if self.total else self.gpus * self.nodes

    def fields(self) -> dict[str, Any]:
        return {
            "node_count": self.nodes,
            "required": frozenset(map(NodeName, self.required)),
            "excluded": frozenset(map(NodeName, self.excluded)),
            "exclusive": self.exclusive,
            "features": self.feature,
            "is_total": self.total,
        }


@dataclass(frozen=True, kw_only=True)
class World:
    """`jobs`: id -> node, GPUs and the end of its QOS. All are of team a; the one that waits is of team b, which owns
    all that a does not."""

    jobs: Mapping[int, tuple[str, int, str]]
    big: frozenset[str]
    shape: Shape
    before: bool
    """A job of four nodes, of the same team, waits before it."""
    can: Capabilities

    def free(self, gone: Collection[int] = ()) -> dict[str, int]:
        return {n: GPUS - sum(g for id, (at, g, _) in self.jobs.items() if at == n and id not in gone) for n in NODES}

    @property
    def owned(self) -> int:
        return sum(gpus for _, gpus, end in self.jobs.values() if end == "g")

    @property
    def borrowed(self) -> list[int]:
        return [id for id, (_, _, end) in self.jobs.items() if end == "b"]

    def ways(self) -> Iterator[tuple[int, ...]]:
        """Every set of borrowed jobs whose going lets it start."""
        sets = chain.from_iterable(combinations(self.borrowed, size) for size in range(len(self.borrowed) + 1))
        return (each for each in sets if self.shape.starts(self.free(each), self.big))

    def picture(self) -> Picture:
        site = a_site(self.can, own("a", self.owned), own("b", len(NODES) * GPUS - self.owned), machines=len(NODES))
        nodes = dict(site.seen.nodes)
        for name in self.big:
            site = site.node(name, features=nodes[NodeName(name)].features | {BIG})
        for id, (node, gpus, end) in self.jobs.items():
            site = runs(site, id, "a", gpus, end, node, started=1000.0 + 7 * id % 13)
        if self.before:
            site = waits(site, HOPELESS, "b", 4, node_count=4, reason="Resources", submitted=site.now - 9)
        gpus = self.shape.all_gpus
        return waits(site, OWNER, "b", gpus, reason="Resources", **self.shape.fields())


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    kind = draw(st.sampled_from(["plain", "nodes", "required", "excluded", "exclusive", "feature", "total"]))
    gpus = draw(st.integers(1, GPUS))
    some = frozenset(draw(st.sets(st.sampled_from(NODES), min_size=1, max_size=2)))
    match kind:
        case "nodes":
            return Shape(gpus=gpus, nodes=draw(st.integers(2, 3)))
        case "required":
            return Shape(gpus=gpus, nodes=max(len(some), draw(st.integers(1, 2))), required=some)
        case "excluded":
            return Shape(gpus=gpus, excluded=some)
        case "exclusive":
            return Shape(gpus=gpus, exclusive=True)
        case "feature":
            return Shape(gpus=gpus, feature=BIG)
        case "total":
            return Shape(gpus=draw(st.integers(1, 8)), total=True)
        case _:
            return Shape(gpus=gpus)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    jobs: dict[int, tuple[str, int, str]] = {}
    for id in range(1, draw(st.integers(0, 8)) + 1):
        node, gpus = draw(st.sampled_from(NODES)), draw(st.integers(1, GPUS))
        if sum(g for at, g, _ in jobs.values() if at == node) + gpus <= GPUS:
            jobs[id] = node, gpus, draw(st.sampled_from("gbb"))
    return World(
        jobs=jobs,
        big=frozenset(draw(st.sets(st.sampled_from(NODES), max_size=2))),
        shape=draw(shapes()),
        before=draw(st.booleans()),
        can=draw(st.sampled_from([LISTS, MARKS, WEAK])),
    )


@settings(max_examples=WORLDS, deadline=None)
@given(worlds())
def test_who_goes_lets_the_owner_start_and_an_owner_waits_only_where_nobody_helps(world: World) -> None:
    if world.shape.all_gpus > len(NODES) * GPUS - world.owned:
        return  # not covered by its quota
    before = world.picture()
    after, _ = done(before)
    going = {int(id) for id, memory in after.memory.quota_jobs.items() if memory.yielding}
    ways = [set(way) for way in world.ways()]
    assert going <= set(world.borrowed)
    if ways and set() not in ways:
        assert going in ways, f"{going} go, of {ways}"
        assert not any(way < going for way in ways), f"{going} go, fewer would do: {ways}"
    else:
        assert not going, f"{going} go in vain"
    _check_told(before, is_hopeless=not ways)


def _check_told(picture: Picture, *, is_hopeless: bool) -> None:
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    turn = take_turn(draft)
    assert turn is not None
    ruling = turn.rulings[JobId(OWNER)]
    assert (ruling.may_run, ruling.hopeless) == (True, is_hopeless)
    text = " ".join(quota_lines(picture.seen.jobs[JobId(OWNER)], draft))
    assert ("no node that it may use would have room" in text) == is_hopeless
    assert ("to give way" in text) == bool([each for each in turn.yielding if each.to.id == OWNER])
