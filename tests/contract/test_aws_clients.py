"""The documents' own commands, typed into the real `aws` command and boto3, against a head whose cycle runs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.builders.api_cluster import ROLE
from tests.fakes.aws_bench import KEY, REGION
from tests.fakes.live_head import LiveHead, a_live_head
from tests.fakes.until import until

"""Of real seconds: enough where the machine has much else to do."""
Aws = Callable[..., Any]


@pytest.fixture
def head() -> Iterator[LiveHead]:
    with a_live_head() as live:
        yield live


@pytest.fixture
def aws(head: LiveHead, tmp_path: Path) -> Aws:
    """`aws sagemaker ...`; its answer, or its error's text."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AWS_ACCESS_KEY_ID": KEY.id,
        "AWS_SECRET_ACCESS_KEY": KEY.secret,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_MAX_ATTEMPTS": "1",
    }
    command = [str(Path(sys.executable).with_name("aws")), "sagemaker"]

    def run(*words: str) -> Any:
        done = subprocess.run(
            [*command, *words, "--endpoint-url", head.aws.url, "--output", "json"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        return json.loads(done.stdout or "{}") if done.returncode == 0 else done.stderr.strip()

    return run


def a_group(name: str, count: int, **more: Any) -> dict[str, Any]:
    given = {"InstanceGroupName": name, "InstanceCount": count, "InstanceType": "ml.c5.large", "ExecutionRole": ROLE}
    return {**given, **more}


def a_cluster(workers: int = 4, **more: Any) -> dict[str, Any]:
    slurm = {"NodeType": "Compute", "PartitionNames": ["workers"]}
    scripts = {"SourceS3Uri": "s3://sagemaker-us-east-1-000000000000/src", "OnCreate": "on_create.sh"}
    return {
        "ClusterName": "ml-cluster",
        "NodeProvisioningMode": "Continuous",
        "Orchestrator": {"Slurm": {}},
        "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
        "InstanceGroups": [
            a_group("controller", 1, SlurmConfig={"NodeType": "Controller"}),
            a_group("workers", workers, SlurmConfig=slurm, LifeCycleConfig=scripts, **more),
        ],
    }


def create(aws: Aws, folder: Path, document: dict[str, Any]) -> Any:
    path = folder / "create_cluster.json"
    path.write_text(json.dumps(document))
    return aws("create-cluster", "--cli-input-json", f"file://{path}")


def counts(head: LiveHead, group: str = "workers") -> tuple[str, int, int]:
    found = head.aws.boto().describe_cluster(ClusterName="ml-cluster")["InstanceGroups"]
    one = next(each for each in found if each["InstanceGroupName"] == group)
    return one["Status"], one["CurrentCount"], one["TargetCount"]


def comes_to(head: LiveHead, status: str, count: int, group: str = "workers") -> None:
    until(f"{group} {status} with {count}", lambda: counts(head, group) == (status, count, count))


def ids(head: LiveHead, group: str = "workers") -> list[str]:
    pages = head.aws.boto().get_paginator("list_cluster_nodes")
    found = [one for page in pages.paginate(ClusterName="ml-cluster") for one in page["ClusterNodeSummaries"]]
    return [one["InstanceId"] for one in found if one["InstanceGroupName"] == group]


def test_a_cluster_from_its_beginning_to_its_end_with_the_aws_command(head: LiveHead, aws: Aws, tmp_path: Path) -> None:
    arn = create(aws, tmp_path, a_cluster())["ClusterArn"]
    assert aws("describe-cluster", "--cluster-name", arn)["ClusterName"] == "ml-cluster"
    comes_to(head, "InService", 4)
    assert aws("list-clusters")["ClusterSummaries"][0]["ClusterStatus"] == "InService"

    nodes = aws("list-cluster-nodes", "--cluster-name", "ml-cluster")["ClusterNodeSummaries"]
    assert [one["InstanceStatus"]["Status"] for one in nodes] == ["Running"] * 5
    chosen = nodes[-1]["InstanceId"]
    details = aws("describe-cluster-node", "--cluster-name", "ml-cluster", "--node-id", chosen)["NodeDetails"]
    assert details["LifeCycleConfig"]["OnCreate"] == "on_create.sh"

    smaller = json.dumps([a_group("workers", 3)])
    assert aws("update-cluster", "--cluster-name", "ml-cluster", "--instance-groups", smaller)["ClusterArn"] == arn
    comes_to(head, "InService", 3)

    left = ids(head)
    deleted = aws(
        "batch-delete-cluster-nodes", "--cluster-name", "ml-cluster", "--node-ids", left[0], "i-0123456789abcdef0"
    )
    assert deleted["Successful"] == [left[0]]
    assert deleted["Failed"][0]["Code"] == "NodeIdNotFound"
    comes_to(head, "InService", 2)

    aws("update-cluster-software", "--cluster-name", "ml-cluster")
    until("the update succeeded", lambda: _software(head) == "Succeeded")
    assert counts(head) == ("InService", 2, 2)

    aws("update-cluster", "--cluster-name", "ml-cluster", "--instance-groups-to-delete", "workers")
    until("the group is gone", lambda: _groups(head) == ["controller"])

    assert aws("delete-cluster", "--cluster-name", "ml-cluster")["ClusterArn"] == arn
    until("the cluster is gone", lambda: not head.aws.boto().list_clusters()["ClusterSummaries"])
    assert "(ResourceNotFound)" in aws("describe-cluster", "--cluster-name", "ml-cluster")


def _software(head: LiveHead) -> str:
    groups = head.aws.boto().describe_cluster(ClusterName="ml-cluster")["InstanceGroups"]
    return str(groups[1].get("SoftwareUpdateStatus"))


def _groups(head: LiveHead) -> list[str]:
    groups = head.aws.boto().describe_cluster(ClusterName="ml-cluster")["InstanceGroups"]
    return [one["InstanceGroupName"] for one in groups]


def test_errors_reach_the_aws_command_with_code_and_sentence(aws: Aws, tmp_path: Path) -> None:
    assert "(ResourceNotFound)" in aws("describe-cluster", "--cluster-name", "none")
    wrong = create(aws, tmp_path, {**a_cluster(), "ClusterName": "a b!"})
    assert "(ValidationException)" in wrong
    assert "clusterName" in wrong
    both = a_cluster(MinInstanceCount=5)
    assert "MinInstanceCount 5 is above InstanceCount 4" in create(aws, tmp_path, both)


def test_capacity_that_comes_late_is_used_as_it_comes(head: LiveHead) -> None:
    boto = head.aws.boto()
    with head.lock:
        head.world.machines.room = 2
    boto.create_cluster(**a_cluster(MinInstanceCount=3))
    until("two of four are there", lambda: counts(head) == ("Creating", 2, 4))
    nodes = boto.list_cluster_nodes(ClusterName="ml-cluster", IncludeNodeLogicalIds=True)["ClusterNodeSummaries"]
    waiting = [one for one in nodes if not one["InstanceId"]]
    assert len(waiting) == 2
    assert any("Next try at" in one["InstanceStatus"].get("Message", "") for one in waiting)
    with head.lock:
        head.world.machines.room = None
    comes_to(head, "InService", 4)


def test_nodes_are_added_followed_and_replaced_with_boto3(head: LiveHead) -> None:
    boto = head.aws.boto()
    boto.create_cluster(**a_cluster(1))
    comes_to(head, "InService", 1)
    wish = [{"InstanceGroupName": "workers", "IncrementTargetCountBy": 2}]
    (first, _) = boto.batch_add_cluster_nodes(ClusterName="ml-cluster", NodesToAdd=wish)["Successful"]
    one = {"ClusterName": "ml-cluster", "NodeLogicalId": first["NodeLogicalId"]}
    until(
        "the added node runs",
        lambda: boto.describe_cluster_node(**one)["NodeDetails"]["InstanceStatus"]["Status"] == "Running",
    )
    comes_to(head, "InService", 3)
    before = boto.describe_cluster_node(**one)["NodeDetails"]["InstanceId"]
    replaced = boto.batch_replace_cluster_nodes(ClusterName="ml-cluster", NodeIds=[before])
    assert replaced["Successful"] == [before]
    until(
        "it has another instance",
        lambda: boto.describe_cluster_node(**one)["NodeDetails"].get("InstanceId", before) != before,
    )
    comes_to(head, "InService", 3)


def test_a_scaling_is_an_operation_with_events(head: LiveHead) -> None:
    boto = head.aws.boto()
    boto.create_cluster(**a_cluster(2))
    comes_to(head, "InService", 2)
    scalings = boto.get_paginator("list_cluster_operations").paginate(ClusterName="ml-cluster")
    (operation,) = [one for page in scalings for one in page["ClusterOperationSummaries"]]
    asked = {"ClusterName": "ml-cluster", "OperationId": operation["OperationId"]}
    until("the operation is done", lambda: boto.describe_cluster_operation(**asked)["Status"] == "Done")
    pages = boto.get_paginator("list_cluster_events")
    events = pages.paginate(ClusterName="ml-cluster", PaginationConfig={"PageSize": 2})
    found = [one for page in events for one in page["Events"]]
    assert len({one["EventId"] for one in found}) == len(found) > 3
    mine = [one for one in found if one.get("OperationId") == operation["OperationId"]]
    detail = boto.describe_cluster_event(ClusterName="ml-cluster", EventId=mine[0]["EventId"])["EventDetails"]
    assert detail["EventTime"] == mine[0]["EventTime"]


def test_the_models_errors_are_classes_of_the_client(head: LiveHead) -> None:
    boto = head.aws.boto(retries={"total_max_attempts": 5})  # equal changes of one second are signed anew
    boto.create_cluster(**a_cluster(1))
    with pytest.raises(boto.exceptions.ResourceInUse):
        boto.create_cluster(**a_cluster(1))
    with pytest.raises(boto.exceptions.ResourceNotFound):
        boto.update_cluster(ClusterName="other", NodeRecovery="None")
    boto.delete_cluster(ClusterName="ml-cluster")
    with pytest.raises((boto.exceptions.ConflictException, boto.exceptions.ResourceNotFound)):
        boto.delete_cluster(ClusterName="ml-cluster")
    with pytest.raises(ClientError, match="ValidationException"):
        boto.batch_reboot_cluster_nodes(ClusterName="x" * 300, NodeIds=["i-01234567"])
