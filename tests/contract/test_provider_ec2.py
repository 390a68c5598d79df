"""The EC2 provider on moto's server, with boto3 over real HTTP. tests/fakes/aws_ec2.py says what is laid over moto."""

import base64
import functools
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import botocore.session
import pytest

from steward.adapters.providers.ec2 import Ec2Provider
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import InstanceState, Slot
from steward.model.settings.clouds import Ec2ProviderSettings as Settings
from steward.model.settings.clouds import Market
from steward.ports import Permanent, Retryable
from tests.contract.provider import OTHER, SLOT, ProviderContract, launched
from tests.fakes.aws_ec2 import LIMITS, NONE_LEFT, FakeEc2, Refusal, Words, fake_ec2

REGION = "us-east-1"
CAPACITY = (500, "InsufficientInstanceCapacity", "We currently do not have sufficient capacity")
Make = Callable[..., Ec2Provider]


@pytest.fixture(autouse=True, scope="module")
def one_library() -> Iterator[None]:
    """What botocore knows of EC2 is read once: that took a third of each test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", functools.cache(botocore.session.create_loader))
        yield


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEc2]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret")
    with fake_ec2() as fake:
        yield fake


@pytest.fixture
def make(ec2: FakeEc2) -> Make:
    """A provider as a head that was just started makes it."""

    def made(page: int = 500, **more: Any) -> Ec2Provider:
        words = {
            "region": REGION,
            "endpoint": ec2.url,
            "cluster": "c1",
            "image": "ami-12345678",
            "types": ("p5.48xlarge",),
            "timeout_s": 60.0,
        }
        return Ec2Provider(Settings(**{**words, **more}), page)

    return made


@pytest.fixture
def provider(make: Make) -> Ec2Provider:
    return make()


@pytest.fixture
def site(ec2: FakeEc2) -> Any:
    """The site's own view of its EC2 account."""
    return boto3.client("ec2", region_name=REGION, endpoint_url=ec2.url)


def described(site: Any, instance: InstanceId) -> Any:
    return site.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]


def refusing(action: str, refusal: Refusal, **only: str) -> Callable[[Words], Refusal | None]:
    """`refusal` to requests of `action` that have the words `only`."""
    return lambda words: refusal if {"Action": action, **only}.items() <= words.items() else None


class TestEc2Provider(ProviderContract):
    """The contract of all providers."""


def test_an_instance_is_made_as_the_slot_and_the_settings_say(make: Make, site: Any) -> None:
    text = "#!/bin/sh\n# {node} {group} {features} {head} {cluster} ${HOME} {}"
    provider = make(user_data=text, head="head1:6861", tags={"team": "ml"}, template_version="3")
    slot = Slot(
        node=NodeName("n1"),
        group="main",
        types=("ml.p5.48xlarge",),
        image="ami-87654321",
        features=frozenset({"main", "gpu"}),
    )
    made = provider.launch(slot, "c1-n1-0")
    seen = described(site, made.id)
    assert (seen["InstanceType"], seen["ImageId"], made.type) == ("p5.48xlarge", "ami-87654321", "p5.48xlarge")
    assert made.address == seen["PrivateIpAddress"]
    assert {tag["Key"]: tag["Value"] for tag in seen["Tags"]} == {
        "Name": "n1",
        "team": "ml",
        "steward:cluster": "c1",
        "steward:group": "main",
        "steward:node": "n1",
        "steward:token": "c1-n1-0",
    }
    data = site.describe_instance_attribute(InstanceId=made.id, Attribute="userData")["UserData"]["Value"]
    assert base64.b64decode(data).decode() == "#!/bin/sh\n# n1 main gpu,main head1:6861 c1 ${HOME} {}"


def test_a_launch_template_says_what_nobody_else_does(make: Make, ec2: FakeEc2, site: Any) -> None:
    data = {"ImageId": "ami-11111111", "InstanceType": "g5.xlarge"}
    site.create_launch_template(LaunchTemplateName="worker", LaunchTemplateData=data)
    make(image="", types=(), launch_template="worker").launch(SLOT, "t1")
    (asked,) = ec2.of("RunInstances")
    assert (asked["LaunchTemplate.LaunchTemplateName"], asked["LaunchTemplate.Version"]) == ("worker", "$Default")
    assert "ImageId" not in asked
    assert "InstanceType" not in asked


@pytest.mark.parametrize("profile", ["worker", "arn:aws:iam::123456789012:instance-profile/worker"])
def test_without_a_template_the_settings_give_network_key_and_role(
    make: Make, ec2: FakeEc2, site: Any, profile: str
) -> None:
    boto3.client("iam", region_name=REGION, endpoint_url=ec2.url).create_instance_profile(InstanceProfileName="worker")
    groups = [site.create_security_group(GroupName=name, Description="x")["GroupId"] for name in ("slurm", "storage")]
    site.create_key_pair(KeyName="admins")
    provider = make(security_groups=tuple(groups), key_name="admins", instance_profile=profile)
    seen = described(site, provider.launch(SLOT, "t1").id)
    assert {each["GroupId"] for each in seen["SecurityGroups"]} == set(groups)
    assert seen["KeyName"] == "admins"
    assert seen["IamInstanceProfile"]["Arn"].endswith(":instance-profile/worker")


