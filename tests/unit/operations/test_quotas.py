"""ComputeQuota and ClusterSchedulerConfig, as callers of the endpoint see them."""

from typing import Any

import pytest

from steward.model.arn import slurm_cluster_arns
from steward.model.capacity_policy import CapacityPolicy
from steward.model.machine_types import BUILT_IN
from steward.model.quota import QuotaStatus, Share, Strategy
from tests.builders.api_cluster import ARN, an_api_cluster, nothing
from tests.fakes.operations import Operations, operations_on

PLAIN = slurm_cluster_arns(None, CapacityPolicy())[0]
G6 = "ml.g6.12xlarge"


@pytest.fixture
def operations() -> Operations:
    """A head without an API cluster: its Slurm cluster has quotas all the same."""
    return operations_on(nothing(), BUILT_IN)


def a_quota(name: str = "vision", team: str = "", **config: Any) -> dict[str, Any]:
    resources = [{"InstanceType": G6, "Accelerators": 2, "VCpu": 48.0}]
    return {
        "Name": name,
        "ClusterArn": PLAIN,
        "ComputeQuotaConfig": {"ComputeQuotaResources": resources, **config},
        "ComputeQuotaTarget": {"TeamName": team or name, "FairShareWeight": 10},
    }


def create(operations: Operations, **members: Any) -> str:
    return str(operations.call("CreateComputeQuota", **{**a_quota(), **members})["ComputeQuotaId"])


def refused(operations: Operations, **members: Any) -> tuple[str, str]:
    return operations.refused("CreateComputeQuota", **{**a_quota(), **members})


def names(operations: Operations, **asked: Any) -> list[str]:
    found = operations.call("ListComputeQuotas", **asked)["ComputeQuotaSummaries"]
    return [each["Name"] for each in found]


def test_a_quota_is_given_back_as_it_was_asked_for_with_the_services_defaults(operations: Operations) -> None:
    made = operations.call("CreateComputeQuota", **a_quota(), Description="For Vision & Co")
    found = operations.call("DescribeComputeQuota", ComputeQuotaId=made["ComputeQuotaId"])
    assert found["ComputeQuotaArn"] == made["ComputeQuotaArn"]
    assert found["ComputeQuotaArn"].endswith(f":compute-quota/{made['ComputeQuotaId']}")
    assert found["ClusterArn"] == PLAIN
    assert found["ComputeQuotaConfig"] == {
        "ComputeQuotaResources": [{"InstanceType": G6, "Accelerators": 2, "VCpu": 48.0}],
        "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
        "PreemptTeamTasks": "LowerPriority",
    }
    assert found["ComputeQuotaTarget"] == {"TeamName": "vision", "FairShareWeight": 10}
    assert (found["ComputeQuotaVersion"], found["Status"], found["ActivationState"]) == (1, "Creating", "Enabled")
    assert (found["Description"], found["CreatedBy"]) == ("For Vision & Co", {"UserProfileName": "platform"})


def test_a_quota_of_a_cluster_of_the_api_bears_its_arn_and_the_other_one_stays_good() -> None:
    operations = operations_on(an_api_cluster(), BUILT_IN)
    id = create(operations, ClusterArn=ARN)
    assert operations.call("DescribeComputeQuota", ComputeQuotaId=id)["ClusterArn"] == ARN
    assert names(operations, ClusterArn=PLAIN) == names(operations, ClusterArn=ARN) == ["vision"]
    assert names(operations, ClusterArn=ARN[:-1] + "9") == []


def test_another_clusters_arn_is_told_with_the_one_that_is_here(operations: Operations) -> None:
    code, text = refused(operations, ClusterArn=ARN)
    assert (code, PLAIN in text) == ("ResourceNotFound", True)


def test_one_name_and_one_team_have_one_quota(operations: Operations) -> None:
    id = create(operations)
    code, text = refused(operations)
    assert (code, text) == ("ConflictException", f"Quota vision exists already (id {id}, of team vision).")
    code, text = refused(operations, Name="other")
    assert (code, text) == ("ConflictException", f"Team vision has quota vision already (id {id}).")


