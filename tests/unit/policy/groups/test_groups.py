"""Groups: as many slots as wanted, status, the clock of the minimum, rolling back, the cluster's status."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import LaunchInstance
from steward.model.capacity_policy import Pool
from steward.model.group import ClusterStatus, Goal, Group, GroupStatus, Role
from steward.model.ids import InstanceId
from steward.model.instance import Instance, InstanceState
from steward.model.slot import Hitch, SlotRecord, SlotStep
from steward.model.why import Why
from tests.builders.capacity import a_group, an_empty_head, group, with_group
from tests.builders.picture import T0, Picture, a_node, an_agent, an_instance, n

HOUR = 3600.0
WHY = Why(rule="test", text="for the test")


def serving(picture: Picture, *nodes: str, group: str = "workers", has_served: bool = True, **fields: Any) -> Picture:
    """These nodes serve: an instance, an agent, an idle node each."""
    slots = {n(node): a_slot(node, group, has_served=has_served, **fields) for node in nodes}
    seen = picture.seen
    there = picture.see(
        nodes={**seen.nodes, **{name: a_node(name) for name in slots}},
        agents={**seen.agents, **{name: an_agent(name) for name in slots}},
        instances={**seen.instances, **{InstanceId(f"i-{name}"): an_instance(name) for name in slots}},
    )
    memory = replace(picture.memory, slots={**picture.memory.slots, **slots})
    return replace(there, memory=memory)


def a_slot(node: str, group: str = "workers", **fields: Any) -> SlotRecord:
    number = node.rpartition("-")[2]
    default: dict[str, Any] = {
        "step": SlotStep.SERVING,
        "entered": T0,
        "created": T0 + int(number),
        "why": WHY,
        "instance": InstanceId(f"i-{node}"),
    }
    logical = f"abcdef012345-{number if group == 'workers' else '9' + number}"
    return SlotRecord(node=n(node), group=group, logical=logical, **{**default, **fields})


def launches(picture: Picture) -> list[str]:
    return sorted(a.slot.node for a in picture.plan().actions if isinstance(a, LaunchInstance))


def kinds(picture: Picture) -> list[str]:
    return [event.kind for event in picture.plan().events]


def staying(picture: Picture) -> list[str]:
    return sorted(slot.node for slot in picture.plan().memory.slots.values() if not slot.is_leaving)


def statuses(picture: Picture) -> dict[str, GroupStatus]:
    return {name: one.status for name, one in picture.plan().memory.groups.items()}


def cluster_status(picture: Picture) -> ClusterStatus:
    cluster = picture.plan().memory.cluster
    assert cluster is not None
    return cluster.status


def test_a_group_asks_for_all_its_instances_at_once() -> None:
    assert launches(an_empty_head(a_group(target=3))) == ["workers-1", "workers-2", "workers-3"]


def test_no_more_launches_run_at_once_than_allowed() -> None:
    assert len(launches(an_empty_head(a_group(target=9), launches_at_once=4))) == 4


def test_others_wait_until_a_controller_serves() -> None:
    login = a_group("login", 1, 1, role=Role.LOGIN, partition="")
    controller = a_group("controller", 1, 1, role=Role.CONTROLLER, partition="")
    picture = an_empty_head(a_group(target=1), controller, login)
    assert launches(picture) == ["login-1", "workers-1"]  # the head's own machine serves at once
    assert picture.plan().memory.slots[n("controller-1")].instance is not None


def test_a_group_with_a_pool_takes_its_nodes_in_their_order() -> None:
    pools = {"workers": Pool(group="workers", nodes=(n("b7"), n("a3"), n("c1")))}
    assert list(an_empty_head(a_group(target=2), pools=pools).plan().memory.slots) == ["b7", "a3"]


def test_a_pool_with_too_few_names_gives_what_it_has_and_says_so_once() -> None:
    picture = an_empty_head(a_group(target=3), pools={"workers": Pool(group="workers", nodes=(n("b7"),))})
    assert launches(picture) == ["b7"]
    assert "group.no_names" in kinds(picture)
    assert "group.no_names" not in kinds(picture.then(1))


def test_a_name_that_somebody_else_uses_is_left_out() -> None:
    picture = an_empty_head(a_group(target=2)).see(
        nodes={n("workers-1"): a_node(n("workers-1"))},
        instances={InstanceId("i-x"): Instance(id=InstanceId("i-x"), node=n("workers-2"), state=InstanceState.RUNNING)},
    )
    assert launches(picture) == ["workers-3", "workers-4"]


def test_a_group_is_in_service_when_its_minimum_is_there() -> None:
    picture = serving(an_empty_head(a_group(target=4, minimum=2)), "workers-1")
    assert statuses(picture)["workers"] is GroupStatus.CREATING
    both = serving(picture, "workers-2")
    assert group(both.then()).status is GroupStatus.IN_SERVICE
    assert group(both.then()).good == Goal(target=4, minimum=2)


def test_a_node_that_takes_no_jobs_does_not_count() -> None:
    picture = serving(an_empty_head(a_group(target=2, minimum=2)), "workers-1", "workers-2")
    assert statuses(picture.drained("workers-2", "mine"))["workers"] is GroupStatus.CREATING


def test_a_group_that_served_once_stays_in_service_below_its_minimum() -> None:
    picture = serving(an_empty_head(a_group(target=2, minimum=2)), "workers-1", "workers-2").then(1)
    assert statuses(picture.drained("workers-2", "mine"))["workers"] is GroupStatus.IN_SERVICE


def test_a_new_minimum_that_is_not_there_makes_the_group_updating() -> None:
    picture = serving(an_empty_head(a_group(target=2, minimum=1)), "workers-1", "workers-2").then(1)
    grown = with_group(picture, goal=Goal(target=4, minimum=3)).then()
    assert group(grown).status is GroupStatus.UPDATING
    assert group(grown).minimum_since == picture.now


def test_a_new_target_alone_does_not() -> None:
    picture = serving(an_empty_head(a_group(target=2, minimum=1)), "workers-1", "workers-2").then(1)
    grown = with_group(picture, goal=Goal(target=9, minimum=1)).then()
    assert (group(grown).status, group(grown).good) == (GroupStatus.IN_SERVICE, Goal(target=9, minimum=1))


def two_of_four_broken(**cluster: Any) -> Picture:
    """It had all four of its nodes when it came into service."""
    whole = Goal(target=4, minimum=4)
    there = a_group(target=4, minimum=4, status=GroupStatus.IN_SERVICE, good=whole, minimum_since=None)
    head = an_empty_head(there, cluster={"status": ClusterStatus.IN_SERVICE, **cluster})
    picture = serving(head, "workers-1", "workers-2", "workers-3", "workers-4")
    return picture.drained("workers-3", "mine").drained("workers-4", "mine")


@pytest.mark.parametrize("continuous", [True, False])
def test_a_smaller_goal_is_good_at_once_although_even_that_is_not_there(continuous: bool) -> None:
    smaller = Goal(target=3, minimum=3)
    fewer = with_group(two_of_four_broken(continuous=continuous), goal=smaller)
    assert (group(fewer.then()).status, group(fewer.then()).good) == (GroupStatus.IN_SERVICE, smaller)
    assert group(fewer.then(4 * HOUR).then()).goal == smaller


def test_a_raised_minimum_that_is_taken_back_opens_the_group_again() -> None:
    raised = with_group(two_of_four_broken(), goal=Goal(target=6, minimum=6)).then(60)
    assert group(raised).status is GroupStatus.UPDATING
    between = with_group(raised, goal=Goal(target=6, minimum=5))
    assert statuses(between)["workers"] is GroupStatus.UPDATING
    assert statuses(with_group(raised, goal=Goal(target=6, minimum=4)))["workers"] is GroupStatus.IN_SERVICE


def test_groups_of_a_classic_cluster_wait_together_when_one_grows_and_another_shrinks() -> None:
    was = Goal(target=2, minimum=1)
    groups = [a_group(name, 2, 1, status=GroupStatus.IN_SERVICE, good=was) for name in ("more", "workers")]
    picture = serving(classic(*groups, status=ClusterStatus.IN_SERVICE), "workers-1", "workers-2")
    picture = serving(picture, "more-1", "more-2", group="more")
    both = with_group(with_group(picture, goal=Goal(target=1, minimum=1)), "more", goal=Goal(target=3, minimum=1))
    assert set(statuses(both).values()) == {GroupStatus.UPDATING}
    assert {one.goal.target for one in both.then().after(4 * HOUR).then().memory.groups.values()} == {2}


def test_a_new_group_without_its_minimum_in_three_hours_goes_back_to_nothing() -> None:
    picture = serving(an_empty_head(a_group(target=4, minimum=2)), "workers-1")
    assert "group.rollback" not in kinds(picture.after(3 * HOUR - 1))
    late = picture.after(3 * HOUR)
    assert "group.rollback" in kinds(late)
    assert staying(late) == []
    back = group(late.then())
    assert (back.goal, back.status, back.minimum_since) == (Goal(target=0), GroupStatus.IN_SERVICE, None)
    assert "1 of at least 2 instances were there after 3 h" in back.message


def test_the_clock_begins_anew_when_the_minimum_is_edited() -> None:
    picture = serving(an_empty_head(a_group(target=4, minimum=2)), "workers-1")
    edited = with_group(picture, goal=Goal(target=4, minimum=3), minimum_since=T0 + 2 * HOUR)
    assert "group.rollback" not in kinds(edited.after(4 * HOUR))
    assert "group.rollback" in kinds(edited.after(5 * HOUR))


def test_an_existing_group_goes_back_to_what_it_was_and_keeps_what_serves() -> None:
    former = Goal(target=2, minimum=1)
    whole = a_group(target=4, minimum=4, status=GroupStatus.UPDATING, good=former)
    picture = serving(an_empty_head(whole), "workers-1", "workers-2", "workers-3").drained("workers-1", "mine")
    late = picture.after(3 * HOUR)
    assert group(late.then()).goal == former
    assert staying(late) == ["workers-2", "workers-3"]  # the unhealthy one goes although it is the oldest


def test_what_never_served_goes_before_what_did_and_the_newest_first() -> None:
    whole = a_group(target=4, minimum=4, status=GroupStatus.UPDATING, good=Goal(target=2))
    picture = serving(an_empty_head(whole), "workers-1", "workers-2", "workers-3")
    late = picture.after(3 * HOUR)
    assert staying(late) == ["workers-1", "workers-2"]


def test_while_instances_are_missing_the_message_says_why_and_then_no_more() -> None:
    picture = serving(an_empty_head(a_group(target=2, minimum=2)), "workers-1")
    trouble = a_slot("workers-2", step=SlotStep.WAITING, hitch=Hitch.CAPACITY, trouble="capacity: none left")
    slots = {**picture.memory.slots, n("workers-2"): replace(trouble, next_try=T0 + 99)}
    short = replace(picture, memory=replace(picture.memory, slots=slots))
    assert group(short.then()).message == "missing 1 of 2: workers-2: capacity: none left"
    assert group(serving(short.then(1), "workers-2").then()).message == ""


def test_a_continuous_cluster_is_in_service_with_its_controller_and_stays_so() -> None:
    controller = a_group("controller", 1, 1, role=Role.CONTROLLER, partition="")
    picture = an_empty_head(a_group(target=2, minimum=2), controller)
    assert cluster_status(picture) is ClusterStatus.IN_SERVICE
    assert statuses(picture)["workers"] is GroupStatus.CREATING


def test_a_continuous_cluster_waits_for_a_login_node_where_there_is_such_a_group() -> None:
    login = a_group("login", 1, 1, role=Role.LOGIN, partition="")
    assert cluster_status(an_empty_head(a_group(), login)) is ClusterStatus.CREATING
    there = serving(an_empty_head(a_group(), login), "login-1", group="login")
    assert cluster_status(there) is ClusterStatus.IN_SERVICE


def classic(*groups: Group, status: ClusterStatus = ClusterStatus.CREATING) -> Picture:
    return an_empty_head(*groups, cluster={"continuous": False, "status": status})


def test_groups_of_a_classic_cluster_come_into_service_together() -> None:
    picture = serving(classic(a_group("more", 1, 1), a_group(target=1, minimum=1)), "workers-1")
    assert set(statuses(picture).values()) == {GroupStatus.CREATING}
    both = serving(picture, "more-1", group="more")
    assert set(statuses(both).values()) == {GroupStatus.IN_SERVICE}
    assert cluster_status(both) is ClusterStatus.IN_SERVICE


def test_a_classic_cluster_that_one_group_fails_goes_back_as_a_whole_and_has_failed() -> None:
    picture = serving(classic(a_group("more", 1, 1), a_group(target=1, minimum=1)), "workers-1").after(3 * HOUR)
    assert cluster_status(picture) is ClusterStatus.ROLLING_BACK
    assert staying(picture) == []
    bare = replace(picture.then(), memory=replace(picture.then().memory, slots={}))
    assert cluster_status(bare) is ClusterStatus.FAILED


@pytest.mark.parametrize("hitch", [Hitch.REFUSED, Hitch.OTHER])
def test_a_classic_cluster_whose_launches_keep_failing_goes_back_before_its_time(hitch: Hitch) -> None:
    slot = a_slot("workers-1", step=SlotStep.WAITING, instance=None, hitch=hitch, trouble="no image", next_try=T0 + 99)
    head = classic(a_group(target=1, minimum=1))

    def after(tries: int) -> ClusterStatus:
        slots = {slot.node: replace(slot, tries=tries)}
        return cluster_status(replace(head, memory=replace(head.memory, slots=slots)))

    assert (after(4), after(5)) == (ClusterStatus.CREATING, ClusterStatus.FAILED)


def test_an_update_of_a_classic_cluster_that_fails_restores_every_group() -> None:
    was = Goal(target=1, minimum=1)
    one = a_group(target=2, minimum=2, status=GroupStatus.UPDATING, good=was)
    more = a_group("more", 1, 1, status=GroupStatus.IN_SERVICE, good=was)
    picture = serving(classic(one, more, status=ClusterStatus.IN_SERVICE), "workers-1")
    there = serving(picture, "more-1", "more-2", group="more")
    grown = with_group(there, "more", goal=Goal(target=2, minimum=2)).then()
    assert statuses(grown) == {"workers": GroupStatus.UPDATING, "more": GroupStatus.UPDATING}
    late = grown.after(4 * HOUR).then()
    assert {name: one.goal for name, one in late.memory.groups.items()} == {"workers": was, "more": was}
    assert late.memory.cluster is not None
    assert late.memory.cluster.status is ClusterStatus.ROLLING_BACK


def test_a_deleted_group_goes_with_its_last_slot_and_a_deleted_cluster_with_its_last_group() -> None:
    gone = with_group(serving(an_empty_head(a_group(target=1)), "workers-1"), status=GroupStatus.DELETING)
    assert gone.memory.cluster is not None
    deleting = replace(gone.memory, cluster=replace(gone.memory.cluster, status=ClusterStatus.DELETING))
    picture = replace(gone, memory=deleting)
    assert staying(picture) == []
    assert "workers" in picture.plan().memory.groups
    empty = replace(picture, memory=replace(deleting, slots={}))
    assert (dict(empty.plan().memory.groups), empty.plan().memory.cluster) == ({}, None)
