"""Calls that change the cluster: what of the request reaches it, and how refusals are told."""

import json
from pathlib import Path
from typing import Any

import pytest

from steward.model.group import Goal, Role, RolloutState
from steward.model.ids import InstanceId
from steward.model.slot import Purpose
from tests.builders.api_cluster import ARN, ID, ROLE, an_api_cluster, nothing
from tests.builders.picture import n
from tests.fakes.operations import Operations, operations_on


def a_group(name: str = "workers", count: int = 3, **more: Any) -> dict[str, Any]:
    given = {"InstanceGroupName": name, "InstanceCount": count, "InstanceType": "ml.c5.large", "ExecutionRole": ROLE}
    return {**given, **more}


def create(operations: Operations, *groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    given = {"ClusterName": "ml-cluster", "InstanceGroups": list(groups), "NodeProvisioningMode": "Continuous"}
    return operations.call("CreateCluster", **{**given, **more})


def refused(*groups: dict[str, Any], **more: Any) -> tuple[str, str]:
    given = {"ClusterName": "ml-cluster", "InstanceGroups": list(groups or [a_group()])}
    mode = {"NodeProvisioningMode": "Continuous"}
    return operations_on(nothing()).refused("CreateCluster", **{**given, **mode, **more})


CONTROLLER = a_group("controller", 1, SlurmConfig={"NodeType": "Controller"})


def test_a_cluster_is_created_and_seen_by_the_next_call() -> None:
    operations = operations_on(nothing())
    workers = a_group(MinInstanceCount=2, SlurmConfig={"NodeType": "Compute", "PartitionNames": ["dev"]})
    arn = create(operations, CONTROLLER, workers, Tags=[{"Key": "team", "Value": "ml"}])["ClusterArn"]
    found = operations.call("DescribeCluster", ClusterName=arn)
    groups = {one["InstanceGroupName"]: one for one in found["InstanceGroups"]}
    assert (groups["workers"]["TargetCount"], groups["workers"]["MinCount"]) == (3, 2)
    assert groups["workers"]["SlurmConfig"] == {"NodeType": "Compute", "PartitionNames": ["dev"]}
    assert operations.call("ListTags", ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "ml"}]


