"""What is told of a wrong input, in the words that AWS clients know."""

import time
from typing import Any

import pytest

from steward.api.json11 import route, validate
from steward.api.json11.errors import ApiError, Code
from steward.api.json11.service import OVERRIDES, SERVED, load

SERVICE = load()
ROLE = "arn:aws:iam::000000000000:role/none"
GROUP: dict[str, Any] = {
    "InstanceGroupName": "workers",
    "InstanceCount": 2,
    "InstanceType": "ml.p5.48xlarge",
    "ExecutionRole": ROLE,
    "LifeCycleConfig": {"SourceS3Uri": "s3://bucket/scripts", "OnCreate": "on_create.sh"},
}


def read(operation: str, **members: Any) -> dict[str, Any]:
    return validate.read(SERVICE.input_shape(operation), members)


def create(**group: Any) -> dict[str, Any]:
    return read("CreateCluster", ClusterName="ml", InstanceGroups=[GROUP | group])


def refusal(operation: str, **members: Any) -> str:
    with pytest.raises(ApiError) as refused:
        read(operation, **members)
    assert refused.value.code is Code.INVALID
    return refused.value.message


def refused_group(**group: Any) -> str:
    return refusal("CreateCluster", ClusterName="ml", InstanceGroups=[GROUP | group])


def test_the_member_its_value_and_the_bound_are_named() -> None:
    assert refused_group(InstanceCount=9999) == (
        "1 validation error detected: Value '9999' at 'instanceGroups.1.member.instanceCount' failed to satisfy "
        "constraint: Member must have value less than or equal to 6758"
    )


def test_everything_that_is_wrong_is_told_at_once() -> None:
    text = refusal("ListClusters", MaxResults=0, SortBy="SIZE", Color="red")
    assert text.startswith("3 validation errors detected: ")
    assert "at 'maxResults' failed to satisfy constraint: Member must have value greater than or equal to 1" in text
    assert "at 'sortBy' failed to satisfy constraint: Member must satisfy enum value set: [CREATION_TIME, NAME]" in text
    assert "Value 'red' at 'color' failed to satisfy constraint: Member is not known" in text


def test_a_missing_member_is_told_as_null() -> None:
    assert "Value null at 'clusterName' failed to satisfy constraint: Member must not be null" in refusal(
        "DescribeCluster"
    )


def test_a_wrong_form_is_told_with_the_pattern() -> None:
    assert "Value 'a b!' at 'clusterName'" in (text := refusal("CreateCluster", ClusterName="a b!"))
    assert "Member must satisfy regular expression pattern: [a-zA-Z0-9](-*[a-zA-Z0-9])*" in text


def test_a_union_takes_one_member_and_no_more() -> None:
    volume = {"EbsVolumeConfig": {"VolumeSizeInGB": 100}}
    create(InstanceStorageConfigs=[volume])
    text = refused_group(InstanceStorageConfigs=[volume | {"FsxLustreConfig": {"DnsName": "x", "MountName": "y"}}])
    assert "'instanceGroups.1.member.instanceStorageConfigs.1.member'" in text
    assert "Member must have exactly one of" in text


def test_a_null_is_an_absent_member() -> None:
    assert read("ListClusters", NextToken=None, MaxResults=5) == {"MaxResults": 5}


def test_times_come_as_unix_seconds() -> None:
    assert read("ListClusters", CreationTimeAfter=1700000000) == {"CreationTimeAfter": 1700000000.0}


@pytest.mark.parametrize("time", ["2026-01-01T00:00:00Z", True, -1, 1e300, float("inf")])
def test_other_times_are_refused(time: Any) -> None:
    assert "at 'creationTimeAfter'" in refusal("ListClusters", CreationTimeAfter=time)


@pytest.mark.parametrize("count", [True, 1.0, "1", [1], 2**40, 10**400, -(10**400)], ids=range(7))
def test_what_is_not_an_integer_is_refused(count: Any) -> None:
    assert "at 'instanceGroups.1.member.instanceCount'" in refused_group(InstanceCount=count)


