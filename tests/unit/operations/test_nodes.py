"""ListClusterNodes and DescribeClusterNode."""

import re

import pytest

from steward.model.case import CaseStep
from steward.model.group import GroupStatus, Version
from steward.model.ids import InstanceId
from steward.model.slot import Hitch, Purpose, SlotStep
from tests.builders.api_cluster import ID, ApiPicture, a_group, a_slot, an_api_cluster, nothing
from tests.builders.picture import T0
from tests.fakes.operations import operations_on


def listed(picture: ApiPicture, **members: object) -> list[str]:
    found = operations_on(picture).call("ListClusterNodes", ClusterName="ml-cluster", **members)
    return [node["PrivateDnsHostname"] for node in found["ClusterNodeSummaries"]]


def status(picture: ApiPicture, logical: str = f"{ID}-1") -> dict[str, str]:
    found = operations_on(picture).call("DescribeClusterNode", ClusterName="ml-cluster", NodeLogicalId=logical)
    answer: dict[str, str] = found["NodeDetails"]["InstanceStatus"]
    return answer


def test_nodes_are_listed_oldest_first() -> None:
    assert listed(an_api_cluster(3)) == ["controller-1", "workers-1", "workers-2", "workers-3"]
    assert listed(an_api_cluster(2), SortOrder="Descending") == ["workers-2", "workers-1", "controller-1"]
    assert listed(an_api_cluster(1), SortBy="NAME", SortOrder="Descending") == ["workers-1", "controller-1"]


def test_nodes_are_filtered_by_group_and_by_launch_time() -> None:
    assert listed(an_api_cluster(2), InstanceGroupNameContains="work") == ["workers-1", "workers-2"]
    assert listed(an_api_cluster(3), CreationTimeAfter=T0 - 78) == ["workers-2", "workers-3"]
    assert listed(an_api_cluster(3), CreationTimeBefore=T0 - 79.5) == ["controller-1"]


def test_nodes_without_an_instance_are_shown_only_on_demand() -> None:
    picture = an_api_cluster(2).slot("workers-2", instance=None, launched=None, step=SlotStep.WAITING)
    assert listed(picture) == ["controller-1", "workers-1"]
    found = operations_on(picture).call("ListClusterNodes", ClusterName="ml-cluster", IncludeNodeLogicalIds=True)
    shown = {node["NodeLogicalId"]: node["InstanceId"] for node in found["ClusterNodeSummaries"]}
    assert shown[f"{ID}-2"] == ""


def test_pages_follow_each_other_without_gap_or_repetition() -> None:
    operations, seen = operations_on(an_api_cluster(7)), []
    token: dict[str, str] = {}
    while True:
        page = operations.call("ListClusterNodes", ClusterName="ml-cluster", MaxResults=3, **token)
        seen.append([node["PrivateDnsHostname"] for node in page["ClusterNodeSummaries"]])
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}
    assert [len(page) for page in seen] == [3, 3, 2]
    assert len({name for page in seen for name in page}) == 8


def test_a_node_that_goes_between_two_pages_shifts_nothing() -> None:
    picture = an_api_cluster(4)
    page = operations_on(picture).call("ListClusterNodes", ClusterName="ml-cluster", MaxResults=2)
    gone = picture.remember(slots={key: slot for key, slot in picture.memory.slots.items() if key != "workers-1"})
    assert listed(gone, NextToken=page["NextToken"]) == ["workers-2", "workers-3", "workers-4"]


@pytest.mark.parametrize("token", ["x", "e30=", "W10=", "bnVsbA==", "MQ==", "ä"])
def test_a_token_that_was_never_given_is_refused(token: str) -> None:
    code, text = operations_on(an_api_cluster()).refused("ListClusterNodes", ClusterName="ml-cluster", NextToken=token)
    assert code == "ValidationException"
    assert "NextToken" in text


def test_a_token_is_good_for_the_same_filters_only() -> None:
    operations = operations_on(an_api_cluster(5))
    page = operations.call("ListClusterNodes", ClusterName="ml-cluster", MaxResults=2)
    again = {"ClusterName": "ml-cluster", "NextToken": page["NextToken"]}
    assert operations.call("ListClusterNodes", **again, MaxResults=1)["ClusterNodeSummaries"]
    assert operations.refused("ListClusterNodes", **again, SortBy="NAME")[0] == "ValidationException"


def test_an_unknown_cluster_has_no_nodes() -> None:
    assert operations_on(an_api_cluster()).refused("ListClusterNodes", ClusterName="other")[0] == "ResourceNotFound"
    assert operations_on(nothing()).refused("ListClusterNodes", ClusterName="ml-cluster")[0] == "ResourceNotFound"


def test_ids_look_like_ec2s_and_lead_back_to_the_node() -> None:
    operations = operations_on(an_api_cluster(2).slot("workers-2", instance=InstanceId("i-0123456789abcdef0")))
    found = operations.call("ListClusterNodes", ClusterName="ml-cluster")["ClusterNodeSummaries"]
    ids = {node["PrivateDnsHostname"]: node["InstanceId"] for node in found}
    assert ids["workers-2"] == "i-0123456789abcdef0"
    assert re.fullmatch("i-[0-9a-f]{17}", ids["workers-1"])
    details = operations.call("DescribeClusterNode", ClusterName="ml-cluster", NodeId=ids["workers-1"])["NodeDetails"]
    assert (details["PrivateDnsHostname"], details["PrivatePrimaryIp"]) == ("workers-1", "10.0.0.1")