def test_everything_of_a_group_comes_back_as_it_was_given() -> None:
    given = a_group(
        ThreadsPerCore=1,
        InstanceStorageConfigs=[{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}],
        OnStartDeepHealthChecks=["InstanceStress"],
        LifeCycleConfig={"SourceS3Uri": "s3://sagemaker-x/scripts/", "OnCreate": "on_create.sh"},
        OverrideVpcConfig={"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
        NetworkInterface={"InterfaceType": "efa"},
    )
    operations = operations_on(nothing())
    create(operations, CONTROLLER, given)
    groups = operations.call("DescribeCluster", ClusterName="ml-cluster")["InstanceGroups"]
    (found,) = (one for one in groups if one["InstanceGroupName"] == "workers")
    assert {name: found[name] for name in given if name != "InstanceCount"} == {
        name: value for name, value in given.items() if name != "InstanceCount"
    }


def test_a_digest_of_the_scripts_may_stand_behind_their_place() -> None:
    operations = operations_on(nothing())
    uri = "file:///opt/scripts#sha256=" + "0" * 64
    create(operations, CONTROLLER, a_group(LifeCycleConfig={"SourceS3Uri": uri, "OnCreate": "a.sh"}))
    lifecycle = operations.memory.groups["workers"].lifecycle
    assert (lifecycle.source, lifecycle.sha256) == ("file:///opt/scripts", "0" * 64)


@pytest.mark.parametrize(
    ("group", "said"),
    [
        (a_group(InstanceRequirements={"InstanceTypes": ["ml.c5.large"]}), "exactly one of InstanceType"),
        ({key: value for key, value in a_group().items() if key != "InstanceType"}, "exactly one of InstanceType"),
        (a_group(LifeCycleConfig={"OnCreate": "x.sh"}), "SourceS3Uri"),
        (a_group(LifeCycleConfig={"SourceS3Uri": "s3://b/", "OnCreate": "../x.sh"}), "under SourceS3Uri"),
        (a_group(LifeCycleConfig={"SourceS3Uri": "s3://b/", "OnCreate": "/bin/sh"}), "under SourceS3Uri"),
        (a_group(LifeCycleConfig={"SourceS3Uri": "s3://b/#sha256=zz", "OnCreate": "x.sh"}), "64 hex digits"),
        (a_group(KubernetesConfig={"Labels": {}}), "KubernetesConfig is not supported here"),
        (a_group(AutoPatchConfig={"PatchingStrategy": "WhenIdle"}), "AutoPatchConfig is not supported here"),
        (a_group(ScheduledUpdateConfig={"ScheduleExpression": "cron(0 0 1 * ? *)"}), "ScheduledUpdateConfig is not"),
        (a_group(CapacityRequirements={"Spot": {}}), "CapacityRequirements.Spot is not supported here"),
    ],
)
def test_a_group_that_cannot_be_is_refused_with_its_reason(group: dict[str, Any], said: str) -> None:
    code, text = refused(group)
    assert code == "ValidationException"
    assert said in text


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"Orchestrator": {}}, "Orchestrator"),
        ({"Orchestrator": {"Eks": {"ClusterArn": "arn:aws:eks:us-east-1:000000000000:cluster/x"}}}, "Eks"),
        ({"Orchestrator": {"Slurm": {"SlurmConfigStrategy": "Managed"}}}, "SlurmConfigStrategy"),
        ({"AutoScaling": {"Mode": "Enable", "AutoScalerType": "Karpenter"}}, "AutoScaling"),
        ({"TieredStorageConfig": {"Mode": "Enable"}}, "TieredStorageConfig"),
        (
            {
                "RestrictedInstanceGroups": [
                    {
                        "InstanceCount": 1,
                        "InstanceGroupName": "r",
                        "InstanceType": "ml.c5.large",
                        "ExecutionRole": ROLE,
                        "EnvironmentConfig": {},
                    }
                ]
            },
            "RestrictedInstanceGroups",
        ),
    ],
)
def test_what_steward_does_not_do_is_refused_and_not_ignored(more: dict[str, Any], said: str) -> None:
    code, text = refused(**more)
    assert code == "ValidationException"
    assert said in text


def test_a_second_cluster_and_the_same_one_again_are_refused() -> None:
    operations = operations_on(an_api_cluster())
    given = {"InstanceGroups": [a_group()], "NodeProvisioningMode": "Continuous"}
    assert operations.refused("CreateCluster", ClusterName="ml-cluster", **given)[0] == "ResourceInUse"
    assert operations.refused("CreateCluster", ClusterName="second", **given)[0] == "ResourceLimitExceeded"


def status_of(operations: Operations, group: str) -> str:
    return operations.memory.groups[group].status.value


def test_an_update_resizes_adds_and_deletes() -> None:
    operations = operations_on(an_api_cluster(3))
    answer = operations.call("UpdateCluster", ClusterName=ARN, InstanceGroups=[a_group(count=5), a_group("more", 1)])
    assert answer == {"ClusterArn": ARN}
    assert operations.memory.groups["workers"].goal == Goal(target=5)
    assert status_of(operations, "more") == "Creating"
    operations.call("UpdateCluster", ClusterName="ml-cluster", InstanceGroupsToDelete=["more"])
    assert status_of(operations, "more") == "Deleting"


def test_an_update_that_says_nothing_of_recovery_keeps_it() -> None:
    operations = operations_on(an_api_cluster().cluster(recovery=False))
    operations.call("UpdateCluster", ClusterName="ml-cluster", InstanceGroups=[a_group()])
    assert operations.memory.cluster is not None
    assert not operations.memory.cluster.recovery
    operations.call("UpdateCluster", ClusterName="ml-cluster", NodeRecovery="Automatic")
    assert operations.memory.cluster.recovery


def test_an_update_of_another_cluster_is_not_found_and_a_wrong_one_invalid() -> None:
    operations = operations_on(an_api_cluster())
    assert operations.refused("UpdateCluster", ClusterName="x", InstanceGroups=[a_group()])[0] == "ResourceNotFound"
    other = a_group(InstanceType="ml.c5.xlarge")
    assert operations.refused("UpdateCluster", ClusterName="ml-cluster", InstanceGroups=[other]) == (
        "ValidationException",
        "Instance group workers: InstanceType cannot be changed from ml.c5.large to ml.c5.xlarge.",
    )


