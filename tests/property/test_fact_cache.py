"""What is kept of the records from plan to plan changes no plan: it is only there sooner."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from steward.model.agent_tables import HealthPolicy
from steward.model.desired import Desired
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.plan import Plan
from steward.policy.draft import Draft
from steward.policy.fact_cache import FactCache, Index, changes
from steward.policy.job.ask import answer_asks
from steward.policy.kept import Kept
from steward.policy.plan import STAGES, Plans, plan
from tests.builders.picture import T0, a_cluster
from tests.builders.want import but
from tests.fakes.head import Head
from tests.property import group_stories
from tests.property.law import Law
from tests.property.stories import Blow, a_head, blow, stories, tell

NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)
K = TypeVar("K")
V = TypeVar("V")
SHARED = ("nodes", "jobs", "agents", "instances", "partitions", "reservations")


@dataclass
class SameRecords:
    """Pictures as the head's looks give them: a record that did not change is the object that it was before, and so is
    a table of which no record did."""

    tables: dict[str, Mapping[Any, Any]] = field(default_factory=dict)

    def of(self, seen: Observed) -> Observed:
        tables: dict[str, Any] = {name: self._shared(name, getattr(seen, name)) for name in SHARED}
        return replace(seen, **tables)

    def _shared(self, name: str, table: Mapping[K, V]) -> Mapping[K, V]:
        known = self.tables.get(name, {})
        rows = {key: known[key] if known.get(key) == row else row for key, row in table.items()}
        self.tables[name] = known if list(rows.items()) == list(known.items()) else rows
        return self.tables[name]


@dataclass
class SameAnswer(Law):
    """Watches a head: plans that follow each other decide what one for itself does, and one that looks at all jobs."""

    plans: Plans = field(default_factory=Plans)
    records: SameRecords = field(default_factory=SameRecords)
    head: Head | None = None

    def __call__(self, seen: Observed, memory: Memory, decided: Plan) -> None:
        assert self.head is not None
        want, now = self.head.want, self.head.world.now
        assert self.plans(self.records.of(seen), want, memory, now) == decided
        assert thorough(seen, want, memory, now) == decided


def thorough(seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
    """A plan in which no job is passed over for being at rest."""
    draft = Draft(seen, want, memory, now, FactCache())
    draft.found.jobs_needing_attention = frozenset(memory.jobs)
    for stage in STAGES if draft.slurm_is_fresh else (answer_asks,):
        stage(draft)
    return draft.plan()


def watched(head: Head) -> Head:
    head.want = replace(head.want, health=HealthPolicy(features=True), deep=but(head.want.deep, enabled=True))
    head.watch = SameAnswer(want=head.want, head=head)
    return head


@settings(max_examples=40, suppress_health_check=list(HealthCheck), phases=NO_SHRINK)
@given(story=stories)
@example(story=[blow("submit"), blow("kill", "n1", after_s=8.0), blow("Slurm hangs", size=3), blow("kill", "n2")])
@example(story=[blow("submit"), blow("all agents vanish", size=3, after_s=8.0), blow("admin drains", "n4")])
@example(story=[blow("submit, with steps"), blow("hang", "n5", after_s=8.0), blow("head killed", after_s=6.0, size=3)])
@example(
    story=[blow("submit"), blow("cancel", after_s=8.0), blow("submit", size=2), blow("degraded", "n1", after_s=3.0)]
)
@example(story=[blow("xid", "n1"), blow("suspect", "n2"), blow("kill", "n3", after_s=3.0), blow("head killed", size=2)])
def test_in_every_story_what_is_kept_of_the_records_changes_no_plan(story: list[Blow]) -> None:
    head = watched(a_head())
    tell(head, story)
    head.run(120.0)


@settings(max_examples=20, suppress_health_check=list(HealthCheck), phases=NO_SHRINK)
@given(story=group_stories.stories)
def test_nor_in_any_story_of_groups(story: list[group_stories.Turn]) -> None:
    head = watched(group_stories.a_group_head())
    group_stories.tell(head, story)
    head.run(60.0)


traits = st.frozensets(st.sampled_from("abc"), max_size=3)
"""A record here is its traits."""


@settings(max_examples=300)
@given(st.lists(st.dictionaries(st.integers(0, 4), traits, max_size=5), min_size=1, max_size=6))
def test_an_index_is_that_of_the_present_records(pictures: list[dict[int, frozenset[str]]]) -> None:
    index: Index[int, tuple[int, frozenset[str]], str] = Index(lambda record: frozenset(record[1]), least)
    known: dict[tuple[int, frozenset[str]], tuple[int, frozenset[str]]] = {}
    for picture in pictures:
        stamps = {trait: index.stamp(trait) for trait in "abc"}
        keys, told, before = index.keys_stamp, index.facts_stamp, dict(index.facts)
        had = {trait: set(index.having(trait)) for trait in "abc"}
        all_before = frozenset().union(*had.values())
        index.follow({key: known.setdefault(row, row) for key, found in picture.items() if (row := (key, found))})
        for trait in "abc":
            assert index.having(trait) == {key for key, found in picture.items() if trait in found}
            assert index.having(trait) == had[trait] or index.stamp(trait) is not stamps[trait]
        assert index.facts == {key: min(found) for key, found in picture.items() if found}
        assert (index.facts == before) or index.facts_stamp is not told
        assert all_before <= picture.keys() or index.keys_stamp is not keys
        assert set(index.kinds(str)) == {trait for found in picture.values() for trait in found}


def least(record: tuple[int, frozenset[str]]) -> str | None:
    return min(record[1], default=None)


DEEDS = ("set", "same", "del", "pop", "first", "drop")
tables = st.dictionaries(st.integers(0, 6), st.integers(0, 2))


@settings(max_examples=300)
@given(tables, tables)
def test_the_changes_of_a_table_are_what_makes_it_the_next_one(before: dict[int, int], after: dict[int, int]) -> None:
    changed, gone = changes({key: (key, row) for key, row in before.items()}, {k: (k, row) for k, row in after.items()})
    made = {key: row for key, row in before.items() if key not in gone} | {key: row[1] for key, row in changed}
    assert made == after


@settings(max_examples=300)
@given(tables, st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 6))))
def test_a_table_that_did_not_change_is_the_one_it_began_with(
    table: dict[int, int], deeds: list[tuple[str, int]]
) -> None:
    kept, plain = Kept(table), dict(table)
    for what, key in deeds:
        match what:
            case "set":
                kept[key] = plain[key] = key
            case "same" if key in plain:
                kept[key] = plain[key]
            case "del" if key in plain:
                del kept[key], plain[key]
            case "pop":
                assert kept.pop(key, None) == plain.pop(key, None)
            case "first":
                assert kept.setdefault(key, 9) == plain.setdefault(key, 9)
            case "drop" if key in plain:
                kept.drop([key])
                del plain[key]
    assert kept == plain
    assert kept.frozen() == plain
    assert plain == table or kept.frozen() is not table


def test_a_quiet_plan_gives_back_the_memory_that_it_was_given() -> None:
    plans, picture = Plans(), a_cluster()
    first = plans(picture.seen, picture.want, picture.memory, T0)
    second = plans(replace(picture.seen, at=T0 + 5), picture.want, first.memory, T0 + 5)
    tables = [name for name in Memory.__slots__ if not isinstance(getattr(first.memory, name), bool | int | float)]
    assert [name for name in tables if getattr(second.memory, name) is not getattr(first.memory, name)] == []


def test_a_picture_that_cannot_be_worked_out_leaves_nothing_half_known() -> None:
    def reluctant(record: str) -> frozenset[str]:
        if record == "bad":
            raise ValueError(record)
        return frozenset(record)

    index: Index[int, str, None] = Index(reluctant)
    index.follow({1: "a", 2: "b"})
    with pytest.raises(ValueError, match="bad"):
        index.follow({1: "c", 2: "bad"})
    index.follow({1: "c", 2: "b"})
    assert (index.having("a"), index.having("b"), index.having("c")) == (set(), {2}, {1})


def test_with_the_fact_cache_of_another_cluster_a_plan_is_the_same() -> None:
    ground, lost = Plans(), a_cluster(4).lost("n2")
    big = a_cluster(30)
    ground(big.seen, big.want, big.memory, T0)
    assert ground(lost.seen, lost.want, lost.memory, T0) == plan(lost.seen, lost.want, lost.memory, T0)
