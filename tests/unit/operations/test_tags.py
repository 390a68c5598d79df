"""Tags of a cluster, as AWS keeps them."""

import json

import pytest

from tests.builders.api_cluster import ARN, ROLE, an_api_cluster, nothing
from tests.fakes.operations import operations_on


def test_tags_are_added_listed_and_deleted() -> None:
    operations = operations_on(an_api_cluster())
    tags = [{"Key": "b", "Value": "2"}, {"Key": "a", "Value": "1"}]
    assert operations.call("AddTags", ResourceArn=ARN, Tags=tags)["Tags"] == sorted(tags, key=json.dumps)
    assert operations.call("DeleteTags", ResourceArn=ARN, TagKeys=["a"]) == {}
    assert operations.call("ListTags", ResourceArn=ARN)["Tags"] == [{"Key": "b", "Value": "2"}]
    assert operations.refused("AddTags", ResourceArn=ARN[:-1] + "9", Tags=tags)[0] == "ResourceNotFound"


@pytest.mark.parametrize("key", ["aws:cloudformation:stack-name", "AWS:x"])
def test_tag_keys_that_aws_keeps_for_itself_are_refused(key: str) -> None:
    tags = [{"Key": key, "Value": "1"}]
    code, text = operations_on(an_api_cluster()).refused("AddTags", ResourceArn=ARN, Tags=tags)
    assert code == "ValidationException"
    assert f"begin with aws: are reserved: {key}" in text
    group = {"InstanceGroupName": "workers", "InstanceCount": 1, "InstanceType": "ml.c5.large", "ExecutionRole": ROLE}
    call = {"ClusterName": "ml-cluster", "InstanceGroups": [group], "Tags": tags}
    assert operations_on(nothing()).refused("CreateCluster", **call)[0] == "ValidationException"
