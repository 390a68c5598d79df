"""Whatever callers ask for, in any order: the groups stay possible, and what is refused changes nothing."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.model.group import BatchSize, ClusterStatus, Goal, GroupStatus, Role
from steward.model.memory import Memory
from steward.model.order import (
    AddNodes,
    ChangeTags,
    CreateCluster,
    DeleteCluster,
    GroupWish,
    NodeWish,
    Order,
    StartHealthCheck,
    TouchNodes,
    UpdateCluster,
    UpdateSoftware,
)
from steward.model.slot import SlotStep
from steward.policy.plan import plan
from tests.builders.api_cluster import ApiPicture, an_api_cluster, nothing
from tests.builders.orders import tried, with_pool, with_rules

NAMES = st.sampled_from(["controller", "workers", "login", "pool", "more", "nobody"])
CLUSTERS = st.sampled_from(["ml-cluster"] * 12 + ["other"])
COUNTS = st.integers(min_value=0, max_value=6)

ROLES = {"controller": Role.CONTROLLER, "login": Role.LOGIN}


def sane(name: str, count: int, below: int) -> GroupWish:
    """What a caller who knows the rules would wish for."""
    role = ROLES.get(name, Role.COMPUTE)
    count = 1 if role is Role.CONTROLLER else count
    return GroupWish(name=name, count=count, minimum=max(0, count - below), types=("ml.c5.large",), role=role)


wild = st.builds(
    GroupWish,
    name=NAMES,
    count=COUNTS,
    minimum=st.none() | COUNTS,
    types=st.sampled_from([("ml.c5.large",), ("ml.c5.large",), ("odd",), ()]),
    role=st.none() | st.none() | st.sampled_from(Role),
    partition=st.none() | st.sampled_from(["", "dev"]),
)
wishes = st.one_of(st.builds(sane, NAMES, COUNTS, COUNTS), st.builds(sane, NAMES, COUNTS, COUNTS), wild)
CONTROLLER = sane("controller", 1, 0)
creations = st.lists(wishes, max_size=2).map(lambda rest: (CONTROLLER, *(w for w in rest if w.name != "controller")))
batches = (
    st.none() | st.none() | st.builds(BatchSize, count=st.integers(0, 3), percent=st.sampled_from([0, 0, 50, 101]))
)
ids = st.lists(st.sampled_from([f"box/workers-{i}" for i in range(1, 5)] + ["box/nobody"]), max_size=3).map(tuple)
logical = st.lists(st.integers(1, 115).map(lambda i: f"abcdef012345-{i}"), max_size=3).map(tuple)
groups = st.lists(wishes, max_size=3).map(tuple)
WHO = st.just("ann")

orders: st.SearchStrategy[Order] = st.one_of(
    st.builds(CreateCluster, who=WHO, name=CLUSTERS, groups=groups, continuous=st.booleans()),
    st.builds(CreateCluster, who=WHO, name=CLUSTERS, groups=creations),
    st.builds(
        UpdateCluster, who=WHO, cluster=CLUSTERS, groups=groups,
        delete=st.just(()) | st.lists(NAMES, max_size=2).map(tuple),
        recovery=st.none() | st.booleans(), continuous=st.none() | st.just(True),
    ),
    st.builds(DeleteCluster, who=WHO, cluster=st.sampled_from(["ml-cluster"] + ["other"] * 5)),
    st.builds(
        AddNodes, who=WHO, cluster=CLUSTERS, token=st.sampled_from(["", "t1", "t2"]),
        wishes=st.lists(st.tuples(NAMES, COUNTS), min_size=1, max_size=2).map(tuple),
    ),
    st.builds(TouchNodes, who=WHO, cluster=CLUSTERS, wish=st.sampled_from(NodeWish), ids=ids, logical_ids=logical),
    st.builds(
        UpdateSoftware, who=WHO, cluster=CLUSTERS, batch=batches, rollback_batch=batches,
        groups=st.lists(st.tuples(NAMES, st.sampled_from(["", "r2"])), max_size=2).map(tuple),
    ),
    st.builds(
        StartHealthCheck, who=WHO, cluster=CLUSTERS,
        wishes=st.lists(st.tuples(NAMES, ids, st.just(("InstanceStress",))), max_size=2).map(tuple),
    ),
    st.builds(ChangeTags, who=WHO, arn=CLUSTERS, put=st.dictionaries(st.text(max_size=3), st.text(), max_size=3)),
)  # fmt: skip


def a_head(picture: ApiPicture) -> ApiPicture:
    """Limits and a pool that random wishes run into."""
    return with_rules(with_pool(picture, "pool", "p1", "p2", "p3"), max_instances=9, max_groups=5)


def with_minimum() -> ApiPicture:
    return an_api_cluster(workers=4).change_group("workers", goal=Goal(target=4, minimum=4))


starts = st.sampled_from([a_head(an_api_cluster(workers=4)), a_head(with_minimum()), a_head(nothing())])


def check(memory: Memory, picture: ApiPicture) -> None:
    rules = picture.want.capacity
    for group in memory.groups.values():
        assert 0 <= group.goal.minimum <= group.goal.target
        if group.status is GroupStatus.SYSTEM_UPDATING:
            assert group.rollout is not None
            assert group.rollout.finished is None
    staying = [group for group in memory.groups.values() if group.status is not GroupStatus.DELETING]
    assert sum(group.goal.target for group in staying) <= rules.max_instances
    assert all(slot.group in memory.groups for slot in memory.slots.values())
    ids = [slot.logical for slot in memory.slots.values()]
    assert len(set(ids)) == len(ids)
    if memory.cluster is None:
        assert not memory.groups
    elif memory.cluster.status is not ClusterStatus.DELETING:
        assert staying
        assert sum(group.role is Role.CONTROLLER for group in staying) <= 1
    for group in staying:
        here = sum(slot.group == group.name and not slot.is_leaving for slot in memory.slots.values())
        pool = rules.pools.get(group.name)
        assert pool is None or here <= len(pool.nodes)


@settings(max_examples=300)
@given(starts, st.lists(orders, min_size=1, max_size=12))
def test_any_sequence_of_orders_leaves_possible_groups(start: ApiPicture, sequence: list[Order]) -> None:
    picture = start
    for order in sequence:
        before = picture.memory
        kept = repr(before)
        done = tried(order, picture)
        assert repr(before) == kept
        if done is not None:
            check(done.memory, picture)
            picture = replace(picture, memory=done.memory).see(at=picture.seen.at + 1)


@settings(max_examples=150)
@given(starts, st.lists(orders, min_size=1, max_size=8), st.data())
def test_orders_between_cycles_of_the_head_keep_the_groups_possible(
    start: ApiPicture, sequence: list[Order], data: st.DataObject
) -> None:
    picture = start
    for order in sequence:
        done = tried(order, picture)
        memory = done.memory if done else picture.memory
        if data.draw(st.booleans()):
            memory = plan(picture.seen, picture.want, memory, picture.seen.at).memory
            check(memory, picture)
            for group in memory.groups.values():
                here = [s for s in memory.slots.values() if s.group == group.name and not s.is_leaving]
                assert len(here) <= group.goal.target
        picture = replace(picture, memory=memory).see(at=picture.seen.at + 5)


@settings(max_examples=150)
@given(st.lists(orders, max_size=6), st.integers(1, 3))
def test_a_repeated_addition_has_one_effect_and_one_answer(sequence: list[Order], count: int) -> None:
    picture = a_head(an_api_cluster(workers=4))
    for order in sequence:
        done = tried(order, picture)
        picture = replace(picture, memory=done.memory if done else picture.memory)
    addition = AddNodes(who="ann", cluster="ml-cluster", wishes=(("workers", count),), token="mine")
    once = tried(addition, picture)
    if once is None or not any(one.logical for one in once.answer.added):
        return
    again = tried(addition, replace(picture, memory=once.memory))
    assert again is not None
    assert (again.answer, again.memory) == (once.answer, once.memory)


@settings(max_examples=100)
@given(starts, st.lists(orders, max_size=8))
def test_the_same_orders_on_the_same_picture_always_give_the_same_memory(start: ApiPicture, given: list[Order]) -> None:
    def told() -> list[Any]:
        picture, results = start, []
        for order in given:
            done = tried(order, picture)
            picture = replace(picture, memory=done.memory if done else picture.memory)
            results.append((done.answer, done.events) if done else None)
        return [*results, picture.memory]

    assert told() == told()


@settings(max_examples=100)
@given(st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=6))
def test_ids_of_slots_never_come_twice_also_when_their_slots_are_gone(steps: list[tuple[int, int]]) -> None:
    picture, seen = a_head(an_api_cluster(workers=2)), set[str]()
    for grow, end in steps:
        order = AddNodes(who="ann", cluster="ml-cluster", wishes=(("workers", grow),))
        done = tried(order, picture)
        if done is not None:
            fresh = {one.logical for one in done.answer.added}
            assert not fresh & seen
            seen |= fresh
            picture = replace(picture, memory=done.memory)
        gone = sorted(slot.node for slot in picture.memory.slots.values() if slot.step is SlotStep.WAITING)[:end]
        slots = {node: slot for node, slot in picture.memory.slots.items() if node not in gone}
        target = sum(slot.group == "workers" for slot in slots.values())
        picture = picture.remember(slots=slots).change_group("workers", goal=Goal(target=target))
