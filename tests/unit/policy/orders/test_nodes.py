"""Orders for single nodes: BatchAdd, BatchDelete, BatchReboot, BatchReplace."""

import re
from dataclasses import replace

import pytest

from steward.model.group import ClusterStatus, Goal, GroupStatus
from steward.model.ids import InstanceId
from steward.model.order import Added, NodeOutcome, NodeRefusal, NodeWish, RefusalKind
from steward.model.slot import Purpose, SlotStep
from tests.builders.api_cluster import ID, ApiPicture, a_group, an_api_cluster
from tests.builders.orders import (
    a_software_update,
    after,
    carried,
    deletion,
    more,
    refused,
    touching,
    with_pool,
    with_rules,
)
from tests.builders.picture import T0, n


def outcome(*nodes: str, picture: ApiPicture | None = None) -> dict[str, NodeRefusal | None]:
    lines = carried(deletion(*nodes), picture or an_api_cluster()).answer.nodes
    return {line.id.removeprefix("box/"): line.refused for line in lines}


def test_added_nodes_have_their_logical_ids_and_slots_at_once() -> None:
    done = carried(more(count=2), an_api_cluster(workers=3))
    ids = [one.logical for one in done.answer.added]
    slots = {slot.logical: slot for slot in done.memory.slots.values()}
    assert len(set(ids)) == 2
    assert all(re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9]", id) for id in ids)
    assert [slots[id].node for id in ids] == ["workers-4", "workers-5"]
    assert {slots[id].step for id in ids} == {SlotStep.WAITING}
    assert done.memory.groups["workers"].goal.target == 5


def test_a_dynamic_node_never_takes_the_name_of_a_node_that_slurm_or_the_site_has() -> None:
    picture = an_api_cluster(workers=3)
    picture = picture.see(nodes={**picture.seen.nodes, n("workers-4"): replace(picture.seen.nodes[n("workers-1")])})
    [one] = carried(more(), picture).answer.added
    slots = carried(more(), picture).memory.slots
    assert [slot.node for slot in slots.values() if slot.logical == one.logical] == ["workers-5"]


def test_a_pool_gives_its_free_names_in_its_own_order() -> None:
    picture = with_pool(an_api_cluster(workers=1), "workers", "workers-1", "z", "a")
    memory = carried(more(), picture).memory
    assert set(memory.slots) == {"controller-1", "workers-1", "z"}


def test_a_pool_that_is_used_up_is_beyond_the_limit() -> None:
    picture = with_pool(an_api_cluster(workers=1), "workers", "workers-1", "z")
    assert refused(more(count=2), picture)[0] is RefusalKind.LIMIT


def test_a_repeated_call_has_the_same_answer_and_changes_nothing() -> None:
    order = more(count=2, token="t-1")
    once = carried(order, an_api_cluster())
    picture = replace(an_api_cluster(), memory=once.memory)
    again = carried(order, picture)
    assert again.answer == once.answer
    assert again.memory == once.memory
    assert again.events == ()


def test_a_repeated_call_is_answered_also_when_the_group_has_changed_since() -> None:
    order = more(token="t-1")
    picture = after(order, an_api_cluster()).change_group("workers", status=GroupStatus.UPDATING)
    assert carried(order, picture).answer.added[0].logical


def test_a_client_token_of_another_call_is_refused_until_eight_hours_are_over() -> None:
    picture = after(more(token="t-1"), an_api_cluster())
    kind, text = refused(more(count=2, token="t-1"), picture)
    assert kind is RefusalKind.VALIDATION
    assert "t-1" in text
    later = picture.see(at=T0 + 8 * 3600)
    assert len(carried(more(count=2, token="t-1"), later).answer.added) == 2


def test_a_group_that_cannot_grow_is_told_beside_those_that_can() -> None:
    picture = an_api_cluster().group(a_group("new", status=GroupStatus.CREATING))
    order = more(wishes=(("workers", 1), ("new", 2), ("nobody", 3), ("controller", 1)))
    added = carried(order, picture).answer.added
    assert [(one.group, one.refused, one.count) for one in added] == [
        ("workers", "", 1),
        ("new", "InvalidInstanceGroupStatus", 2),
        ("nobody", "InstanceGroupNotFound", 3),
        ("controller", "InvalidInstanceGroupStatus", 1),
    ]


