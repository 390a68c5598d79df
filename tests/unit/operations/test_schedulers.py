"""ClusterSchedulerConfig, as callers of the endpoint see it."""

from typing import Any

import pytest

from tests.builders.api_cluster import nothing
from tests.fakes.operations import Operations, operations_on
from tests.unit.operations.test_quotas import PLAIN

CONFIG = {
    "PriorityClasses": [{"Name": "inference", "Weight": 90}, {"Name": "training", "Weight": 40}],
    "FairShare": "Disabled",
    "IdleResourceSharing": "Enabled",
}
NEW = {"Name": "policy", "ClusterArn": PLAIN, "SchedulerConfig": CONFIG}


@pytest.fixture
def operations() -> Operations:
    return operations_on(nothing())


def listed(operations: Operations, **asked: Any) -> list[str]:
    found = operations.call("ListClusterSchedulerConfigs", **asked)["ClusterSchedulerConfigSummaries"]
    return [each["Name"] for each in found]


def test_how_teams_share_is_kept_changed_and_forgotten(operations: Operations) -> None:
    made = operations.call("CreateClusterSchedulerConfig", **NEW)
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
    operations.call("CreateClusterSchedulerConfig", **NEW)
    assert operations.refused("CreateClusterSchedulerConfig", **NEW)[0] == "ConflictException"
    code, text = operations.refused("CreateClusterSchedulerConfig", **{**NEW, "Name": "second"})
    assert (code, "A cluster has one scheduler configuration: policy" in text) == ("ResourceLimitExceeded", True)


def test_an_old_version_and_a_class_that_comes_twice_are_refused(operations: Operations) -> None:
    id = operations.call("CreateClusterSchedulerConfig", **NEW)["ClusterSchedulerConfigId"]
    update = {"ClusterSchedulerConfigId": id, "SchedulerConfig": {}}
    code, text = operations.refused("UpdateClusterSchedulerConfig", **update, TargetVersion=7)
    assert (code, "is at version 1, not 7" in text) == ("ConflictException", True)
    twice = {"PriorityClasses": [{"Name": "a", "Weight": 1}, {"Name": "a", "Weight": 2}]}
    update["SchedulerConfig"] = twice
    code, text = operations.refused("UpdateClusterSchedulerConfig", **update, TargetVersion=1)
    assert (code, text) == ("ValidationException", "PriorityClasses names a more than once.")
