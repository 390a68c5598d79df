"""CreateCluster: what is made, and what is refused."""

import pytest

from steward.model.group import ClusterStatus, Goal, GroupStatus, Role
from steward.model.machine_types import MachineType
from steward.model.node import Node, NodeBase
from steward.model.order import CreateCluster, GroupWish, RefusalKind
from steward.model.setup import Lifecycle
from tests.builders.api_cluster import an_api_cluster, nothing
from tests.builders.orders import (
    a_controller,
    a_creation,
    a_wish,
    after,
    carried,
    refused,
    with_pool,
    with_rules,
    workers,
)
from tests.builders.picture import T0, n, names


def test_a_created_cluster_is_remembered_with_its_groups_and_their_clocks() -> None:
    done = carried(a_creation(a_controller(), workers(4, minimum=3)), nothing())
    cluster, groups = done.memory.cluster, done.memory.groups
    assert cluster is not None
    assert (cluster.name, cluster.status, cluster.created) == ("ml-cluster", ClusterStatus.CREATING, T0)
    assert (groups["workers"].goal, groups["workers"].status) == (Goal(target=4, minimum=3), GroupStatus.CREATING)
    assert groups["workers"].minimum_since == T0
    assert done.answer.cluster_id == cluster.id
    assert len(cluster.id) == 12
    assert cluster.id.isalnum()
    assert cluster.id.islower()


def test_creating_is_one_operation_from_nothing() -> None:
    [operation] = carried(a_creation(), nothing()).memory.operations.values()
    assert operation.before == {"controller": Goal(target=0), "workers": Goal(target=0)}
    assert operation.after == {"controller": Goal(target=1, minimum=1), "workers": Goal(target=4)}
    assert operation.finished is None


def test_the_event_says_who_created_it() -> None:
    [event] = carried(a_creation(), nothing()).events
    assert event.kind == "cluster.created"
    assert event.text == "ann created cluster ml-cluster: controller 1, workers 4"
    assert ("who", "ann") in event.data


def test_without_a_minimum_workers_may_be_at_zero_and_a_login_machine_is_waited_for() -> None:
    groups = after(a_creation(a_controller(), workers(4), a_wish("login", 2, role=Role.LOGIN)), nothing()).memory.groups
    assert {name: group.goal.minimum for name, group in groups.items()} == {"controller": 1, "workers": 0, "login": 1}


def test_without_slurm_config_every_group_is_compute_and_no_controller_is_needed() -> None:
    groups = after(a_creation(a_wish("a", 1), a_wish("b", 2)), nothing()).memory.groups
    assert {group.role for group in groups.values()} == {Role.COMPUTE}


def test_a_group_that_is_called_the_controllers_never_becomes_workers_silently() -> None:
    """The classic form without scripts: no file says that group's role either."""
    _, text = refused(a_creation(a_wish("controller-machine"), a_wish("worker-group-1")), nothing())
    assert "No instance group has SlurmConfig: controller-machine would become workers" in text
    assert carried(a_creation(a_wish("worker-group-1")), nothing()).memory.groups


def test_the_classic_form_is_refused_since_its_roles_stand_in_a_file_of_the_scripts() -> None:
    """Its controller group would be launched as workers."""
    scripts = Lifecycle(source="s3://bucket/base-config", on_create="on_create.sh")
    wishes = [a_wish(name, 1, lifecycle=scripts) for name in ("controller-machine", "worker-group-1")]
    kind, text = refused(a_creation(*wishes), nothing())
    assert kind is RefusalKind.VALIDATION
    assert "provisioning_parameters.json are not read here" in text
    assert "SlurmConfig with NodeType Controller" in text


def test_a_new_group_has_the_features_of_its_declared_machine_types() -> None:
    types = {"big": MachineType(name="big", features=("nvlink",))}
    picture = with_rules(nothing(), types=types)
    groups = after(a_creation(a_wish("a", 1, types=("big",))), picture).memory.groups
    assert groups["a"].features == {"nvlink"}


def test_the_same_name_is_in_use() -> None:
    assert refused(a_creation(), an_api_cluster()) == (
        RefusalKind.IN_USE,
        "Cluster ml-cluster exists already.",
    )


def test_a_second_cluster_is_beyond_the_limit() -> None:
    assert refused(a_creation(name="other"), an_api_cluster()) == (
        RefusalKind.LIMIT,
        "This head looks after one Slurm cluster: ml-cluster.",
    )


def test_a_head_without_capacity_makes_no_cluster() -> None:
    kind, text = refused(a_creation(), with_rules(nothing(), enabled=False))
    assert kind is RefusalKind.VALIDATION
    assert "capacity.enabled" in text