def test_when_no_group_can_grow_nothing_changes() -> None:
    done = carried(more("nobody"), an_api_cluster())
    assert done.memory == an_api_cluster().memory
    assert done.answer.added == (
        Added(group="nobody", refused="InstanceGroupNotFound", text="There is no instance group nobody."),
    )


@pytest.mark.parametrize(
    ("wishes", "text"),
    [
        ((("workers", 51),), "51 nodes"),
        (tuple((f"g{i}", 1) for i in range(6)), "6 groups"),
        ((), "0 groups"),
        ((("workers", 0),), "at least 1"),
        ((("workers", 1), ("workers", 1)), "more than once"),
    ],
)
def test_impossible_additions_are_refused(wishes: tuple[tuple[str, int], ...], text: str) -> None:
    kind, said = refused(more(wishes=wishes), an_api_cluster())
    assert kind is RefusalKind.VALIDATION
    assert text in said


def test_adding_needs_continuous_provisioning_and_a_cluster_that_is_not_busy() -> None:
    assert refused(more(), an_api_cluster().cluster(continuous=False))[0] is RefusalKind.VALIDATION
    assert refused(more(), an_api_cluster().cluster(status=ClusterStatus.DELETING))[0] is RefusalKind.CONFLICT
    assert refused(more(cluster="other"), an_api_cluster())[0] is RefusalKind.NOT_FOUND


def test_deleted_nodes_leave_and_the_group_does_not_grow_back() -> None:
    memory = after(deletion("workers-1", "workers-3"), an_api_cluster(workers=3)).memory
    leaving = {slot.node for slot in memory.slots.values() if slot.purpose is Purpose.LEAVE}
    assert leaving == {"workers-1", "workers-3"}
    assert memory.groups["workers"].goal == Goal(target=1)


def test_a_minimum_shrinks_only_when_the_target_falls_below_it() -> None:
    picture = an_api_cluster(workers=4).change_group("workers", goal=Goal(target=4, minimum=3))
    assert after(deletion("workers-1"), picture).memory.groups["workers"].goal == Goal(target=3, minimum=3)
    both = after(deletion("workers-1", "workers-2"), picture)
    assert both.memory.groups["workers"].goal == Goal(target=2, minimum=2)


def test_each_node_is_accepted_or_refused_by_itself() -> None:
    picture = an_api_cluster(workers=3).slot("workers-2", purpose=Purpose.LEAVE)
    picture = picture.slot("controller-1", instance="box/controller-1")
    assert outcome("workers-1", "workers-2", "controller-1", "nobody", picture=picture) == {
        "workers-1": None,
        "workers-2": NodeRefusal.BAD_STATUS,
        "controller-1": NodeRefusal.IN_USE,
        "nobody": NodeRefusal.NOT_FOUND,
    }


def test_nodes_of_a_group_below_its_minimum_are_not_deleted() -> None:
    for status in (GroupStatus.CREATING, GroupStatus.UPDATING):
        picture = an_api_cluster().change_group("workers", status=status)
        kind, text = refused(deletion("workers-1"), picture)
        assert kind is RefusalKind.VALIDATION
        assert status.value in text


def test_a_node_that_is_not_there_yet_can_be_deleted_by_its_logical_id() -> None:
    picture = after(more(), an_api_cluster(workers=3))
    [id] = [slot.logical for slot in picture.memory.slots.values() if slot.step is SlotStep.WAITING]
    done = carried(deletion(ids=(), logical_ids=(id,)), picture)
    assert done.answer.nodes == (NodeOutcome(id=id, is_logical=True),)
    assert done.memory.groups["workers"].goal.target == 3


def test_a_deleted_node_that_drains_to_be_replaced_has_the_time_of_one_that_leaves() -> None:
    drains = {"step": SlotStep.DRAIN, "purpose": Purpose.RENEW, "deadline": T0 + 80_000}
    picture = an_api_cluster().slot("workers-1", **drains)
    assert after(deletion("workers-1"), picture).memory.slots[n("workers-1")].deadline == T0
    patient = with_rules(picture, drain_deadline_s=600.0)
    assert after(deletion("workers-1"), patient).memory.slots[n("workers-1")].deadline == T0 + 600


