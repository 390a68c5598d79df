"""Whatever a client sends to an operation: never a failure of ours, and a refused call changes nothing."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steward.api.json11.errors import ApiError
from steward.api.json11.service import SERVED, is_read
from steward.api.operations.sight import event_id
from steward.model.group import Cluster, ClusterStatus, Goal, GroupStatus
from steward.model.order import RefusalKind
from steward.model.slot import Hitch, Purpose, SlotStep
from tests.builders.api_cluster import ARN, ID, ROLE, ApiPicture, a_group, an_api_cluster, nothing
from tests.builders.aws_shapes import valid
from tests.builders.picture import T0, n
from tests.fakes.aws_bench import SERVICE
from tests.fakes.operations import Operations, operations_on

_FUZZ = settings(max_examples=25, suppress_health_check=list(HealthCheck))
_GROUPS = ["workers", "controller", "new", "going"]
_IDS = ["i-0123456789abcdef0", "i-00000000"]

OPERATION = "00000000-0000-0000-0000-000000000001"
CLUSTER = an_api_cluster().memory.cluster or Cluster(name="", id="", created=0.0, status=ClusterStatus.FAILED)
_REFUSALS = {kind.value for kind in RefusalKind}

_USUAL = frozenset(
    {
        "ClusterName",
        "ExecutionRole",
        "InstanceCount",
        "InstanceGroupName",
        "InstanceGroupsToDelete",
        "LifeCycleConfig",
        "MinInstanceCount",
        "NodeProvisioningMode",
        "NodeRecovery",
        "OverrideVpcConfig",
        "Tags",
        "VpcConfig",
    }
)
"""Without the members that are refused anyway, half of the time."""

_WORDS: dict[str, st.SearchStrategy[Any]] = {
    "ClusterName": st.sampled_from(["ml-cluster", ARN, "other"]),
    "ResourceArn": st.sampled_from([ARN, ARN[:-1] + "9"]),
    "InstanceGroupName": st.sampled_from(_GROUPS),
    "InstanceGroupsToDelete": st.lists(st.sampled_from(_GROUPS), max_size=2),
    "InstanceCount": st.integers(0, 6),
    "MinInstanceCount": st.integers(0, 6),
    "InstanceType": st.just("ml.c5.large"),
    "ExecutionRole": st.just(ROLE),
    "EventId": st.integers(1, 3).map(lambda number: event_id(CLUSTER, number)),
    "OperationId": st.sampled_from([OPERATION, OPERATION[:-1] + "2"]),
    "NodeId": st.sampled_from(_IDS),
    "NodeIds": st.lists(st.sampled_from(_IDS), min_size=1, max_size=3),
    "NodeLogicalId": st.sampled_from([f"{ID}-1", "none"]),
    "NodeLogicalIds": st.lists(st.sampled_from([f"{ID}-1", f"{ID}-2", "none"]), min_size=1, max_size=3),
}
"""Members that would seldom name something that is there."""


def lively() -> ApiPicture:
    """Groups and nodes in every state, an event of each kind, a scaling under way."""
    picture = an_api_cluster(5).happened("cluster.created").happened("slot.serving", node=n("workers-1"))
    picture = picture.slot("workers-2", step=SlotStep.WAITING, instance=None, hitch=Hitch.CAPACITY, next_try=T0 + 5)
    picture = picture.slot("workers-3", step=SlotStep.DRAIN, purpose=Purpose.LEAVE).repaired("workers-4")
    picture = picture.slot("workers-5", instance="i-0123456789abcdef0")
    picture = picture.operation(OPERATION, after={"workers": Goal(target=5)})
    return picture.group(a_group("going", status=GroupStatus.DELETING))


def empty() -> ApiPicture:
    """No cluster yet."""
    return nothing()


def classic() -> ApiPicture:
    """Without continuous provisioning."""
    return lively().cluster(continuous=False)


@st.composite
def inputs(draw: st.DrawFn, operation: str) -> dict[str, Any]:
    """Valid by the model, often about what is there."""
    shape = SERVICE.input_shape(operation)
    members = draw(valid(shape))
    if operation in ("CreateCluster", "UpdateCluster") and draw(st.booleans()):
        members = {name: value for name, value in members.items() if name in _USUAL}
        members["InstanceGroups"] = draw(valid(shape.members["InstanceGroups"]))
    aimed: dict[str, Any] = _aimed(draw, members)
    return aimed


def _aimed(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, list):
        return [_aimed(draw, item) for item in value]
    if not isinstance(value, dict):
        return value
    if "InstanceCount" in value and draw(st.booleans()):
        value = {key: item for key, item in value.items() if key in _USUAL} | {"InstanceType": ""}
    return {key: draw(_WORDS[key]) if key in _WORDS else _aimed(draw, item) for key, item in value.items()}


def tell(operations: Operations, operation: str, members: dict[str, Any]) -> bool:
    """True: answered, and the answer fits the model (else Misshapen is raised). A refusal has changed nothing."""
    before = operations.memory
    refusal = _refusal(operations, operation, members)
    assert refusal is None or refusal.code.value in _REFUSALS
    assert operations.memory == before or not (refusal or is_read(operation))
    return refusal is None


def _refusal(operations: Operations, operation: str, members: dict[str, Any]) -> ApiError | None:
    try:
        json.dumps(operations.call(operation, **members), allow_nan=False)
    except ApiError as error:
        return error
    return None


@pytest.mark.parametrize("operation", SERVED)
@pytest.mark.parametrize("picture", [lively, empty, classic])
@_FUZZ
@given(data=st.data())
def test_any_valid_input_is_answered_or_refused_without_a_trace(
    operation: str, picture: Any, data: st.DataObject
) -> None:
    tell(operations_on(picture()), operation, data.draw(inputs(operation)))


@_FUZZ
@given(data=st.data())
def test_any_sequence_of_calls_leaves_a_cluster_that_can_be_shown(data: st.DataObject) -> None:
    operations = operations_on(lively())
    changes = [name for name in SERVED if not is_read(name)]
    for name in data.draw(st.lists(st.sampled_from(changes), min_size=1, max_size=5)):
        tell(operations, name, data.draw(inputs(name)))
        for read in ("DescribeCluster", "ListClusterNodes", "ListClusterOperations", "ListTags"):
            key = "ResourceArn" if read == "ListTags" else "ClusterName"
            assert tell(operations, read, {key: ARN}), read


@pytest.mark.parametrize("operation", [name for name in SERVED if name.startswith("List")])
@_FUZZ
@given(token=st.text(max_size=60) | st.binary(max_size=40).map(lambda raw: raw.hex()))
def test_any_token_is_read_or_refused(operation: str, token: str) -> None:
    key = {"ListTags": {"ResourceArn": ARN}, "ListClusters": {}}.get(operation, {"ClusterName": ARN})
    tell(operations_on(lively()), operation, {**key, "NextToken": token})