def test_a_node_is_described_by_one_id_and_only_one() -> None:
    operations, cluster = operations_on(an_api_cluster()), {"ClusterName": "ml-cluster"}
    assert operations.refused("DescribeClusterNode", **cluster)[0] == "ValidationException"
    both = {"NodeId": "i-0123456789abcdef0", "NodeLogicalId": f"{ID}-1"}
    assert operations.refused("DescribeClusterNode", **cluster, **both)[0] == "ValidationException"
    assert operations.refused("DescribeClusterNode", **cluster, NodeId="i-01234567")[0] == "ResourceNotFound"


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"step": SlotStep.WAITING, "instance": None}, "Pending"),
        ({"step": SlotStep.LAUNCH, "instance": None}, "Pending"),
        ({"step": SlotStep.PROVISION}, "Pending"),
        ({"step": SlotStep.SETUP}, "Pending"),
        ({"step": SlotStep.VERIFY}, "Pending"),
        ({"step": SlotStep.RETURN}, "Pending"),
        ({"step": SlotStep.SERVING}, "Running"),
        ({"step": SlotStep.DRAIN, "purpose": Purpose.LEAVE}, "ShuttingDown"),
        ({"step": SlotStep.BACKUP, "purpose": Purpose.LEAVE}, "ShuttingDown"),
        ({"step": SlotStep.END, "purpose": Purpose.LEAVE}, "ShuttingDown"),
        ({"step": SlotStep.DRAIN, "purpose": Purpose.RENEW}, "SystemUpdating"),
        ({"step": SlotStep.SETUP, "purpose": Purpose.RENEW}, "SystemUpdating"),
        ({"step": SlotStep.SETUP, "hitch": Hitch.SCRIPT, "trouble": "exit 1"}, "Failure"),
        ({"step": SlotStep.WAITING, "instance": None, "hitch": Hitch.CAPACITY, "trouble": "none left"}, "Pending"),
    ],
)
def test_every_step_has_its_word(fields: dict[str, object], word: str) -> None:
    assert status(an_api_cluster().slot("workers-1", **fields))["Status"] == word


def test_a_node_that_comes_back_in_a_software_update_is_still_updating() -> None:
    picture = an_api_cluster(2).change_group("workers", status=GroupStatus.SYSTEM_UPDATING)
    back = picture.slot("workers-1", step=SlotStep.PROVISION)
    assert status(back)["Status"] == "SystemUpdating"
    assert status(back.slot("workers-1", has_served=False))["Status"] == "Pending"


def test_start_checks_are_a_word_of_their_own() -> None:
    picture = an_api_cluster().slot("workers-1", step=SlotStep.VERIFY)
    checked = picture.change_group("workers", on_start_checks=("InstanceStress",))
    assert status(checked)["Status"] == "DeepHealthCheckInProgress"


def test_what_failed_and_when_it_is_tried_again_is_told() -> None:
    fields = {"hitch": Hitch.CAPACITY, "trouble": "capacity: none left", "next_try": 1_700_000_060.0}
    waiting = an_api_cluster().slot("workers-1", step=SlotStep.WAITING, instance=None, **fields)
    assert status(waiting)["Message"] == "capacity: none left. Next try at 2023-11-14T22:14:20Z."


def test_a_try_that_has_begun_is_no_next_one() -> None:
    fields = {"hitch": Hitch.CAPACITY, "trouble": "capacity: none left", "next_try": 1_699_999_000.0}
    again = an_api_cluster().slot("workers-1", step=SlotStep.PROVISION, **fields)
    assert status(again)["Message"] == "capacity: none left."


def test_a_node_in_service_has_no_old_message() -> None:
    assert "Message" not in status(an_api_cluster().slot("workers-1", hitch=Hitch.SCRIPT, trouble="exit 1"))


def test_a_repair_shows_as_pending_and_one_for_a_person_as_failure() -> None:
    assert status(an_api_cluster().repaired("workers-1")) == {
        "Status": "Pending",
        "Message": "Under repair (launch): its agent is gone",
    }
    assert status(an_api_cluster().repaired("workers-1", CaseStep.HELD))["Status"] == "Failure"
    assert status(an_api_cluster().repaired("workers-1", CaseStep.SUSPECT))["Status"] == "Running"


def test_a_node_shows_its_own_version_and_the_one_it_shall_have() -> None:
    old, new = Version(image="ami-0123456789", release="1.0.0"), Version(release="1.0.1", serial=2)
    picture = an_api_cluster(1).group(a_group("workers", version=new)).slot("workers-1", version=old)
    found = operations_on(picture).call("DescribeClusterNode", ClusterName="ml-cluster", NodeLogicalId=f"{ID}-1")
    details = found["NodeDetails"]
    assert (details["CurrentImageId"], details["DesiredImageId"]) == ("ami-0123456789", "default")
    assert (details["CurrentImageReleaseVersion"], details["DesiredImageReleaseVersion"]) == ("1.0.0", "1.0.1")


def test_a_slot_whose_group_is_gone_is_shown_nowhere() -> None:
    picture = an_api_cluster(1)
    stray = a_slot("x-1", "gone", 77)
    strays = picture.remember(slots={**picture.memory.slots, stray.node: stray})
    assert listed(strays) == ["controller-1", "workers-1"]