def test_a_node_that_is_named_twice_counts_once() -> None:
    order = deletion(ids=("box/workers-1", "box/workers-1"), logical_ids=(f"{ID}-1",))
    done = carried(order, an_api_cluster(workers=3))
    assert [(line.id, line.refused) for line in done.answer.nodes] == [("box/workers-1", None), (f"{ID}-1", None)]
    assert done.memory.groups["workers"].goal.target == 2


def test_when_all_are_refused_the_call_is_and_says_why_for_each() -> None:
    kind, text = refused(deletion("nobody", "nothing"), an_api_cluster())
    assert kind is RefusalKind.VALIDATION
    assert "box/nobody: there is no such node" in text
    assert "box/nothing:" in text


def test_a_hundred_ids_are_too_many_and_99_are_not() -> None:
    ids = [f"nobody-{i}" for i in range(98)]
    assert outcome("workers-1", *ids)["workers-1"] is None
    kind, text = refused(deletion("workers-1", "workers-2", *ids), an_api_cluster())
    assert kind is RefusalKind.VALIDATION
    assert "100 node ids" in text
    assert outcome("workers-1", "workers-1", *ids)["workers-1"] is None


def test_fifty_one_logical_ids_are_too_many() -> None:
    order = deletion(ids=(), logical_ids=tuple(f"{ID}-{i}" for i in range(51)))
    assert refused(order, an_api_cluster())[0] is RefusalKind.VALIDATION
    assert carried(replace(order, logical_ids=order.logical_ids[:50]), an_api_cluster()).answer.nodes[1].refused is None


def test_deleting_waits_for_a_cluster_that_is_busy() -> None:
    for status in (ClusterStatus.CREATING, ClusterStatus.DELETING, ClusterStatus.SYSTEM_UPDATING):
        assert refused(deletion("workers-1"), an_api_cluster().cluster(status=status))[0] is RefusalKind.CONFLICT


def test_a_call_without_ids_is_refused() -> None:
    assert refused(deletion(), an_api_cluster())[0] is RefusalKind.VALIDATION


def test_logical_ids_need_continuous_provisioning() -> None:
    order = deletion(ids=(), logical_ids=(f"{ID}-1",))
    assert refused(order, an_api_cluster().cluster(continuous=False))[0] is RefusalKind.VALIDATION


def test_the_deletion_is_one_operation_that_says_who_asked() -> None:
    done = carried(deletion("workers-1"), an_api_cluster(workers=3))
    [operation] = done.memory.operations.values()
    assert (operation.before["workers"].target, operation.after["workers"].target) == (3, 2)
    [event] = done.events
    assert event.text == "ann deleted workers-1"
    assert ("operation", operation.id) in event.data
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", operation.id)


def test_node_wishes_are_not_for_a_group_whose_software_is_being_updated() -> None:
    picture = after(a_software_update(groups=(("workers", ""),)), an_api_cluster())
    assert refused(deletion("workers-1"), picture)[0] is RefusalKind.VALIDATION
    [line] = carried(touching(NodeWish.REPLACE, "workers-1"), picture).answer.nodes
    assert line.refused is NodeRefusal.BAD_STATUS


@pytest.mark.parametrize("step", [SlotStep.WAITING, SlotStep.LAUNCH])
def test_a_node_without_a_machine_that_an_update_waits_for_can_be_deleted(step: SlotStep) -> None:
    picture = after(a_software_update(groups=(("workers", ""),)), an_api_cluster())
    picture = picture.slot("workers-3", step=step, instance=None)
    by_id = {"ids": (), "logical_ids": (f"{ID}-3",)}
    done = after(deletion(**by_id), picture).memory
    assert done.slots[n("workers-3")].purpose is Purpose.LEAVE
    assert (done.groups["workers"].status, done.groups["workers"].goal.target) == (GroupStatus.SYSTEM_UPDATING, 2)
    [line] = carried(touching(NodeWish.REPLACE, **by_id), picture).answer.nodes
    assert line.refused is NodeRefusal.BAD_STATUS
    made = picture.slot("workers-3", step=SlotStep.SETUP, instance=InstanceId("box/workers-3"))
    assert refused(deletion("workers-3"), made)[0] is RefusalKind.VALIDATION


def test_limits_of_instances_hold_for_additions_too() -> None:
    assert refused(more(count=2), with_rules(an_api_cluster(workers=3), max_instances=5))[0] is RefusalKind.LIMIT