def test_a_launch_whose_answer_was_lost_makes_no_second_instance(make: Make, ec2: FakeEc2) -> None:
    ec2.lose_answers = True
    with pytest.raises(Retryable):
        make().launch(SLOT, "t1")
    ec2.lose_answers = False
    assert make().launch(SLOT, "t1").id in make().instances()
    assert len(launched(make())) == 1


def test_an_instance_that_no_list_shows_yet_is_found_by_its_client_token(make: Make, ec2: FakeEc2) -> None:
    made = make().launch(SLOT, "t1")
    ec2.lists_lag = True
    assert make().launch(SLOT, "t1").id == made.id
    ec2.lists_lag = False
    assert len(launched(make())) == 1


def test_an_instance_that_no_list_shows_yet_is_ended_all_the_same(provider: Ec2Provider, ec2: FakeEc2) -> None:
    made = provider.launch(SLOT, "t1")
    ec2.lists_lag = True
    provider.terminate(made.id)
    ec2.lists_lag = False
    assert launched(provider) == []


def test_other_settings_do_not_make_a_second_instance_for_a_token(make: Make) -> None:
    made = make().launch(SLOT, "t1")
    assert make(user_data="#!/bin/sh").launch(SLOT, "t1").id == made.id


def test_types_and_subnets_are_tried_in_order_until_one_is_to_be_had(make: Make, ec2: FakeEc2, site: Any) -> None:
    ec2.refuse = refusing("RunInstances", CAPACITY, InstanceType="p5.48xlarge")
    subnets = [each["SubnetId"] for each in site.describe_subnets()["Subnets"][:2]]
    made = make(types=("p5.48xlarge", "p4d.24xlarge"), subnets=tuple(subnets)).launch(SLOT, "t1")
    assert made.type == "p4d.24xlarge"
    asked = dict.fromkeys((each["InstanceType"], each["SubnetId"]) for each in ec2.of("RunInstances"))
    assert list(asked) == [("p5.48xlarge", subnets[0]), ("p5.48xlarge", subnets[1]), ("p4d.24xlarge", subnets[0])]


@pytest.mark.parametrize("code", NONE_LEFT)
def test_want_of_capacity_is_told_as_such(provider: Ec2Provider, ec2: FakeEc2, code: str) -> None:
    ec2.refuse = refusing("RunInstances", (400, code, "none\nleft"))
    with pytest.raises(Retryable, match=rf"^capacity: ec2: cannot launch n1: p5\.48xlarge: {code}: none left$"):
        provider.launch(SLOT, "t1")
    ec2.refuse = lambda words: None
    assert provider.launch(SLOT, "t1").token == "t1"


@pytest.mark.parametrize("code", LIMITS)
def test_a_quota_is_told_as_such(provider: Ec2Provider, ec2: FakeEc2, code: str) -> None:
    ec2.refuse = refusing("RunInstances", (400, code, "ask for more"))
    with pytest.raises(Retryable, match=rf"^quota: ec2: cannot launch n1: .*{code}"):
        provider.launch(SLOT, "t1")


def test_capacity_of_one_type_counts_more_than_the_quota_of_another(make: Make, ec2: FakeEc2) -> None:
    def refuse(words: Words) -> Refusal | None:
        if words["Action"] != "RunInstances":
            return None
        return CAPACITY if words["InstanceType"] == "b" else (400, "VcpuLimitExceeded", "no")

    ec2.refuse = refuse
    with pytest.raises(Retryable, match=r"^capacity: .*a: VcpuLimitExceeded.*b: InsufficientInstanceCapacity"):
        make(types=("a", "b")).launch(SLOT, "t1")


@pytest.mark.parametrize(
    "refusal",
    [
        (503, "RequestLimitExceeded", "slow"),
        (500, "InternalError", "oops"),
        (503, "", ""),
        (400, "PendingVerification", ""),
    ],
    ids=["throttled", "server error", "no code", "new account"],
)
def test_passing_faults_are_tried_again(provider: Ec2Provider, ec2: FakeEc2, refusal: Refusal) -> None:
    ec2.refuse = refusing("RunInstances", refusal)
    with pytest.raises(Retryable, match=r"^ec2: cannot launch n1"):
        provider.launch(SLOT, "t1")


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("UnauthorizedOperation", "allow the head's role"),
        ("InvalidAMIID.NotFound", "provider.ec2.image"),
        ("InvalidGroup.NotFound", "provider.ec2.security_groups"),
        ("InvalidKeyPair.NotFound", "provider.ec2.key_name"),
        ("InvalidParameterValue", "InvalidParameterValue"),
        ("Unsupported", "Unsupported"),
    ],
)
def test_what_will_never_work_says_what_to_do(provider: Ec2Provider, ec2: FakeEc2, code: str, remedy: str) -> None:
    ec2.refuse = refusing("RunInstances", (400, code, "no"))
    with pytest.raises(Permanent, match=remedy):
        provider.launch(SLOT, "t1")


