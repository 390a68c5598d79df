"""A cache of facts about nodes, agents and jobs: the time for a plan grows with the changes, not with the cluster.

The facts of a record are found once; a record that is the same object as in the picture before is skipped. A plan
without the cache is the same plan (tests/property/test_fact_cache.py). The cache relies on this: pictures and their
records never change once they are made.
"""

from collections.abc import Callable, Hashable, Mapping
from collections.abc import Set as AbstractSet
from itertools import compress, count
from operator import is_, is_not
from typing import Any, Generic, ParamSpec, TypeVar

from steward.model.health import Incarnation
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.node import Node, Size
from steward.model.observed import AgentView, Observed
from steward.policy.traits import connected_incarnation, traits_of_agent, traits_of_job, traits_of_node

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
R = TypeVar("R")
T = TypeVar("T")
P = ParamSpec("P")
_NO_TRAITS: frozenset[Hashable] = frozenset()
_NO_KEYS: frozenset[Any] = frozenset()
Registered = tuple[Size, float | None]
"""A node's size in slurm.conf, and when its slurmd started."""
_MOST_SHARED = 4096
"""Records with equal sets of traits share one object, for up to this many different sets."""


class Index(Generic[K, V, R]):
    """An index of records by trait, which also keeps one fact of each record (`told`).

    The same object must never be under two keys.
    """

    def __init__(
        self, traits: Callable[[V], frozenset[Hashable]], tells: Callable[[V], R | None] = lambda _: None
    ) -> None:
        self._traits, self._tells = traits, tells
        self._forget_all()

    def _forget_all(self) -> None:
        self._records: Mapping[K, V] = {}
        self._traits_of: dict[K, frozenset[Hashable]] = {}
        self._shared: dict[frozenset[Hashable], frozenset[Hashable]] = {}
        self._having: dict[Hashable, set[K]] = {}
        self._stamps: dict[Hashable, object] = {}
        self._told: dict[K, R] = {}
        self.keys_stamp, self.facts_stamp = object(), object()
        """Stamps that are replaced by new objects at each change of the keys, and of the facts."""

    def follow(self, records: Mapping[K, V]) -> None:
        """Make this the index of `records`."""
        if records is self._records:
            return
        try:
            changed, gone = changes(self._records, records)
            for key in gone:
                self._put(key, _NO_TRAITS, None)
                del self._traits_of[key]
            for key, record in changed:
                self._put(key, self._traits(record), self._tells(record))
        except BaseException:
            self._forget_all()
            raise
        if gone or len(records) > len(self._records):
            self.keys_stamp = object()
        self._records = records

    def having(self, trait: Hashable) -> AbstractSet[K]:
        """Return the keys of records with this trait. Do not keep the set: the next picture changes it."""
        return self._having.get(trait, _NO_KEYS)

    def stamp(self, trait: Hashable) -> object:
        """Return a stamp that is replaced by a new object when a record that has or had this trait changes."""
        return self._stamps.setdefault(trait, object())

    def kinds(self, kind: type[T]) -> list[T]:
        """Return the traits of this kind that at least one record has."""
        return [trait for trait in self._having if isinstance(trait, kind)]

    @property
    def facts(self) -> Mapping[K, R]:
        """Return key -> the fact of its record. Do not keep the mapping: the next picture changes it."""
        return self._told

    def _put(self, key: K, traits: frozenset[Hashable], told: R | None) -> None:
        before = self._traits_of.get(key, _NO_TRAITS)
        for trait in before | traits:
            self._stamps.pop(trait, None)
        for trait in before - traits:
            self._having[trait].discard(key)
            if not self._having[trait]:
                del self._having[trait]
        for trait in traits - before:
            self._having.setdefault(trait, set()).add(key)
        if len(self._shared) > _MOST_SHARED:
            self._shared.clear()
        self._traits_of[key] = self._shared.setdefault(traits, traits)
        if told != self._told.get(key):
            self.facts_stamp = object()
            self._told.pop(key, None)
            if told is not None:
                self._told[key] = told


def changes(before: Mapping[K, V], after: Mapping[K, V]) -> tuple[list[tuple[K, V]], list[K]]:
    """Return the rows that are new or have another record, and the keys that are gone."""
    # most often the keys are the same, in the same order: then only the records are compared
    if len(before) == len(after):
        places = list(compress(count(), map(is_not, before.values(), after.values())))
        if not places:
            return [], []
        old, new = list(before), list(after)
        if all(old[place] == new[place] for place in places):
            return [(new[place], after[new[place]]) for place in places], []
    changed = [row for row in after.items() if before.get(row[0]) is not row[1]]
    return changed, [key for key in before if key not in after]


def _registered(node: Node) -> Registered:
    return node.size, node.slurmd_started


class FactCache:
    """The facts of the newest picture, kept from plan to plan and used by one thread.

    The key of a fact is the function that finds it.
    """

    def __init__(self) -> None:
        self._seen = Observed(at=0.0)
        self._nodes: Index[NodeName, Node, Registered] = Index(traits_of_node, _registered)
        self._agents: Index[NodeName, AgentView, Incarnation] = Index(traits_of_agent, connected_incarnation)
        self._jobs: Index[JobId, Job, None] = Index(traits_of_job)
        self._made: dict[Callable[..., object], tuple[tuple[object, ...], Any]] = {}

    def follow(self, seen: Observed) -> None:
        """Take the next picture. Facts are worked out only when they are asked for."""
        self._seen = seen

    @property
    def nodes(self) -> Index[NodeName, Node, Registered]:
        self._nodes.follow(self._seen.nodes)
        return self._nodes

    @property
    def agents(self) -> Index[NodeName, AgentView, Incarnation]:
        """Return the index of agents; the fact of each is the incarnation that speaks as the node now."""
        self._agents.follow(self._seen.agents)
        return self._agents

    @property
    def jobs(self) -> Index[JobId, Job, None]:
        self._jobs.follow(self._seen.jobs)
        return self._jobs

    def once(self, find: Callable[P, T], of: tuple[object, ...], *given: P.args, **named: P.kwargs) -> T:
        """Return the result of `find`, or its last result if the inputs `of` are still the same objects."""
        known = self._made.get(find)
        if known is None or not self.is_done(find, of):
            known = self._made[find] = (of, find(*given, **named))
        found: T = known[1]
        return found

    def is_done(self, step: Callable[..., object], of: tuple[object, ...]) -> bool:
        """Return whether `step` was last noted as `done` for these very objects."""
        known = self._made.get(step)
        return known is not None and len(known[0]) == len(of) and all(map(is_, known[0], of))

    def done(self, step: Callable[..., object], of: tuple[object, ...]) -> None:
        """Note that `step` was carried out for these objects."""
        self._made[step] = (of, None)
