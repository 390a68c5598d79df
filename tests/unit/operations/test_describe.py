"""DescribeCluster and ListClusters: what the cluster and its groups look like."""

from typing import Any

import pytest

from steward.model.capacity_policy import CapacityPolicy
from steward.model.group import BatchSize, ClusterStatus, Goal, GroupStatus, Rollout, RolloutState, Version
from steward.model.setup import Lifecycle
from steward.model.slot import SlotStep
from tests.builders.api_cluster import ARN, ROLE, ApiPicture, a_group, an_api_cluster, nothing
from tests.builders.picture import T0
from tests.builders.want import but
from tests.fakes.operations import operations_on

OLD, NEW = Version(image="ami-00000001", release="1.0.0"), Version(image="ami-00000002", release="1.1.0", serial=1)


def described(picture: ApiPicture) -> dict[str, Any]:
    return operations_on(picture).call("DescribeCluster", ClusterName="ml-cluster")


def group(picture: ApiPicture, name: str = "workers") -> dict[str, Any]:
    found: list[dict[str, Any]] = described(picture)["InstanceGroups"]
    return next(one for one in found if one["InstanceGroupName"] == name)


def test_the_cluster_is_found_by_name_and_by_arn() -> None:
    operations = operations_on(an_api_cluster())
    by_name = operations.call("DescribeCluster", ClusterName="ml-cluster")
    assert by_name == operations.call("DescribeCluster", ClusterName=ARN)
    assert (by_name["ClusterArn"], by_name["ClusterStatus"], by_name["CreationTime"]) == (ARN, "InService", T0 - 100)
    assert (by_name["NodeRecovery"], by_name["NodeProvisioningMode"]) == ("Automatic", "Continuous")


@pytest.mark.parametrize("name", ["other", "ML-cluster", ARN[:-1] + "9"])
def test_another_name_is_not_found(name: str) -> None:
    code, text = operations_on(an_api_cluster()).refused("DescribeCluster", ClusterName=name)
    assert code == "ResourceNotFound"
    assert name in text


def test_a_cluster_without_recovery_and_without_continuous_provisioning_says_so() -> None:
    found = described(an_api_cluster().cluster(recovery=False, continuous=False, message="no capacity"))
    assert (found["NodeRecovery"], found["FailureMessage"]) == ("None", "no capacity")
    assert "NodeProvisioningMode" not in found
    assert all("MinCount" not in one for one in found["InstanceGroups"])


def test_what_was_given_and_decides_nothing_is_given_back() -> None:
    vpc = {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}
    found = described(an_api_cluster().cluster(extras=f'{{"VpcConfig": {vpc}}}'.replace("'", '"')))
    assert found["VpcConfig"] == vpc
    assert found["InstanceGroups"][0]["ExecutionRole"] == ROLE


def test_current_target_and_minimum_are_told_per_group() -> None:
    picture = an_api_cluster(3).slot("workers-3", step=SlotStep.SETUP)
    found = group(picture.change_group("workers", goal=Goal(target=5, minimum=2)))
    assert (found["CurrentCount"], found["TargetCount"], found["MinCount"]) == (2, 5, 2)


def test_the_words_of_a_group_are_the_apis() -> None:
    for status in GroupStatus:
        assert group(an_api_cluster().change_group("workers", status=status))["Status"] == status.value
    for state in ClusterStatus:
        assert described(an_api_cluster().cluster(status=state))["ClusterStatus"] == state.value


def test_a_group_shows_its_role_and_partition() -> None:
    picture = an_api_cluster()
    assert group(picture)["SlurmConfig"] == {"NodeType": "Compute", "PartitionNames": ["dev"]}
    assert group(picture, "controller")["SlurmConfig"] == {"NodeType": "Controller"}


def test_a_lifecycle_is_shown_as_it_was_given() -> None:
    cycle = Lifecycle(source="s3://b/scripts", on_create="on_create.sh", sha256="a" * 64)
    assert group(an_api_cluster().change_group("workers", lifecycle=cycle))["LifeCycleConfig"] == {
        "SourceS3Uri": f"s3://b/scripts#sha256={'a' * 64}",
        "OnCreate": "on_create.sh",
    }
    assert "LifeCycleConfig" not in group(an_api_cluster())