def test_a_deleted_cluster_is_shown_as_deleting_and_cannot_be_deleted_twice() -> None:
    operations = operations_on(an_api_cluster())
    assert operations.call("DeleteCluster", ClusterName="ml-cluster") == {"ClusterArn": ARN}
    assert operations.call("DescribeCluster", ClusterName="ml-cluster")["ClusterStatus"] == "Deleting"
    assert operations.refused("DeleteCluster", ClusterName="ml-cluster")[0] == "ConflictException"


def shown_id(operations: Operations, node: str) -> str:
    nodes = operations.call("ListClusterNodes", ClusterName="ml-cluster")["ClusterNodeSummaries"]
    return str(next(one["InstanceId"] for one in nodes if one["PrivateDnsHostname"] == node))


def test_some_nodes_of_a_batch_go_and_others_are_told_why_not() -> None:
    operations = operations_on(an_api_cluster(3))
    good, controller = shown_id(operations, "workers-2"), shown_id(operations, "controller-1")
    found = operations.call(
        "BatchDeleteClusterNodes",
        ClusterName="ml-cluster",
        NodeIds=[good, "i-00000000", controller],
        NodeLogicalIds=[f"{ID}-3", "no-such"],
    )
    assert found["Successful"] == [good]
    assert {one["NodeId"]: one["Code"] for one in found["Failed"]} == {
        "i-00000000": "NodeIdNotFound",
        controller: "NodeIdInUse",
    }
    assert found["SuccessfulNodeLogicalIds"] == [f"{ID}-3"]
    assert [one["Code"] for one in found["FailedNodeLogicalIds"]] == ["NodeIdNotFound"]
    assert operations.memory.groups["workers"].goal.target == 1
    assert operations.memory.slots[n("workers-2")].purpose is Purpose.LEAVE


def test_a_batch_of_which_nothing_can_be_done_is_refused_in_the_callers_words() -> None:
    operations = operations_on(an_api_cluster())
    controller = shown_id(operations, "controller-1")
    code, text = operations.refused("BatchDeleteClusterNodes", ClusterName="ml-cluster", NodeIds=[controller])
    assert code == "ValidationException"
    assert controller in text
    assert "box/" not in text
    assert operations.refused("BatchDeleteClusterNodes", ClusterName="ml-cluster")[0] == "ValidationException"


@pytest.mark.parametrize("operation", ["BatchRebootClusterNodes", "BatchReplaceClusterNodes"])
def test_reboot_and_replace_open_a_repair_and_name_their_own_errors(operation: str) -> None:
    operations = operations_on(an_api_cluster(2).slot("workers-2", instance=InstanceId("i-0123456789abcdef0")))
    good = "i-0123456789abcdef0"
    found = operations.call(operation, ClusterName="ml-cluster", NodeIds=[good, "i-00000000"])
    assert found["Successful"] == [good]
    assert found["Failed"][0]["ErrorCode"] == "InstanceIdNotFound"
    assert [case.node for case in operations.memory.cases.values()] == ["workers-2"]


def test_added_nodes_are_told_by_their_logical_ids_before_they_exist() -> None:
    operations = operations_on(an_api_cluster(2))
    wish = {"InstanceGroupName": "workers", "IncrementTargetCountBy": 2}
    zoned = {**wish, "InstanceGroupName": "controller", "AvailabilityZones": ["us-east-1a"]}
    typed = {**wish, "InstanceTypes": ["ml.c5.xlarge"]}
    call = {"ClusterName": "ml-cluster", "ClientToken": "t-1", "NodesToAdd": [wish, zoned]}
    found = operations.call("BatchAddClusterNodes", **call)
    assert [one["Status"] for one in found["Successful"]] == ["Pending", "Pending"]
    assert [one["ErrorCode"] for one in found["Failed"]] == ["IncompatibleAvailabilityZones"]
    assert operations.call("BatchAddClusterNodes", **call) == found
    assert operations.memory.groups["workers"].goal.target == 4
    other = operations.call("BatchAddClusterNodes", ClusterName="ml-cluster", NodesToAdd=[typed])
    assert other["Failed"][0]["ErrorCode"] == "IncompatibleInstanceTypes"
    unknown = {**wish, "InstanceGroupName": "no-such"}
    other = operations.call("BatchAddClusterNodes", ClusterName="ml-cluster", NodesToAdd=[unknown])
    assert other["Failed"][0]["ErrorCode"] == "InstanceGroupNotFound"


