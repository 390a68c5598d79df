"""ListClusterEvents, DescribeClusterEvent, ListClusterOperations, DescribeClusterOperation."""

from collections.abc import Iterator

from steward.api.json11.errors import invalid, not_found
from steward.api.operations.paging import Key, is_in_time_filter, page
from steward.api.operations.sight import Json, Members, Sight, event_id, event_number, node_id, sight_of
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.events import Event, Level
from steward.model.group import Goal, Operation
from steward.model.ids import InstanceId
from steward.model.slot import SlotRecord

_SEARCHED = 5000
_KEPT = 500
_LEVELS = {Level.INFO: "Info", Level.WARNING: "Warn", Level.ERROR: "Error"}
_OF_CLUSTER = ("cluster.", "group.", "nodes.", "slot.", "setup.", "gate.", "rollout.", "orphan.", "health.")
_CLUSTER, _GROUP, _INSTANCE = "Cluster", "InstanceGroup", "Instance"


class Events:
    """The newest `_KEPT` events in the shape of HyperPod; `steward events` shows more."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def list_events(self, _caller: Caller, members: Members) -> Json:
        sight = self._continuous(members)
        found = [line for line in self._newest(sight) if line.is_asked(members)]
        keyed: list[tuple[Key, Json]] = [((line.event.at, line.number), line.summary()) for line in found]
        shown, token = page(keyed, members, scope=f"events of {sight.cluster.id}", descending=True)
        return {"Events": shown, "NextToken": token}

    def describe_event(self, _caller: Caller, members: Members) -> Json:
        sight = self._continuous(members)
        number = event_number(sight.cluster, members["EventId"])
        line = next((line for line in self._newest(sight) if line.number == number), None)
        if line is None:
            raise not_found(f"Event {members['EventId']} not found.")
        return {"EventDetails": line.details()}

    def _continuous(self, members: Members) -> Sight:
        sight = sight_of(self._source, members["ClusterName"])
        if not sight.cluster.continuous:
            raise invalid(f"Cluster {sight.cluster.name} has no events: its NodeProvisioningMode is not Continuous.")
        return sight

    def _newest(self, sight: Sight) -> list["_Line"]:
        events = self._source.store.events(limit=_SEARCHED)
        return list(_lines(events, sight))[-_KEPT:]


def _lines(events: list[tuple[int, Event]], sight: Sight) -> Iterator["_Line"]:
    for number, event in events:
        slot = sight.memory.slots.get(event.node) if event.node is not None else None
        is_of_cluster = event.kind.startswith(_OF_CLUSTER) or slot is not None
        if is_of_cluster and event.at >= sight.cluster.created:
            yield _Line(number, event, slot, sight)


class _Line:
    """An event in the API's shape."""

    def __init__(self, number: int, event: Event, slot: SlotRecord | None, sight: Sight) -> None:
        self.number, self.event = number, event
        self._slot, self._sight, self._data = slot, sight, dict(event.data)

    def is_asked(self, members: Members) -> bool:
        told = {"InstanceGroupName": self._group, "NodeId": self._instance, "ResourceType": self._resource}
        told["OperationId"] = self._data.get("operation")
        fits = all(members.get(name, value) == value for name, value in told.items())
        return fits and is_in_time_filter(self.event.at, members, "EventTimeAfter", "EventTimeBefore")

    def summary(self) -> Json:
        return {
            "EventId": event_id(self._sight.cluster, self.number),
            "ClusterArn": self._sight.arn,
            "ClusterName": self._sight.cluster.name,
            "InstanceGroupName": self._group,
            "InstanceId": self._instance,
            "ResourceType": self._resource,
            "EventTime": self.event.at,
            "Description": f"{self.event.text} [{self.event.kind}]",
            "EventLevel": _LEVELS[self.event.level],
            "OperationId": self._data.get("operation"),
        }

    def details(self) -> Json:
        return {**self.summary(), "EventDetails": {"EventMetadata": self._metadata()}}

    def _metadata(self) -> Json:
        failure = self.event.text if self.event.level is Level.ERROR else None
        if self._resource == _INSTANCE:
            logical = self._slot.logical if self._slot else None
            return {"Instance": {"FailureMessage": failure, "NodeLogicalId": logical}}
        if self._resource == _GROUP:
            return {"InstanceGroup": {"FailureMessage": failure}}
        return {"Cluster": {"FailureMessage": failure}}

    @property
    def _resource(self) -> str:
        if self.event.node is not None:
            return _INSTANCE
        return _GROUP if self._group else _CLUSTER

    @property
    def _group(self) -> str | None:
        return self._slot.group if self._slot else self._data.get("group")

    @property
    def _instance(self) -> str | None:
        """The instance that the event names; else the node's present one if it ran then; None if unknown."""
        told, slot = self._data.get("instance"), self._slot
        if not told and slot and slot.instance and slot.launched is not None and slot.launched <= self.event.at:
            told = slot.instance
        return node_id(InstanceId(told)) if told else None


_SCALING = "Scaling"
_IN_PROGRESS, _SUPERSEDED, _DONE = "InProgress", "Superseded", "Done"


class Scalings:
    """The operations of the cluster, each of which is a scaling."""

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
        and is_in_time_filter(operation.at, members, "CreationTimeAfter", "CreationTimeBefore")
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
