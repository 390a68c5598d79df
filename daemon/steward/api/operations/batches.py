"""BatchDeleteClusterNodes, BatchRebootClusterNodes, BatchReplaceClusterNodes: one order, two lists of ids back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from steward.api.json11.errors import ApiError, invalid
from steward.api.operations.names import node_id
from steward.api.operations.orders import carried
from steward.api.operations.sight import Json, Members, sight_of
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.ids import InstanceId
from steward.model.order import NodeOutcome, NodeRefusal, NodeWish, TouchNodes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """How one of the three calls names its errors."""

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
            return _answer(kind, carried(self._source.commands.give, order).nodes)
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
    """The provider's own ids as we show them."""
    for id in sorted(ids, key=len, reverse=True):
        text = text.replace(id, node_id(InstanceId(id)))
    return text


def _shown(line: NodeOutcome) -> str:
    return node_id(InstanceId(line.id))


def _error(kind: _Kind, line: NodeOutcome) -> Json:
    assert line.refused is not None
    return {kind.code: kind.codes[line.refused], "Message": line.text or line.refused.value}
