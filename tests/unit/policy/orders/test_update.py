"""UpdateCluster and DeleteCluster."""

import json
from typing import Any

import pytest

from steward.model.group import ClusterStatus, Goal, GroupStatus, Role, Version
from steward.model.node import Reason
from steward.model.order import DeleteCluster, RefusalKind
from steward.model.setup import Lifecycle
from tests.builders.api_cluster import ARN, a_group, an_api_cluster
from tests.builders.orders import (
    a_controller,
    a_wish,
    after,
    an_update,
    carried,
    refused,
    with_pool,
    with_rules,
    workers,
)
from tests.builders.picture import T0

GONE = DeleteCluster(who="ann", cluster="ml-cluster")


def goal_of(name: str, *wishes: Any, **fields: Any) -> Goal:
    return after(an_update(*wishes, **fields), an_api_cluster()).memory.groups[name].goal


def test_a_known_name_changes_the_group_and_a_new_one_adds_another() -> None:
    groups = after(an_update(workers(5), a_wish("more", 2)), an_api_cluster()).memory.groups
    assert groups["workers"].goal.target == 5
    assert (groups["more"].goal.target, groups["more"].status) == (2, GroupStatus.CREATING)
    assert groups["more"].minimum_since == T0


def test_a_lower_count_and_an_empty_group_are_allowed() -> None:
    assert goal_of("workers", workers(1)).target == 1
    assert goal_of("workers", workers(0)).target == 0


def test_scaling_without_a_changed_minimum_leaves_the_group_in_service() -> None:
    group = after(an_update(workers(9)), an_api_cluster()).memory.groups["workers"]
    assert (group.status, group.minimum_since) == (GroupStatus.IN_SERVICE, None)


def test_a_changed_minimum_that_is_not_there_yet_makes_the_group_updating_and_starts_the_clock() -> None:
    group = after(an_update(workers(6, minimum=5)), an_api_cluster(workers=3)).memory.groups["workers"]
    assert (group.status, group.minimum_since) == (GroupStatus.UPDATING, T0)


def test_a_changed_minimum_that_is_there_already_changes_nothing_else() -> None:
    group = after(an_update(workers(6, minimum=3)), an_api_cluster(workers=3)).memory.groups["workers"]
    assert (group.status, group.goal.minimum) == (GroupStatus.IN_SERVICE, 3)


def test_a_minimum_that_is_lowered_closes_nothing_although_even_that_is_not_there() -> None:
    whole = Goal(target=4, minimum=4)
    picture = an_api_cluster(workers=4).change_group("workers", goal=whole, good=whole)
    for node in ("workers-3", "workers-4"):
        picture = picture.node(node, flags=frozenset({"DRAIN"}), reason=Reason(text="bad dimm", at=T0 - 50))
    group = after(an_update(workers(3)), picture).memory.groups["workers"]
    assert (group.status, group.goal) == (GroupStatus.IN_SERVICE, Goal(target=3, minimum=3))
    raised = after(an_update(workers(6, minimum=6)), picture).memory.groups["workers"]
    assert raised.status is GroupStatus.UPDATING


def test_an_edit_of_the_minimum_restarts_the_clock_of_a_group_that_is_creating() -> None:
    picture = an_api_cluster().group(
        a_group("workers", count=4, minimum=4, status=GroupStatus.CREATING, minimum_since=T0 - 3000, partition="dev")
    )
    assert after(an_update(workers(4, minimum=2)), picture).memory.groups["workers"].minimum_since == T0
    assert after(an_update(workers(5, minimum=4)), picture).memory.groups["workers"].minimum_since == T0 - 3000


def test_a_minimum_that_is_not_said_again_stays_but_never_above_the_count() -> None:
    picture = an_api_cluster().change_group("workers", goal=Goal(target=3, minimum=2))
    assert after(an_update(workers(5)), picture).memory.groups["workers"].goal == Goal(target=5, minimum=2)
    assert after(an_update(workers(1)), picture).memory.groups["workers"].goal == Goal(target=1, minimum=1)


