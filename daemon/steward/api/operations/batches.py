"""Handle batch operations on nodes: delete, reboot, replace and add nodes, and StartClusterHealthCheck.

A request becomes one order; the answer lists what succeeded and what failed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from steward.api.json11.errors import ApiError, invalid
from steward.api.operations.sight import Json, Members, Sight, carried, node_id, sight_of
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.arn import arn_of
from steward.model.ids import InstanceId
from steward.model.order import (
    Added,
    AddNodes,
    NodeOutcome,
    NodeRefusal,
    NodeWish,
    OrderAnswer,
    StartHealthCheck,
    TouchNodes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """The error codes of one of the three operations on existing nodes."""

    wish: NodeWish
    code: str
    codes: Mapping[NodeRefusal, str]


_NODE_CODES = MappingProxyType(
    {
        NodeRefusal.NOT_FOUND: "NodeIdNotFound",
        NodeRefusal.BAD_STATUS: "InvalidNodeStatus",
        NodeRefusal.IN_USE: "NodeIdInUse",
    }
)
_INSTANCE_CODES = MappingProxyType(
    {
        NodeRefusal.NOT_FOUND: "InstanceIdNotFound",
        NodeRefusal.BAD_STATUS: "InvalidInstanceStatus",
        NodeRefusal.IN_USE: "InstanceIdInUse",
    }
)
_DELETE = _Kind(wish=NodeWish.DELETE, code="Code", codes=_NODE_CODES)
_REBOOT = _Kind(wish=NodeWish.REBOOT, code="ErrorCode", codes=_INSTANCE_CODES)
_REPLACE = _Kind(wish=NodeWish.REPLACE, code="ErrorCode", codes=_INSTANCE_CODES)


class Batches:
    def __init__(self, source: Source) -> None:
        self._source = source

    def delete(self, caller: Caller, members: Members) -> Json:
        return self._touch(_DELETE, caller, members)

    def reboot(self, caller: Caller, members: Members) -> Json:
        return self._touch(_REBOOT, caller, members)

    def replace(self, caller: Caller, members: Members) -> Json:
        return self._touch(_REPLACE, caller, members)

    def _touch(self, kind: _Kind, caller: Caller, members: Members) -> Json:
        sight = sight_of(self._source, members["ClusterName"])
        ids, logical = members.get("NodeIds", []), members.get("NodeLogicalIds", [])
        if not ids and not logical:
            raise invalid("At least one of NodeIds and NodeLogicalIds must be given.")
        order = TouchNodes(
            who=caller.user,
            cluster=members["ClusterName"],
            wish=kind.wish,
            ids=sight.provider_ids(ids),
            logical_ids=tuple(logical),
        )
        try:
            return _answer(kind, carried(self._source, order).nodes)
        except ApiError as error:
            raise ApiError(error.code, _in_our_words(error.message, order.ids)) from error


def _answer(kind: _Kind, outcomes: Iterable[NodeOutcome]) -> Json:
    lines = list(outcomes)
    by_id = [line for line in lines if not line.is_logical]
    by_logical = [line for line in lines if line.is_logical]
    failed = [{"NodeId": _shown(line), **_error(kind, line)} for line in by_id if line.refused]
    failed_logical = [{"NodeLogicalId": line.id, **_error(kind, line)} for line in by_logical if line.refused]
    return {
        "Successful": [_shown(line) for line in by_id if line.refused is None],
        "Failed": failed or None,
        "SuccessfulNodeLogicalIds": [line.id for line in by_logical if line.refused is None],
        "FailedNodeLogicalIds": failed_logical or None,
    }


def _in_our_words(text: str, ids: Iterable[str]) -> str:
    """Return the text with the provider's own ids replaced by the ids that the API shows."""
    for id in sorted(ids, key=len, reverse=True):
        text = text.replace(id, node_id(InstanceId(id)))
    return text


def _shown(line: NodeOutcome) -> str:
    return node_id(InstanceId(line.id))


def _error(kind: _Kind, line: NodeOutcome) -> Json:
    assert line.refused is not None
    return {kind.code: kind.codes[line.refused], "Message": line.text or line.refused.value}


# BatchAddClusterNodes.

_BAD_ZONES, _BAD_TYPES = "IncompatibleAvailabilityZones", "IncompatibleInstanceTypes"
_CODES = frozenset({"InstanceGroupNotFound", "InvalidInstanceGroupStatus", _BAD_ZONES, _BAD_TYPES})


class AddBatch:
    def __init__(self, source: Source) -> None:
        self._source = source

    def add(self, caller: Caller, members: Members) -> Json:
        """Add nodes; an entry with zones or types that its group does not have fails alone."""
        sight = sight_of(self._source, members["ClusterName"])
        judged = [(entry, _unfit(entry, sight)) for entry in members["NodesToAdd"]]
        unfit = [failed for _, failed in judged if failed]
        wishes = [entry for entry, failed in judged if not failed]
        order = AddNodes(
            who=caller.user,
            cluster=members["ClusterName"],
            wishes=tuple((entry["InstanceGroupName"], entry["IncrementTargetCountBy"]) for entry in wishes),
            token=members.get("ClientToken", ""),
        )
        answer = carried(self._source, order) if wishes else OrderAnswer()
        return {
            "Successful": [_success(one) for one in answer.added if one.logical],
            "Failed": [*unfit, *(_failure(one) for one in answer.added if not one.logical)],
        }


def _unfit(entry: Members, sight: Sight) -> Json | None:
    if "AvailabilityZones" in entry:
        return _failed(entry, _BAD_ZONES, "This cluster has no availability zones: leave AvailabilityZones out.")
    group = sight.memory.groups.get(entry["InstanceGroupName"])
    types = entry.get("InstanceTypes")
    if group is None or types is None or Counter(types) == Counter(group.types):
        return None
    return _failed(entry, _BAD_TYPES, f"Instance group {group.name} has {', '.join(group.types)}: leave it out.")


def _failed(entry: Members, code: str, message: str) -> Json:
    return {
        "InstanceGroupName": entry["InstanceGroupName"],
        "ErrorCode": code,
        "FailedCount": entry["IncrementTargetCountBy"],
        "AvailabilityZones": entry.get("AvailabilityZones"),
        "InstanceTypes": entry.get("InstanceTypes"),
        "Message": message,
    }


def _success(one: Added) -> Json:
    return {"NodeLogicalId": one.logical, "InstanceGroupName": one.group, "Status": "Pending"}


def _failure(one: Added) -> Json:
    code = one.refused if one.refused in _CODES else "InvalidInstanceGroupStatus"
    return {"InstanceGroupName": one.group, "ErrorCode": code, "FailedCount": one.count, "Message": one.text or None}


# StartClusterHealthCheck: a deep check of the nodes that serve.


class HealthFilter:
    def __init__(self, source: Source) -> None:
        self._source = source

    def start(self, caller: Caller, members: Members) -> Json:
        sight = sight_of(self._source, members["ClusterName"])
        order = StartHealthCheck(
            who=caller.user,
            cluster=members["ClusterName"],
            wishes=tuple(
                (
                    entry["InstanceGroupName"],
                    sight.provider_ids(entry.get("InstanceIds", [])),
                    tuple(entry["DeepHealthChecks"]),
                )
                for entry in members["DeepHealthCheckConfigurations"]
            ),
        )
        answer = carried(self._source, order)
        return {"ClusterArn": arn_of(answer.cluster_id, self._source.want.capacity)}