def test_a_software_update_is_ordered_as_it_was_asked_for() -> None:
    operations = operations_on(an_api_cluster(4))
    policy = {"MaximumBatchSize": {"Type": "CAPACITY_PERCENTAGE", "Value": 50}}
    operations.call(
        "UpdateClusterSoftware",
        ClusterName="ml-cluster",
        InstanceGroups=[{"InstanceGroupName": "workers", "ImageReleaseVersion": "1.2.3"}],
        DeploymentConfig={"RollingUpdatePolicy": policy, "WaitIntervalInSeconds": 30},
    )
    rollout = operations.memory.groups["workers"].rollout
    assert rollout is not None
    assert (rollout.state, rollout.wanted.release, rollout.wait_s) == (RolloutState.PENDING, "1.2.3", 30.0)
    assert rollout.batch is not None
    assert rollout.batch.percent == 50


def test_more_than_all_of_a_group_cannot_be_updated_at_once() -> None:
    policy = {"MaximumBatchSize": {"Type": "CAPACITY_PERCENTAGE", "Value": 101}}
    code, _ = operations_on(an_api_cluster()).refused(
        "UpdateClusterSoftware", ClusterName="ml-cluster", DeploymentConfig={"RollingUpdatePolicy": policy}
    )
    assert code == "ValidationException"


def test_a_health_check_is_accepted_and_recorded() -> None:
    operations = operations_on(an_api_cluster(2))
    wish = {"InstanceGroupName": "workers", "InstanceIds": [shown_id(operations, "workers-1")]}
    checks = [{**wish, "DeepHealthChecks": ["InstanceStress"]}]
    call = {"ClusterName": "ml-cluster", "DeepHealthCheckConfigurations": checks}
    assert operations.call("StartClusterHealthCheck", **call) == {"ClusterArn": ARN}
    assert "health.asked" in [event.kind for event in operations.bench.store.log]


def test_the_controllers_role_and_the_default_role_are_read() -> None:
    operations = operations_on(nothing())
    create(operations, CONTROLLER, a_group())
    roles = {name: group.role for name, group in operations.memory.groups.items()}
    assert roles == {"controller": Role.CONTROLLER, "workers": Role.COMPUTE}


def test_the_cluster_of_the_documentation_is_taken_as_it_stands_there() -> None:
    page = (Path(__file__).parents[3] / "docs" / "capacity.md").read_text()
    document = page.partition("```json\n")[2].partition("```\n")[0]
    operations = operations_on(nothing())
    operations.call("CreateCluster", **json.loads(document))
    assert operations.memory.groups["workers"].goal == Goal(target=3, minimum=2)


def test_ninety_nine_nodes_can_be_deleted_in_one_call_and_a_hundred_cannot() -> None:
    operations = operations_on(an_api_cluster(120))
    pages = [operations.call("ListClusterNodes", ClusterName="ml-cluster", InstanceGroupNameContains="workers")]
    ids = [one["InstanceId"] for page in pages for one in page["ClusterNodeSummaries"]]
    assert len(ids) == 100
    call = {"ClusterName": "ml-cluster", "NodeIds": ids}
    assert operations.refused("BatchDeleteClusterNodes", **call)[0] == "ValidationException"
    found = operations.call("BatchDeleteClusterNodes", ClusterName="ml-cluster", NodeIds=[*ids[:98], "i-00000000"])
    assert (len(found["Successful"]), [one["Code"] for one in found["Failed"]]) == (98, ["NodeIdNotFound"])
    assert operations.memory.groups["workers"].goal.target == 22