def test_scripts_checks_partition_and_what_is_only_kept_are_replaced_when_they_are_given() -> None:
    wish = workers(
        3, partition="prod", lifecycle=Lifecycle(source="file:///x", on_create="a.sh"),
        on_start_checks=("InstanceStress",), extras='{"OverrideVpcConfig": {}}',
    )  # fmt: skip
    group = after(an_update(wish), an_api_cluster()).memory.groups["workers"]
    assert (group.partition, group.lifecycle.on_create, group.on_start_checks) == ("prod", "a.sh", ("InstanceStress",))
    assert set(json.loads(group.extras)) == {"ExecutionRole", "OverrideVpcConfig"}


@pytest.mark.parametrize(
    ("fields", "member"),
    [
        ({"types": ("ml.p5.48xlarge",)}, "InstanceType"),
        ({"threads_per_core": 2}, "ThreadsPerCore"),
        ({"extras": '{"ExecutionRole": "arn:aws:iam::000000000000:role/other"}'}, "ExecutionRole"),
        ({"role": Role.LOGIN, "partition": None}, "SlurmConfig.NodeType"),
        ({"image": "ami-0123456789abcdef0"}, "ImageId"),
        ({"release": "2"}, "ImageReleaseVersion"),
        ({"on_start_checks": ("MultiNodeTrainingValidation",)}, "MultiNodeTrainingValidation"),
    ],
)
def test_members_that_an_update_cannot_change_are_refused(fields: dict[str, Any], member: str) -> None:
    kind, text = refused(an_update(workers(3, **fields)), an_api_cluster())
    assert kind is RefusalKind.VALIDATION
    assert member in text


def test_the_image_that_a_group_has_may_be_said_again() -> None:
    picture = an_api_cluster().change_group("workers", version=Version(image="ami-1", release="7"))
    assert after(an_update(workers(5, image="ami-1", release="7")), picture).memory.groups["workers"].goal.target == 5


def test_a_deleted_group_is_going_and_wants_nothing() -> None:
    picture = an_api_cluster().group(a_group("more", count=2))
    group = after(an_update(delete=("more",)), picture).memory.groups["more"]
    assert (group.status, group.goal) == (GroupStatus.DELETING, Goal(target=0))


@pytest.mark.parametrize(
    ("order", "kind", "text"),
    [
        (an_update(workers(2), delete=("workers",)), RefusalKind.VALIDATION, "in InstanceGroups and in"),
        (an_update(delete=("nobody",)), RefusalKind.VALIDATION, "no instance group nobody"),
        (an_update(delete=("controller",)), RefusalKind.VALIDATION, "it cannot be deleted"),
        (an_update(a_controller(count=0)), RefusalKind.VALIDATION, "InstanceCount must be 1, not 0"),
        (an_update(a_controller(count=2)), RefusalKind.VALIDATION, "InstanceCount must be 1, not 2"),
        (an_update(a_controller("second")), RefusalKind.VALIDATION, "2 Controller Groups found"),
        (an_update(workers(2, minimum=3)), RefusalKind.VALIDATION, "MinInstanceCount 3 is above InstanceCount 2"),
        (an_update(workers(partition="default")), RefusalKind.VALIDATION, "default is a word of Slurm's"),
        (an_update(workers(), workers()), RefusalKind.VALIDATION, "more than once"),
        (an_update(cluster="other"), RefusalKind.NOT_FOUND, "Cluster other is not known."),
        (an_update(cluster=ARN.replace("abcdef", "abcdee")), RefusalKind.NOT_FOUND, "is not known"),
    ],
)
def test_impossible_updates_are_refused(order: Any, kind: RefusalKind, text: str) -> None:
    said = refused(order, an_api_cluster())
    assert said[0] is kind
    assert text in said[1]


def test_at_least_one_group_stays() -> None:
    picture = an_api_cluster()
    picture = picture.remember(groups={"workers": picture.memory.groups["workers"]})
    kind, text = refused(an_update(delete=("workers",)), picture)
    assert kind is RefusalKind.VALIDATION
    assert "at least one instance group must stay" in text


def test_the_cluster_can_be_called_by_its_arn() -> None:
    assert after(an_update(workers(5), cluster=ARN), an_api_cluster()).memory.groups["workers"].goal.target == 5