@pytest.mark.parametrize("number", [10**400, -(10**400), float("inf")], ids=range(3))
def test_a_number_that_no_double_holds_is_refused(number: float) -> None:
    resources = {"ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "VCpu": number}]}
    assert "Member must be a finite number" in quota_refusal(resources)


def test_a_site_may_have_machine_types_of_its_own() -> None:
    assert create(InstanceType="dgx-h100")["InstanceGroups"][0]["InstanceType"] == "dgx-h100"


@pytest.mark.parametrize("name", ["", "a b", "../../x", "x" * 65])
def test_a_machine_type_is_still_a_plain_word(name: str) -> None:
    assert "at 'instanceGroups.1.member.instanceType'" in refused_group(InstanceType=name)


@pytest.mark.parametrize("source", ["s3://bucket/a", "https://host/a", "file:///opt/scripts"])
def test_lifecycle_scripts_may_lie_on_a_shared_file_system(source: str) -> None:
    create(LifeCycleConfig={"SourceS3Uri": source, "OnCreate": "a.sh"})


@pytest.mark.parametrize("source", ["http://host/a", "file://host/a", "file:///", "/opt/scripts"])
def test_other_sources_of_scripts_are_refused(source: str) -> None:
    text = refused_group(LifeCycleConfig={"SourceS3Uri": source, "OnCreate": "a.sh"})
    assert "'instanceGroups.1.member.lifeCycleConfig.sourceS3Uri'" in text


def test_every_override_has_a_reason_and_a_shape() -> None:
    shapes = {name for operation in SERVED for name in _names(SERVICE.input_shape(operation))}
    assert OVERRIDES.keys() <= shapes
    assert all(override.why for override in OVERRIDES.values())


def _names(shape: Any) -> set[str]:
    inner = [*getattr(shape, "members", {}).values(), *([shape.member] if shape.type_name == "list" else [])]
    return {shape.name}.union(*(_names(one) for one in inner))


@pytest.mark.parametrize("value", ["Grüße", "日本語", "a b_c.d:e/f=g+h-i@j"])
def test_a_tag_may_be_in_any_language(value: str) -> None:
    read(
        "AddTags", ResourceArn="arn:aws:sagemaker:steward-1:000000000000:cluster/x", Tags=[{"Key": "k", "Value": value}]
    )


@pytest.mark.parametrize("value", ["a;b", "a\nb", "😀", "$(reboot)"])
def test_a_tag_has_letters_digits_and_a_few_signs_only(value: str) -> None:
    tags = [{"Key": "k", "Value": value}]
    text = refusal("AddTags", ResourceArn="arn:aws:sagemaker:steward-1:000000000000:cluster/x", Tags=tags)
    assert "'tags.1.member.value'" in text


def test_hostile_values_are_told_short_and_printable() -> None:
    text = refusal("DescribeCluster", **{"ClusterName": "\x1b[31m\n" * 1000, "\x1b" * 5000: 1})
    assert text.isprintable()
    assert len(text) < 600


def test_ten_thousand_faults_are_counted_and_a_few_of_them_told() -> None:
    text = refusal("ListClusters", **{f"m{i}": i for i in range(10_000)})
    assert text.startswith("10000 validation errors detected: ")
    assert text.count("Member is not known") == 20


NASTY = ["a" * 5000, "a-" * 500 + "!", "-" * 1000, "a." * 150 + "!", "arn:aws" + "-" * 900, "s3://" + "/" * 1000 + "\n"]


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_no_text_keeps_a_pattern_busy(text: str) -> None:
    began = time.thread_time()
    refused_group(
        ExecutionRole=text,
        InstanceGroupName=text,
        LifeCycleConfig={"SourceS3Uri": text[:1024], "OnCreate": "a"},
        SlurmConfig={"NodeType": "Compute", "PartitionNames": [text]},
        KubernetesConfig={"Labels": {text[:317]: text}},
        TrainingPlanArn=text,
    )
    assert time.thread_time() - began < 10.0


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "Expecting"),
        (b"[]", "not an object"),
        (b'{"a": 1, "a": 2}', "there twice"),
        (b'{"a": {"b": 1, "b": 1}}', "there twice"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": -Infinity}', "-Infinity is not JSON"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "nested deeper"),
        (b'{"a": "\\ud800"}', "not Unicode"),
        (b'{"\\udfff": 1}', "not Unicode"),
        (b"\xff\xfe{}", "codec"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
    ],
)
def test_what_is_not_plain_json_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(ApiError, match=why) as refused:
        route.parse(body)
    assert refused.value.code is Code.MALFORMED


def test_an_empty_body_is_an_empty_object() -> None:
    assert route.parse(b"") == {}


def quota_refusal(config: dict[str, Any]) -> str:
    arn = "arn:aws:sagemaker:steward-1:000000000000:cluster/abcdef012345"
    fields = {"ClusterArn": arn, "ComputeQuotaConfig": config, "ComputeQuotaTarget": {"TeamName": "t"}}
    return refusal("CreateComputeQuota", Name="q", **fields)


def quota(team: str) -> dict[str, Any]:
    arn = "arn:aws:sagemaker:steward-1:000000000000:cluster/abcdef012345"
    return read(
        "CreateComputeQuota", Name="q", ClusterArn=arn, ComputeQuotaConfig={}, ComputeQuotaTarget={"TeamName": team}
    )


@pytest.mark.parametrize("team", ["physics", "a", "a-b", "team_1", "dept.lab", "7"])
def test_a_team_may_be_called_like_any_slurm_account(team: str) -> None:
    assert quota(team)["ComputeQuotaTarget"] == {"TeamName": team}


@pytest.mark.parametrize(
    "team", ["", "-rf", "a-", "A", "a b", "a;id", "a\nb", "a,b", "a=b", "été", "$(id)", "a/b", "a" * 41]
)
def test_a_team_that_no_account_is_called_like_is_refused(team: str) -> None:
    with pytest.raises(ApiError, match=r"'computeQuotaTarget\.teamName'"):
        quota(team)


def test_a_long_name_that_is_wrong_at_its_end_is_refused_at_once() -> None:
    """The model's own pattern would take hours: it nests two repetitions."""
    started = time.thread_time()
    with pytest.raises(ApiError):
        quota("a" * 39 + "!")
    assert time.thread_time() - started < 10.0
