"""Compute quotas with the real boto3 and the real `aws` command: pages, filters, versions, tags, conflicts."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from steward.model.arn import slurm_cluster_arns
from steward.model.machine_types import BUILT_IN
from tests.contract.test_aws_clients import Aws, aws  # noqa: F401
from tests.fakes.live_head import LiveHead, a_live_head

TYPE = "ml.g6.12xlarge"


@pytest.fixture
def head() -> Iterator[LiveHead]:
    with a_live_head(types=BUILT_IN) as live:
        yield live


@pytest.fixture
def boto(head: LiveHead) -> Any:
    return head.aws.boto(retries={"total_max_attempts": 5})


def arn_of(head: LiveHead) -> str:
    return slurm_cluster_arns(head.memory.cluster, head.want.capacity)[0]


def a_quota(head: LiveHead, name: str, **more: Any) -> dict[str, Any]:
    return {
        "Name": name,
        "ClusterArn": arn_of(head),
        "ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": TYPE, "Accelerators": 2}]},
        "ComputeQuotaTarget": {"TeamName": name, "FairShareWeight": 10},
        **more,
    }


def test_the_clients_paginator_brings_each_quota_once(head: LiveHead, boto: Any) -> None:
    names = sorted(f"team-{number}" for number in range(7))
    for name in names:
        boto.create_compute_quota(**a_quota(head, name))
    pages = boto.get_paginator("list_compute_quotas").paginate(
        SortBy="Name", SortOrder="Ascending", PaginationConfig={"PageSize": 3}
    )
    found = [[each["Name"] for each in page["ComputeQuotaSummaries"]] for page in pages]
    assert [len(page) for page in found] == [3, 3, 1]
    assert [name for page in found for name in page] == names
    first = boto.list_compute_quotas(MaxResults=2)
    with pytest.raises(ClientError, match="ValidationException"):
        boto.list_compute_quotas(MaxResults=2, SortBy="Name", NextToken=first["NextToken"])
    with pytest.raises(ClientError, match="ValidationException"):
        boto.list_compute_quotas(NextToken="not-a-token")


def test_filters_of_time_name_status_and_cluster_are_heeded(head: LiveHead, boto: Any) -> None:
    boto.create_compute_quota(**a_quota(head, "vision"))
    boto.create_compute_quota(**a_quota(head, "speech"))

    def found(**asked: Any) -> list[str]:
        return sorted(each["Name"] for each in boto.list_compute_quotas(**asked)["ComputeQuotaSummaries"])

    made = boto.list_compute_quotas()["ComputeQuotaSummaries"][0]["CreationTime"]
    assert found(NameContains="vis") == ["vision"]
    assert found(Status="Creating") == ["speech", "vision"]
    assert found(Status="Deleting") == []
    assert found(ClusterArn=arn_of(head)) == ["speech", "vision"]
    assert found(ClusterArn=arn_of(head)[:-1] + "x") == []
    assert found(CreatedAfter=made + timedelta(hours=1)) == []
    assert found(CreatedBefore=datetime.now(UTC) + timedelta(days=36500)) == ["speech", "vision"]


def test_versions_conflicts_and_what_is_missing_are_classes_of_the_client(head: LiveHead, boto: Any) -> None:
    id = boto.create_compute_quota(**a_quota(head, "vision"))["ComputeQuotaId"]
    with pytest.raises(boto.exceptions.ConflictException):
        boto.create_compute_quota(**a_quota(head, "vision"))
    changed = boto.update_compute_quota(ComputeQuotaId=id, TargetVersion=1, Description="new")
    assert changed["ComputeQuotaVersion"] == 2
    with pytest.raises(boto.exceptions.ConflictException, match="is at version 2, not 1"):
        boto.update_compute_quota(ComputeQuotaId=id, TargetVersion=1, Description="mine")
    with pytest.raises(boto.exceptions.ResourceNotFound):
        boto.describe_compute_quota(ComputeQuotaId=id, ComputeQuotaVersion=1)
    with pytest.raises(boto.exceptions.ResourceNotFound):
        boto.describe_compute_quota(ComputeQuotaId="abcdef012345")
    boto.delete_compute_quota(ComputeQuotaId=id)
    assert boto.describe_compute_quota(ComputeQuotaId=id)["Status"] == "Deleting"
    with pytest.raises(boto.exceptions.ConflictException, match="is being deleted"):
        boto.update_compute_quota(ComputeQuotaId=id, TargetVersion=2, Description="late")
    boto.create_compute_quota(**a_quota(head, "vision"))


def test_the_cluster_has_one_scheduler_config_with_its_versions(head: LiveHead, boto: Any) -> None:
    config = {"PriorityClasses": [{"Name": "high", "Weight": 90}], "FairShare": "Enabled"}
    asked = {"Name": "site", "ClusterArn": arn_of(head), "SchedulerConfig": config}
    id = boto.create_cluster_scheduler_config(**asked)["ClusterSchedulerConfigId"]
    with pytest.raises((boto.exceptions.ConflictException, boto.exceptions.ResourceLimitExceeded)):
        boto.create_cluster_scheduler_config(**{**asked, "Name": "other"})
    found = boto.describe_cluster_scheduler_config(ClusterSchedulerConfigId=id)
    assert found["SchedulerConfig"]["PriorityClasses"] == config["PriorityClasses"]
    with pytest.raises(boto.exceptions.ConflictException):
        boto.update_cluster_scheduler_config(ClusterSchedulerConfigId=id, TargetVersion=9, Description="x")
    listed = boto.get_paginator("list_cluster_scheduler_configs").paginate().build_full_result()
    assert [each["Name"] for each in listed["ClusterSchedulerConfigSummaries"]] == ["site"]


def test_a_quota_with_tags_from_its_beginning_to_its_end_with_the_aws_command(head: LiveHead, aws: Aws) -> None:  # noqa: F811
    asked = a_quota(head, "vision", Tags=[{"Key": "cost", "Value": "7"}])
    made = aws("create-compute-quota", "--cli-input-json", json.dumps(asked))
    arn, id = made["ComputeQuotaArn"], made["ComputeQuotaId"]
    aws("add-tags", "--resource-arn", arn, "--tags", "Key=owner,Value=ann")
    assert aws("list-tags", "--resource-arn", arn)["Tags"] == [
        {"Key": "cost", "Value": "7"},
        {"Key": "owner", "Value": "ann"},
    ]
    aws("delete-tags", "--resource-arn", arn, "--tag-keys", "cost")
    assert [tag["Key"] for tag in aws("list-tags", "--resource-arn", arn)["Tags"]] == ["owner"]
    told = aws("update-compute-quota", "--compute-quota-id", id, "--target-version", "5", "--description", "x")
    assert "ConflictException" in told
    assert "is at version 1, not 5" in told
    aws("delete-compute-quota", "--compute-quota-id", id)
    assert aws("describe-compute-quota", "--compute-quota-id", id)["Status"] == "Deleting"