@pytest.mark.parametrize(
    ("team", "why"),
    [("root", "an account of Slurm's own"), ("stw-x", "names that begin with stw- are Steward's own")],
)
def test_names_of_slurm_and_of_steward_are_no_teams(operations: Operations, team: str, why: str) -> None:
    code, text = refused(operations, **a_quota(team=team))
    assert (code, why in text) == ("ValidationException", True)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"InstanceType": "odd", "Accelerators": 1}, "not known; add it to [[machine_types]]"),
        ({"InstanceType": G6}, "give Count, Accelerators, VCpu, MemoryInGiB or AcceleratorPartition"),
        ({"InstanceType": G6, "Count": 1, "VCpu": 3.0}, "Count is whole machines; give it alone"),
        ({"InstanceType": "ml.c5.large", "Accelerators": 1}, "it has no accelerators"),
        ({"InstanceType": "ml.g7.2xlarge", "Accelerators": 1}, "it has no accelerators"),
        ({"InstanceType": "ml.g7.2xlarge", "VCpu": 1.0}, "its CPUs and memory are not known"),
    ],
)
def test_a_share_that_this_site_cannot_give_is_refused_in_one_line(
    operations: Operations, entry: dict[str, Any], why: str
) -> None:
    code, text = refused(operations, **a_quota(ComputeQuotaResources=[entry]))
    assert (code, why in text, "\n" in text) == ("ValidationException", True, False)
    assert "ComputeQuotaResources.1.member" in text


def test_a_machine_type_comes_once_and_once_more_for_each_part_of_a_gpu(operations: Operations) -> None:
    whole = {"InstanceType": "ml.p5.48xlarge", "Accelerators": 1}
    code, text = refused(operations, **a_quota(ComputeQuotaResources=[whole, whole]))
    assert (code, text) == ("ValidationException", "ComputeQuotaResources names ml.p5.48xlarge more than once.")
    part = {"InstanceType": "ml.p5.48xlarge", "AcceleratorPartition": {"Type": "mig-1g.10gb", "Count": 3}}
    id = create(operations, **a_quota(ComputeQuotaResources=[whole, part]))
    assert operations.memory.quotas[id].shares[1].partition == ("1g.10gb", 3)
    found = operations.call("DescribeComputeQuota", ComputeQuotaId=id)["ComputeQuotaConfig"]
    assert found["ComputeQuotaResources"] == [whole, part]


def test_an_update_keeps_what_it_does_not_say(operations: Operations) -> None:
    id = create(operations)
    sharing = {"Strategy": "Lend"}
    members = {"ComputeQuotaConfig": {"ResourceSharingConfig": sharing}, "ActivationState": "Disabled"}
    answer = operations.call("UpdateComputeQuota", ComputeQuotaId=id, TargetVersion=1, **members)
    assert answer["ComputeQuotaVersion"] == 2
    quota = operations.memory.quotas[id]
    assert quota.shares == (Share(machine_type=G6, accelerators=2, vcpu=48.0),)
    assert (quota.strategy, quota.enabled, quota.weight) == (Strategy.LEND, False, 10)
    assert quota.status is QuotaStatus.UPDATING


def test_who_writes_on_an_old_version_is_told_the_present_one(operations: Operations) -> None:
    id = create(operations)
    operations.call("UpdateComputeQuota", ComputeQuotaId=id, TargetVersion=1, Description="new")
    code, text = operations.refused("UpdateComputeQuota", ComputeQuotaId=id, TargetVersion=1, Description="mine")
    assert (code, text) == (
        "ConflictException",
        "Quota vision is at version 2, not 1: read it again, then change it.",
    )
    assert operations.call("DescribeComputeQuota", ComputeQuotaId=id, ComputeQuotaVersion=2)["Description"] == "new"
    code, text = operations.refused("DescribeComputeQuota", ComputeQuotaId=id, ComputeQuotaVersion=1)
    assert (code, "version 1 is not kept" in text) == ("ResourceNotFound", True)


