"""ListClusterOperations and DescribeClusterOperation."""

from steward.api.json11.errors import not_found
from steward.api.operations.paging import between, page
from steward.api.operations.sight import Json, Members, Sight, sight_of
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.group import Goal, Operation

_SCALING = "Scaling"
_IN_PROGRESS, _SUPERSEDED, _DONE = "InProgress", "Superseded", "Done"


class Scalings:
    """Every operation here is a scaling."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def list_operations(self, _caller: Caller, members: Members) -> Json:
        sight = sight_of(self._source, members["ClusterName"])
        found = [one for one in sight.memory.operations.values() if _is_asked(one, members)]
        keyed = [((one.at, one.id), _summary(one, sight)) for one in found]
        shown, token = page(keyed, members, scope=f"operations of {sight.cluster.id}", descending=True)
        return {"ClusterOperationSummaries": shown, "NextToken": token}

    def describe_operation(self, _caller: Caller, members: Members) -> Json:
        sight = sight_of(self._source, members["ClusterName"])
        operation = sight.memory.operations.get(members["OperationId"])
        if operation is None:
            raise not_found(f"Operation {members['OperationId']} not found.")
        details = [_scaling(operation, group) for group in sorted(operation.after)]
        return {**_summary(operation, sight), "ScalingDetails": details}


def _is_asked(operation: Operation, members: Members) -> bool:
    return (
        members.get("Type", _SCALING) == _SCALING
        and members.get("Status", _status(operation)) == _status(operation)
        and between(operation.at, members, "CreationTimeAfter", "CreationTimeBefore")
    )


def _status(operation: Operation) -> str:
    if operation.after and operation.superseded >= operation.after.keys():
        return _SUPERSEDED
    return _IN_PROGRESS if operation.finished is None else _DONE


def _summary(operation: Operation, sight: Sight) -> Json:
    return {
        "OperationId": operation.id,
        "ClusterArn": sight.arn,
        "Type": _SCALING,
        "Status": _status(operation),
        "CreationTime": operation.at,
    }


def _scaling(operation: Operation, group: str) -> Json:
    is_superseded = group in operation.superseded
    return {
        "InstanceGroupName": group,
        "Status": _SUPERSEDED if is_superseded else _IN_PROGRESS if operation.finished is None else _DONE,
        "Original": _goal(operation.before.get(group, Goal(target=0))),
        "Desired": _goal(operation.after[group]),
    }


def _goal(goal: Goal) -> Json:
    return {"TargetCount": goal.target, "MinCount": goal.minimum}