@pytest.mark.parametrize("status", [ClusterStatus.CREATING, ClusterStatus.DELETING, ClusterStatus.SYSTEM_UPDATING])
def test_a_cluster_that_is_busy_as_a_whole_is_not_updated(status: ClusterStatus) -> None:
    kind, text = refused(an_update(workers(5)), an_api_cluster().cluster(status=status))
    assert kind is RefusalKind.CONFLICT
    assert status.value in text


def test_overlapping_updates_are_what_continuous_provisioning_is_for() -> None:
    picture = an_api_cluster().cluster(status=ClusterStatus.UPDATING)
    assert after(an_update(workers(5)), picture).memory.groups["workers"].goal.target == 5
    assert refused(an_update(workers(5)), picture.cluster(continuous=False))[0] is RefusalKind.CONFLICT


def test_a_group_that_is_going_or_being_updated_is_not_changed() -> None:
    for status in (GroupStatus.DELETING, GroupStatus.SYSTEM_UPDATING):
        picture = an_api_cluster().change_group("workers", status=status)
        assert refused(an_update(workers(5)), picture)[0] is RefusalKind.CONFLICT


def test_without_continuous_provisioning_the_cluster_is_updating() -> None:
    memory = after(an_update(workers(5)), an_api_cluster().cluster(continuous=False)).memory
    assert memory.cluster is not None
    assert memory.cluster.status is ClusterStatus.UPDATING


def test_each_change_of_a_goal_is_an_operation_that_supersedes_unfinished_ones_of_its_groups() -> None:
    once = after(an_update(workers(5), a_wish("more", 2)), an_api_cluster())
    [first] = once.memory.operations
    twice = after(an_update(workers(6)), once).memory.operations
    assert twice[first].superseded == {"workers"}
    assert twice[first].finished is None
    thrice = after(an_update(a_wish("more", 3)), after(an_update(workers(6)), once)).memory.operations
    assert thrice[first].superseded == {"workers", "more"}
    assert thrice[first].finished == T0
    assert len(thrice) == 3


def test_an_update_that_changes_no_goal_is_no_operation() -> None:
    done = carried(an_update(workers(3), recovery=False), an_api_cluster())
    assert done.memory.operations == {}
    assert done.memory.cluster is not None
    assert not done.memory.cluster.recovery


def test_growing_beyond_a_pool_or_the_limits_is_refused() -> None:
    names = ("workers-1", "workers-2", "workers-3")
    assert refused(an_update(workers(4)), with_pool(an_api_cluster(), "workers", *names))[0] is RefusalKind.LIMIT
    assert refused(an_update(workers(4)), with_rules(an_api_cluster(), max_instances=4))[0] is RefusalKind.LIMIT


def test_a_group_that_goes_does_not_count_against_the_limits() -> None:
    picture = with_rules(an_api_cluster().group(a_group("more", count=2)), max_instances=6)
    order = an_update(workers(5), delete=("more",))
    assert after(order, picture).memory.groups["workers"].goal.target == 5


def test_deleting_the_cluster_lets_every_group_go() -> None:
    memory = after(GONE, an_api_cluster()).memory
    assert memory.cluster is not None
    assert memory.cluster.status is ClusterStatus.DELETING
    assert {(g.status, g.goal) for g in memory.groups.values()} == {(GroupStatus.DELETING, Goal(target=0))}


@pytest.mark.parametrize("status", [s for s in ClusterStatus if s is not ClusterStatus.DELETING])
def test_a_cluster_can_be_deleted_whatever_it_is_doing(status: ClusterStatus) -> None:
    memory = after(GONE, an_api_cluster().cluster(status=status)).memory
    assert memory.cluster is not None
    assert memory.cluster.status is ClusterStatus.DELETING


def test_a_cluster_is_deleted_once() -> None:
    assert refused(GONE, after(GONE, an_api_cluster()))[0] is RefusalKind.CONFLICT


def test_what_became_of_the_last_try_is_not_told_beside_the_next_one() -> None:
    picture = an_api_cluster(3).change_group("workers", message="rollback: its minimum was not there in time")
    assert after(an_update(workers(3)), picture).memory.groups["workers"].message
    assert after(an_update(workers(5)), picture).memory.groups["workers"].message == ""