def test_a_quota_stays_with_its_team(operations: Operations) -> None:
    id = create(operations)
    target = {"TeamName": "audio"}
    code, text = operations.refused("UpdateComputeQuota", ComputeQuotaId=id, TargetVersion=1, ComputeQuotaTarget=target)
    assert (code, "is of team vision" in text) == ("ValidationException", True)


def test_a_deleted_quota_is_shown_until_slurm_has_no_trace_of_it(operations: Operations) -> None:
    id = create(operations)
    assert operations.call("DeleteComputeQuota", ComputeQuotaId=id) == {}
    assert operations.call("DeleteComputeQuota", ComputeQuotaId=id) == {}
    assert operations.call("DescribeComputeQuota", ComputeQuotaId=id)["Status"] == "Deleting"
    assert names(operations, Status="Deleting") == ["vision"]
    assert names(operations, Status="Created") == []
    code, _ = operations.refused("UpdateComputeQuota", ComputeQuotaId=id, TargetVersion=1, Description="x")
    assert code == "ConflictException"
    assert operations.refused("DeleteComputeQuota", ComputeQuotaId="abcdef012345")[0] == "ResourceNotFound"
    assert refused(operations, **a_quota("vision", "speech"))[0] == "ConflictException", "of another team"
    again = create(operations)
    assert names(operations) == ["vision"], "making it again takes the deletion back"
    assert operations.call("DescribeComputeQuota", ComputeQuotaId=again)["Status"] == "Creating"


def test_quotas_are_listed_page_by_page_in_the_order_that_was_asked_for(operations: Operations) -> None:
    for name in ("b-team", "a-team", "c-team", "other"):
        create(operations, **a_quota(name))
    assert names(operations, SortBy="Name", SortOrder="Ascending") == ["a-team", "b-team", "c-team", "other"]
    assert names(operations, SortBy="Name", NameContains="team") == ["c-team", "b-team", "a-team"]
    asked = {"SortBy": "Name", "MaxResults": 3}
    first = operations.call("ListComputeQuotas", **asked)
    second = operations.call("ListComputeQuotas", **asked, NextToken=first["NextToken"])
    assert [each["Name"] for each in second["ComputeQuotaSummaries"]] == ["a-team"]
    assert "NextToken" not in second


def test_borrow_limits_belong_to_those_who_borrow(operations: Operations) -> None:
    limits = [{"InstanceType": G6, "Accelerators": 1}]
    lends = {"Strategy": "Lend", "AbsoluteBorrowLimits": limits}
    code, text = refused(operations, **a_quota(ResourceSharingConfig=lends))
    assert (code, "with Strategy Lend the team borrows nothing" in text) == ("ValidationException", True)
    sharing: dict[str, Any] = {"Strategy": "LendAndBorrow", "BorrowLimit": 10, "AbsoluteBorrowLimits": limits}
    id = create(operations, **a_quota(ResourceSharingConfig=sharing))
    found = operations.call("DescribeComputeQuota", ComputeQuotaId=id)["ComputeQuotaConfig"]
    assert found["ResourceSharingConfig"] == sharing