REFUSALS = [(400, "UnauthorizedOperation", "no"), (500, "InternalError", "no"), (200, "x", "no")]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_list_that_is_refused_or_no_list_is_never_an_empty_one(
    provider: Ec2Provider, ec2: FakeEc2, refusal: Refusal
) -> None:
    ec2.refuse = refusing("DescribeInstances", refusal)
    with pytest.raises(Retryable, match=r"^ec2: cannot list the instances"):
        provider.instances()


def test_without_an_endpoint_nothing_can_be_known(make: Make) -> None:
    with pytest.raises(Retryable, match="cannot list the instances"):
        make(endpoint="http://127.0.0.1:1", timeout_s=1.0).instances()


def test_a_list_of_many_pages_is_whole(make: Make, ec2: FakeEc2) -> None:
    provider = make(page=5)
    for number in range(12):
        provider.launch(Slot(node=NodeName(f"n{number}"), group="main"), f"t{number}")
    ec2.calls.clear()
    assert len(provider.instances()) == 12
    assert len(ec2.of("DescribeInstances")) == 3


def test_instances_of_another_cluster_are_neither_listed_nor_touched(make: Make, site: Any) -> None:
    theirs = make(cluster="c2").launch(SLOT, "t1")
    assert not make().instances()
    make().terminate(theirs.id)
    assert described(site, theirs.id)["State"]["Name"] == "running"
    with pytest.raises(Permanent, match="of cluster c1"):
        make().reboot(theirs.id, "r1")


def test_the_same_reboot_token_reboots_once(make: Make, ec2: FakeEc2) -> None:
    made = make().launch(SLOT, "t1")
    for token in ("r1", "r1", "r2"):
        make().reboot(made.id, token)
    assert len(ec2.of("RebootInstances")) == 2


def test_a_reboot_that_was_refused_is_done_by_the_next_try(make: Make, ec2: FakeEc2) -> None:
    made = make().launch(SLOT, "t1")
    ec2.refuse = refusing("RebootInstances", (400, "UnauthorizedOperation", "no"))
    with pytest.raises(Permanent, match="allow the head's role"):
        make().reboot(made.id, "r1")
    ec2.refuse = lambda words: None
    make().reboot(made.id, "r1")
    assert len(ec2.of("RebootInstances")) == 2


def test_a_reboot_that_may_have_been_done_is_not_repeated(make: Make, ec2: FakeEc2) -> None:
    made = make().launch(SLOT, "t1")
    ec2.refuse = refusing("RebootInstances", (500, "InternalError", "oops"))
    with pytest.raises(Retryable):
        make().reboot(made.id, "r1")
    ec2.refuse = lambda words: None
    ec2.calls.clear()
    make().reboot(made.id, "r1")
    assert not ec2.of("RebootInstances")


def test_a_stopped_instance_is_listed_as_stopped(provider: Ec2Provider, site: Any) -> None:
    made = provider.launch(SLOT, "t1")
    site.stop_instances(InstanceIds=[made.id])
    assert provider.instances()[made.id].state is InstanceState.STOPPED


def test_a_spot_instance_that_will_be_taken_away_says_so(make: Make, ec2: FakeEc2) -> None:
    provider = make(market=Market.SPOT)
    doomed, safe = provider.launch(SLOT, "t1"), provider.launch(OTHER, "t2")
    (asked, _) = ec2.of("RunInstances")
    assert asked["InstanceMarketOptions.SpotOptions.SpotInstanceType"] == "one-time"
    ec2.spot = {doomed.id: "marked-for-termination"}
    listed = provider.instances()
    assert listed[doomed.id].interrupted == "spot: marked-for-termination: two minutes left"
    assert listed[safe.id].interrupted == ""
    assert ec2.of("DescribeSpotInstanceRequests")[-1]["Filter.1.Value.1"] == "c1"


def test_without_spot_instances_nobody_is_asked_about_them(provider: Ec2Provider, ec2: FakeEc2) -> None:
    provider.launch(SLOT, "t1")
    provider.instances()
    assert not ec2.of("DescribeSpotInstanceRequests")


def test_without_credentials_it_says_what_to_give(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("AWS_ACCESS_KEY_ID", None), ("AWS_SECRET_ACCESS_KEY", None), ("HOME", "/nonexistent")):
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(Retryable, match="no AWS credentials were found; give the head an instance profile"):
        make().instances()
