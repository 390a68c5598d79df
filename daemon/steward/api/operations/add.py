"""BatchAddClusterNodes."""

from collections import Counter

from steward.api.operations.orders import carried
from steward.api.operations.sight import Json, Members, Sight, sight_of
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.order import Added, AddNodes, Answer

_BAD_ZONES, _BAD_TYPES = "IncompatibleAvailabilityZones", "IncompatibleInstanceTypes"
_CODES = frozenset({"InstanceGroupNotFound", "InvalidInstanceGroupStatus", _BAD_ZONES, _BAD_TYPES})


class AddBatch:
    def __init__(self, source: Source) -> None:
        self._source = source

    def add(self, caller: Caller, members: Members) -> Json:
        """Entries that ask for zones or types that their group does not have fail by themselves."""
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
        answer = carried(self._source.commands.give, order) if wishes else Answer()
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
