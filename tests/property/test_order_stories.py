"""Orders of the API carried out to their end in the simulated world, whatever befalls the cluster meanwhile."""

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from steward.model.group import BatchSize, Group, RolloutState
from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.memory import Memory
from steward.model.order import (
    AddNodes,
    DeleteCluster,
    GroupWish,
    NodeWish,
    Order,
    Refusal,
    TouchNodes,
    UpdateCluster,
    UpdateSoftware,
)
from steward.model.slot import SlotStep
from steward.policy.orders import carry_out
from tests.fakes.head import Head
from tests.property.group_stories import TURNS, Turn, a_group_head, group_world, tell, turn
from tests.property.test_group_stories import comes_to_rest

NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)
CALL: dict[str, Any] = {"who": "ann", "cluster": "demo"}


def give(head: Head, order: Order) -> None:
    """As a caller of the API does; what is refused changes nothing."""
    seen = head.world.seen()

    def change(memory: Memory) -> Memory:
        try:
            return carry_out(order, memory, seen, head.want).memory
        except Refusal:
            return memory

    head.order(change)


def a_serving_head(**fields: Any) -> Head:
    head = a_group_head(**{"provider": "local", **fields})
    assert comes_to_rest(head) == []
    return head


def memory_of(head: Head) -> Memory:
    """Also when the head was killed just now."""
    return head.memory if head.memory is not None else head.store.load()


def workers(head: Head) -> Group:
    return memory_of(head).groups["workers"]


def state(head: Head) -> RolloutState:
    rollout = workers(head).rollout
    assert rollout is not None
    return rollout.state


def an_update(**fields: Any) -> UpdateSoftware:
    return UpdateSoftware(**CALL, groups=(("workers", "r2"),), **fields)


def touching(head: Head, wish: NodeWish, *numbers: int) -> TouchNodes:
    slots = (memory_of(head).slots.get(NodeName(f"workers-{number}")) for number in numbers)
    return TouchNodes(**CALL, wish=wish, logical_ids=tuple(slot.logical for slot in slots if slot))


def scaled(count: int) -> UpdateCluster:
    return UpdateCluster(**CALL, groups=(GroupWish(name="workers", count=count),))


def submitted(head: Head, nodes: int, works_s: float) -> JobId:
    job = head.world.submit(nodes, works_s=works_s, mode=None)
    head.world.slurm.jobs[job] = replace(head.world.slurm.jobs[job], partition="workers")
    head.run(2.0)
    return job


def releases(head: Head) -> set[str]:
    return {slot.version.release for slot in memory_of(head).slots.values() if slot.group == "workers"}


def test_a_software_update_goes_through_the_group_two_by_two() -> None:
    head = a_serving_head()
    give(head, an_update(batch=BatchSize(count=2)))
    fewest = 4
    for _ in range(400):
        head.run(0.5)
        serving = [s for s in memory_of(head).slots.values() if s.group == "workers" and s.step is SlotStep.SERVING]
        fewest = min(fewest, len(serving))
        if state(head) is RolloutState.SUCCEEDED:
            break
    assert state(head) is RolloutState.SUCCEEDED
    assert fewest == 2
    assert releases(head) == {"r2"}
    assert comes_to_rest(head) == []
    assert len(head.world.machines.launched) == 8


def test_a_software_update_waits_for_the_jobs_on_its_nodes() -> None:
    head = a_serving_head()
    job = submitted(head, 2, works_s=120.0)
    give(head, an_update(batch=BatchSize(count=2)))
    head.run(100.0)
    assert head.world.slurm.jobs[job].state is JobState.RUNNING
    assert state(head) is RolloutState.IN_PROGRESS
    head.run(200.0)
    assert head.world.slurm.jobs[job].state is JobState.COMPLETED
    assert head.world.slurm.jobs[job].restarts == 0
    assert state(head) is RolloutState.SUCCEEDED


def test_an_update_whose_scripts_fail_goes_back_to_what_was() -> None:
    head = a_serving_head()
    before = workers(head).version
    group_world(head).bad_scripts[NodeName("workers-4")] = 3
    give(head, an_update(batch=BatchSize(count=1)))
    head.run(300.0)
    assert state(head) is RolloutState.ROLLBACK_COMPLETE
    assert workers(head).version == before
    assert comes_to_rest(head) == []
    assert releases(head) == {""}