@pytest.mark.parametrize(
    ("wishes", "text"),
    [
        (
            (a_controller("c1"), a_controller("c2")),
            "2 Controller Groups found: SlurmConfig for InstanceGroups may only",
        ),
        ((workers(),), "Cluster ml-cluster has no InstanceGroup with Controller node type."),
        ((a_controller(count=2),), "InstanceCount must be 1, not 2"),
        ((a_controller(count=0),), "InstanceCount must be 1, not 0"),
        ((a_controller(partition="dev"),), "Partitions can only be assigned to Compute node types"),
        ((a_controller(), workers(partition="All")), "All is a word of Slurm's"),
        ((a_controller(), a_wish("default", 2, role=Role.COMPUTE, partition="dev")), "default is a word of Slurm's"),
        ((a_controller(), workers(2, minimum=3)), "MinInstanceCount 3 is above InstanceCount 2"),
        ((a_controller(), workers(), workers()), "InstanceGroups names workers more than once"),
        ((a_controller(), workers(on_start_checks=("MultiNodeTrainingValidation",))), "no such deep check; there are"),
        ((a_controller(), workers(types=())), "give InstanceType or InstanceRequirements"),
    ],
)
def test_impossible_groups_are_refused(wishes: tuple[GroupWish, ...], text: str) -> None:
    kind, said = refused(a_creation(*wishes), nothing())
    assert kind is RefusalKind.VALIDATION
    assert text in said


def test_a_group_whose_partition_steward_does_not_write_may_have_a_word_of_slurm_as_its_name() -> None:
    wishes = (a_controller(), a_wish("all", 1, role=Role.LOGIN), a_wish("default", 1, role=Role.COMPUTE))
    assert set(after(a_creation(*wishes), nothing()).memory.groups) == {"controller", "all", "default"}
    lent = with_rules(nothing(), owned_partitions=frozenset({"dev"}))
    named = a_wish("default", 1, role=Role.COMPUTE, partition="dev")
    assert "default" in after(a_creation(a_controller(), named), lent).memory.groups


def test_a_cluster_without_groups_is_refused() -> None:
    kind, text = refused(CreateCluster(who="ann", name="c", groups=()), nothing())
    assert kind is RefusalKind.VALIDATION
    assert "at least one instance group" in text


def test_a_minimum_needs_continuous_provisioning() -> None:
    kind, text = refused(a_creation(a_controller(), workers(4, minimum=2), continuous=False), nothing())
    assert kind is RefusalKind.VALIDATION
    assert "NodeProvisioningMode Continuous" in text


def test_a_pool_gives_only_as_many_nodes_as_it_has() -> None:
    kind, text = refused(a_creation(), with_pool(nothing(), "workers", "n1", "n2"))
    assert kind is RefusalKind.LIMIT
    assert text == "Instance group workers: InstanceCount 4, but the [[groups]] table of this name has 2 nodes."


def test_a_group_whose_machines_nobody_makes_is_refused_with_the_remedy() -> None:
    kind, text = refused(a_creation(), with_rules(nothing(), provider=None))
    assert kind is RefusalKind.VALIDATION
    assert "[[groups]]" in text
    assert "capacity.provider" in text


def test_a_pool_needs_no_provider_for_other_groups_and_the_controller_none_at_all() -> None:
    picture = with_rules(with_pool(nothing(), "workers", "n1", "n2", "n3", "n4"), provider=None)
    assert set(after(a_creation(), picture).memory.groups) == {"controller", "workers"}


def test_too_many_groups_or_instances_are_beyond_the_limit() -> None:
    assert refused(a_creation(), with_rules(nothing(), max_groups=1))[0] is RefusalKind.LIMIT
    assert refused(a_creation(), with_rules(nothing(), max_instances=4))[0] is RefusalKind.LIMIT
    assert after(a_creation(), with_rules(nothing(), max_groups=2, max_instances=5)).memory.cluster is not None


def test_a_site_that_declares_machine_types_means_them_and_the_built_in_ones() -> None:
    picture = with_rules(nothing(), types={"h100-8": MachineType(name="h100-8")})
    for known in ("h100-8", "ml.p5.48xlarge"):
        assert after(a_creation(a_wish(types=(known,))), picture).memory.cluster is not None
    kind, text = refused(a_creation(a_wish(types=("h200-8",))), picture)
    assert kind is RefusalKind.VALIDATION
    assert "h200-8" in text
    assert "h100-8" in text


def test_a_site_that_declares_no_machine_types_takes_any() -> None:
    assert after(a_creation(a_wish(types=("whatever",))), nothing()).memory.cluster is not None


def test_a_partition_must_be_one_that_slurm_has_or_that_steward_may_write() -> None:
    picture = with_rules(nothing(), slurm_include=None)
    kind, text = refused(a_creation(), picture)
    assert kind is RefusalKind.VALIDATION
    assert "capacity.slurm_include" in text
    assert after(a_creation(), with_rules(picture, owned_partitions=frozenset({"dev"}))).memory.cluster is not None
    node = Node(name=n("x"), base=NodeBase.IDLE, partitions=names("dev"))
    assert after(a_creation(), picture.see(nodes={n("x"): node})).memory.cluster is not None


def test_more_tags_than_a_resource_may_have_are_refused() -> None:
    tags = {f"key{i}": "v" for i in range(51)}
    assert refused(a_creation(tags=tags), nothing())[0] is RefusalKind.LIMIT


def test_the_same_order_at_the_same_time_gives_the_same_cluster() -> None:
    assert carried(a_creation(), nothing()) == carried(a_creation(), nothing())
