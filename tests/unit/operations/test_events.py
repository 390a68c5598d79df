"""ListClusterEvents, DescribeClusterEvent, and the operations that scalings are."""

import uuid
from typing import Any

import pytest

from steward.api.operations.sight import node_id
from steward.model.events import Level
from steward.model.group import Goal
from steward.model.ids import InstanceId
from tests.builders.api_cluster import ARN, ApiPicture, an_api_cluster
from tests.builders.picture import T0, n
from tests.fakes.operations import operations_on

FIRST, SECOND = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))


def a_story() -> ApiPicture:
    return (
        an_api_cluster(2)
        .happened("cluster.created", data=(("operation", FIRST),))
        .happened("group.rollback", level=Level.ERROR, data=(("group", "workers"),))
        .happened("slot.serving", node=n("workers-1"))
        .happened("job.resumed")
        .happened("case.opened", level=Level.WARNING, node=n("workers-2"))
        .happened("case.opened", node=n("elsewhere"))
    )


def listed(picture: ApiPicture, **members: Any) -> list[str]:
    found = operations_on(picture).call("ListClusterEvents", ClusterName="ml-cluster", **members)
    return [event["Description"].rpartition("[")[2].rstrip("]") for event in found["Events"]]


def test_what_happened_to_the_cluster_is_listed_newest_first_and_nothing_else() -> None:
    assert listed(a_story()) == ["case.opened", "slot.serving", "group.rollback", "cluster.created"]
    assert listed(a_story(), SortOrder="Ascending")[0] == "cluster.created"


@pytest.mark.parametrize(
    ("members", "kinds"),
    [
        ({"ResourceType": "Cluster"}, ["cluster.created"]),
        ({"ResourceType": "InstanceGroup"}, ["group.rollback"]),
        ({"ResourceType": "Instance"}, ["case.opened", "slot.serving"]),
        ({"InstanceGroupName": "workers"}, ["case.opened", "slot.serving", "group.rollback"]),
        ({"OperationId": FIRST}, ["cluster.created"]),
        ({"EventTimeAfter": T0 + 2}, ["case.opened", "slot.serving"]),
        ({"EventTimeBefore": T0}, ["cluster.created"]),
        ({"NodeId": "i-00000000"}, []),
    ],
)
def test_events_are_filtered(members: dict[str, Any], kinds: list[str]) -> None:
    assert listed(a_story(), **members) == kinds


def test_an_event_of_a_former_instance_does_not_name_the_present_one() -> None:
    picture = a_story().slot("workers-1", launched=T0 + 50)
    events = operations_on(picture).call("ListClusterEvents", ClusterName="ml-cluster")["Events"]
    instances = {event["Description"]: event.get("InstanceId") for event in events}
    assert instances["it happened [slot.serving]"] is None
    assert instances["it happened [case.opened]"] == node_id(InstanceId("box/workers-2"))


def test_each_listed_event_can_be_described() -> None:
    operations = operations_on(a_story())
    for event in operations.call("ListClusterEvents", ClusterName="ml-cluster")["Events"]:
        found = operations.call("DescribeClusterEvent", ClusterName="ml-cluster", EventId=event["EventId"])
        details = found["EventDetails"]
        assert {name: details[name] for name in event} == event


def test_an_error_has_its_failure_message_and_an_instance_its_logical_id() -> None:
    operations = operations_on(a_story())
    events = operations.call("ListClusterEvents", ClusterName="ml-cluster")["Events"]
    found = [
        operations.call("DescribeClusterEvent", ClusterName=ARN, EventId=event["EventId"])["EventDetails"]
        for event in events
    ]
    metadata = [details["EventDetails"]["EventMetadata"] for details in found]
    assert metadata[1]["Instance"]["NodeLogicalId"].endswith("-1")
    assert metadata[2] == {"InstanceGroup": {"FailureMessage": "it happened"}}
    assert [event["EventLevel"] for event in events] == ["Warn", "Info", "Error", "Info"]


@pytest.mark.parametrize("id", [str(uuid.UUID(int=3)), FIRST])
def test_an_event_that_never_was_is_not_found(id: str) -> None:
    refused = operations_on(a_story()).refused("DescribeClusterEvent", ClusterName="ml-cluster", EventId=id)
    assert refused[0] == "ResourceNotFound"


def test_without_continuous_provisioning_there_are_no_events() -> None:
    picture = a_story().cluster(continuous=False)
    assert operations_on(picture).refused("ListClusterEvents", ClusterName="ml-cluster")[0] == "ValidationException"


def scalings() -> ApiPicture:
    goals = {"before": {"workers": Goal(target=2)}, "after": {"workers": Goal(target=4, minimum=1)}}
    superseded = {"superseded": frozenset({"workers"}), "finished": T0 + 1}
    return an_api_cluster().operation(FIRST, T0, **goals, **superseded).operation(SECOND, T0 + 1, **goals)


def test_scalings_are_listed_newest_first_with_their_state() -> None:
    operations = operations_on(scalings())

    def found(**members: Any) -> list[tuple[str, str]]:
        answer = operations.call("ListClusterOperations", ClusterName="ml-cluster", **members)
        return [(one["OperationId"], one["Status"]) for one in answer["ClusterOperationSummaries"]]

    assert found() == [(SECOND, "InProgress"), (FIRST, "Superseded")]
    assert found(Status="InProgress") == [(SECOND, "InProgress")]
    assert found(Type="DeepHealthCheck") == []
    assert found(CreationTimeBefore=T0) == [(FIRST, "Superseded")]


def test_a_scaling_tells_where_it_came_from_and_where_it_goes() -> None:
    operations = operations_on(scalings())
    found = operations.call("DescribeClusterOperation", ClusterName="ml-cluster", OperationId=SECOND)
    assert found["ScalingDetails"] == [
        {
            "InstanceGroupName": "workers",
            "Status": "InProgress",
            "Original": {"TargetCount": 2, "MinCount": 0},
            "Desired": {"TargetCount": 4, "MinCount": 1},
        }
    ]
    unknown = {"ClusterName": "ml-cluster", "OperationId": str(uuid.UUID(int=9))}
    assert operations.refused("DescribeClusterOperation", **unknown)[0] == "ResourceNotFound"