def test_a_head_that_is_killed_anywhere_in_an_update_brings_it_to_its_end() -> None:
    for point in range(1, 80, 7):
        head = a_serving_head(target=2, minimum=1)
        give(head, an_update(batch=BatchSize(count=1)))
        head.kill_at = head.point + point
        head.run(120.0)
        assert comes_to_rest(head) == [], f"killed at {point}"
        assert state(head) is RolloutState.SUCCEEDED, f"killed at {point}"
        assert set(head.world.machines.launched.values()) == {1}, f"killed at {point}"
        assert len(head.world.machines.launched) == 4, f"killed at {point}"


def test_a_replaced_node_comes_back_on_another_machine_after_its_scripts() -> None:
    head = a_serving_head()
    before = memory_of(head).slots[NodeName("workers-2")].instance
    give(head, touching(head, NodeWish.REPLACE, 2))
    head.run(60.0)
    assert comes_to_rest(head) == []
    after = memory_of(head).slots[NodeName("workers-2")].instance
    assert after != before
    assert len(group_world(head).setups) == 5


def test_a_rebooted_node_comes_back_on_its_machine_without_scripts() -> None:
    head = a_serving_head()
    before = memory_of(head).slots[NodeName("workers-2")].instance
    give(head, touching(head, NodeWish.REBOOT, 2))
    head.run(60.0)
    assert comes_to_rest(head) == []
    assert memory_of(head).slots[NodeName("workers-2")].instance == before
    [case] = memory_of(head).cases.values()
    assert case.returned is not None
    assert len(group_world(head).setups) == 4


def test_a_smaller_group_gives_up_its_idle_nodes() -> None:
    head = a_serving_head(minimum=0)
    job = submitted(head, 2, works_s=120.0)
    busy = head.world.slurm.jobs[job].nodes
    give(head, scaled(2))
    head.run(60.0)
    assert comes_to_rest(head) == []
    assert {slot.node for slot in memory_of(head).slots.values() if slot.group == "workers"} == busy
    assert head.world.slurm.jobs[job].restarts == 0


def test_a_deleted_cluster_leaves_nothing_behind() -> None:
    head = a_serving_head()
    give(head, DeleteCluster(**CALL))
    head.run(120.0)
    memory = memory_of(head)
    assert (memory.cluster, dict(memory.groups), dict(memory.slots)) == (None, {}, {})
    assert head.world.machines.alive == {}


def test_every_operation_is_over_when_the_cluster_rests() -> None:
    head = a_serving_head(minimum=0)
    give(head, scaled(5))
    head.run(5.0)
    give(head, scaled(3))
    head.run(60.0)
    assert comes_to_rest(head) == []
    first, second = sorted(memory_of(head).operations.values(), key=lambda op: op.at)
    assert first.superseded == {"workers"}
    assert second.finished is not None


def _ordered(kind: str, head: Head, turn: Turn) -> None:
    match kind:
        case "scale":
            give(head, scaled(turn.size))
        case "add":
            give(head, AddNodes(**CALL, wishes=(("workers", 1),), token=f"t{turn.size}"))
        case "update":
            give(head, an_update(batch=BatchSize(count=turn.size)))
        case _:
            give(head, touching(head, NodeWish(kind), turn.size))


ORDERS = ("scale", "add", "update", "delete", "reboot", "replace")
MISHAPS = sorted(TURNS.keys() - {"goal", "no minimum"})
story_turns = st.builds(
    Turn,
    after_s=st.sampled_from([0.0, 1.0, 8.0, 30.0]),
    kind=st.one_of(st.sampled_from(ORDERS), st.sampled_from(MISHAPS)),
    size=st.integers(1, 4),
)


@settings(max_examples=30, suppress_health_check=list(HealthCheck), phases=NO_SHRINK)
@given(story=st.lists(story_turns, min_size=1, max_size=8))
@example(story=[turn("update", 2), turn("kill", 1, 8.0), turn("scale", 2, 8.0)])
@example(story=[turn("replace", 2), turn("delete", 2, 1.0), turn("add", 1, 1.0)])
@example(story=[turn("update", 1), turn("bad scripts", 2), turn("head killed", 2, 8.0)])
def test_orders_in_the_middle_of_mishaps_come_to_their_end(story: list[Turn]) -> None:
    head = a_serving_head(minimum=0)
    for one in story:
        head.run(one.after_s)
        if one.kind in ORDERS:
            _ordered(one.kind, head, one)
        else:
            TURNS[one.kind](head, one)
    tell(head, [])
    assert comes_to_rest(head) == []
    rollout = workers(head).rollout
    assert rollout is None or rollout.finished is not None
    assert all(op.finished is not None for op in memory_of(head).operations.values())