def test_scalings_under_way_are_counted_for_the_groups_that_they_touch() -> None:
    picture = an_api_cluster().operation("o-1", after={"workers": Goal(target=4)})
    picture = picture.operation("o-2", after={"workers": Goal(target=5)}, finished=T0)
    assert group(picture)["ActiveOperations"] == {"Scaling": 1}
    assert "ActiveOperations" not in group(picture, "controller")


def test_a_list_of_types_is_shown_with_what_each_has() -> None:
    extras = '{"InstanceRequirements": {"InstanceTypes": ["ml.c5.large", "ml.m5.large"]}}'
    types = ("ml.c5.large", "ml.m5.large")
    found = group(an_api_cluster().group(a_group("workers", types=types, extras=extras)))
    assert found["InstanceRequirements"]["DesiredInstanceTypes"] == list(types)
    assert [one["InstanceType"] for one in found["InstanceTypeDetails"]] == list(types)
    assert "InstanceType" not in found


def rolling(state: RolloutState) -> ApiPicture:
    rollout = Rollout(
        state=state, wanted=NEW, previous=OLD, started=T0, batch=BatchSize(count=2), wait_s=60.0, alarms=("hot",)
    )
    version = OLD if state in (RolloutState.ROLLBACK_IN_PROGRESS, RolloutState.ROLLBACK_COMPLETE) else NEW
    return an_api_cluster(2).group(a_group("workers", rollout=rollout, version=version))


def images(picture: ApiPicture) -> tuple[str, str]:
    found = group(picture)
    return found["CurrentImageId"], found["DesiredImageId"]


def test_an_update_shows_both_images_and_a_rollback_swaps_them() -> None:
    assert images(rolling(RolloutState.IN_PROGRESS)) == (OLD.image, NEW.image)
    assert images(rolling(RolloutState.ROLLBACK_IN_PROGRESS)) == (NEW.image, OLD.image)
    assert images(rolling(RolloutState.SUCCEEDED)) == (NEW.image, NEW.image)
    assert images(rolling(RolloutState.ROLLBACK_COMPLETE)) == (OLD.image, OLD.image)


def test_an_update_under_way_shows_how_it_goes() -> None:
    picture = rolling(RolloutState.IN_PROGRESS).slot("workers-1", version=NEW).slot("workers-2", version=OLD)
    found = group(picture)
    assert (found["SoftwareUpdateStatus"], found["TargetStateCount"]) == ("InProgress", 1)
    assert found["ActiveSoftwareUpdateConfig"] == {
        "RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 2}},
        "WaitIntervalInSeconds": 60,
        "AutoRollbackConfiguration": [{"AlarmName": "hot"}],
    }
    assert "ActiveSoftwareUpdateConfig" not in group(rolling(RolloutState.SUCCEEDED))


def test_the_one_cluster_is_listed_and_filtered() -> None:
    operations = operations_on(an_api_cluster())

    def names(**members: object) -> list[str]:
        return [one["ClusterName"] for one in operations.call("ListClusters", **members)["ClusterSummaries"]]

    assert names() == names(NameContains="ml") == names(CreationTimeBefore=T0) == ["ml-cluster"]
    assert names(NameContains="x") == names(CreationTimeAfter=T0) == []
    assert operations_on(nothing()).call("ListClusters") == {"ClusterSummaries": []}


def test_the_arn_has_the_sites_region_and_account() -> None:
    operations = operations_on(an_api_cluster())
    operations.bench.want = operations.bench.want.__class__(
        capacity=but(CapacityPolicy(), region="hall-2", account="1" * 12)
    )
    found = operations.call("DescribeCluster", ClusterName="ml-cluster")
    assert found["ClusterArn"].startswith(f"arn:aws:sagemaker:hall-2:{'1' * 12}:cluster/")