def test_tags_of_a_quota_and_of_the_scheduler_are_added_listed_and_deleted(operations: Operations) -> None:
    quota = operations.call("CreateComputeQuota", **a_quota(), Tags=[{"Key": "a", "Value": "1"}])["ComputeQuotaArn"]
    config = {"Name": "one", "ClusterArn": PLAIN, "SchedulerConfig": {"FairShare": "Enabled"}}
    scheduler = operations.call("CreateClusterSchedulerConfig", **config)["ClusterSchedulerConfigArn"]
    more = [{"Key": "b", "Value": "2"}]
    both = [{"Key": "a", "Value": "1"}, *more]
    assert operations.call("AddTags", ResourceArn=quota, Tags=more)["Tags"] == both
    assert operations.call("AddTags", ResourceArn=scheduler, Tags=more)["Tags"] == more
    assert operations.call("DeleteTags", ResourceArn=quota, TagKeys=["a"]) == {}
    assert [operations.call("ListTags", ResourceArn=each)["Tags"] for each in (quota, scheduler)] == [more, more]
    assert operations.refused("AddTags", ResourceArn=quota + "x", Tags=more)[0] == "ResourceNotFound"
    assert operations.refused("AddTags", ResourceArn=quota, Tags=[{"Key": "aws:x", "Value": "1"}])[1]


CONFIG = {
    "PriorityClasses": [{"Name": "inference", "Weight": 90}, {"Name": "training", "Weight": 40}],
    "FairShare": "Disabled",
    "IdleResourceSharing": "Enabled",
}
NEW_CONFIG = {"Name": "policy", "ClusterArn": PLAIN, "SchedulerConfig": CONFIG}


def listed(operations: Operations, **asked: Any) -> list[str]:
    found = operations.call("ListClusterSchedulerConfigs", **asked)["ClusterSchedulerConfigSummaries"]
    return [each["Name"] for each in found]


def test_how_teams_share_is_kept_changed_and_forgotten(operations: Operations) -> None:
    made = operations.call("CreateClusterSchedulerConfig", **NEW_CONFIG)
    id = made["ClusterSchedulerConfigId"]
    asked = {"ClusterSchedulerConfigId": id}
    found = operations.call("DescribeClusterSchedulerConfig", **asked)
    assert found["SchedulerConfig"] == CONFIG
    assert (found["Status"], found["ClusterSchedulerConfigVersion"]) == ("Created", 1)
    assert listed(operations, NameContains="pol", ClusterArn=PLAIN) == ["policy"]
    change = {"FairShare": "Enabled"}
    answer = operations.call("UpdateClusterSchedulerConfig", **asked, TargetVersion=1, SchedulerConfig=change)
    assert answer["ClusterSchedulerConfigVersion"] == 2
    found = operations.call("DescribeClusterSchedulerConfig", **asked)
    assert found["SchedulerConfig"] == {**CONFIG, "FairShare": "Enabled"}
    assert found["StatusDetails"] == dict.fromkeys(CONFIG, "Updated")
    assert operations.call("DeleteClusterSchedulerConfig", **asked) == {}
    assert listed(operations) == []
    assert operations.refused("DeleteClusterSchedulerConfig", **asked)[0] == "ResourceNotFound"


def test_a_cluster_has_one(operations: Operations) -> None:
    operations.call("CreateClusterSchedulerConfig", **NEW_CONFIG)
    assert operations.refused("CreateClusterSchedulerConfig", **NEW_CONFIG)[0] == "ConflictException"
    code, text = operations.refused("CreateClusterSchedulerConfig", **{**NEW_CONFIG, "Name": "second"})
    assert (code, "A cluster has one scheduler configuration: policy" in text) == ("ResourceLimitExceeded", True)


def test_an_old_version_and_a_class_that_comes_twice_are_refused(operations: Operations) -> None:
    id = operations.call("CreateClusterSchedulerConfig", **NEW_CONFIG)["ClusterSchedulerConfigId"]
    update = {"ClusterSchedulerConfigId": id, "SchedulerConfig": {}}
    code, text = operations.refused("UpdateClusterSchedulerConfig", **update, TargetVersion=7)
    assert (code, "is at version 1, not 7" in text) == ("ConflictException", True)
    twice = {"PriorityClasses": [{"Name": "a", "Weight": 1}, {"Name": "a", "Weight": 2}]}
    update["SchedulerConfig"] = twice
    code, text = operations.refused("UpdateClusterSchedulerConfig", **update, TargetVersion=1)
    assert (code, text) == ("ValidationException", "PriorityClasses names a more than once.")
