"""ListClusterNodes and DescribeClusterNode."""

import ipaddress
import json
from collections.abc import Iterator
from datetime import UTC, datetime

from steward.api.json11.errors import invalid, not_found
from steward.api.operations.group_shape import lifecycle_of
from steward.api.operations.paging import Key, is_in_time_filter, page
from steward.api.operations.sight import Json, Members, Sight, node_id, sight_of
from steward.api.source import Source
from steward.model.access import Caller
from steward.model.case import Case, CaseStep
from steward.model.deep import DeepRun
from steward.model.group import Group, GroupStatus
from steward.model.slot import Hitch, Purpose, SlotRecord, SlotStep

_KEPT = ("InstanceStorageConfigs", "OverrideVpcConfig", "NetworkInterface")
_LEAVING = (SlotStep.DRAIN, SlotStep.BACKUP, SlotStep.END)
_MAX_MESSAGE = 1024


class Nodes:
    """The operations that read nodes."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def list_nodes(self, _caller: Caller, members: Members) -> Json:
        """List nodes; without IncludeNodeLogicalIds, only those that have an instance."""
        sight = sight_of(self._source, members["ClusterName"])
        shown, token = page(_asked(sight, members), members, scope=f"nodes of {sight.cluster.id}")
        logical = members.get("IncludeNodeLogicalIds", False)
        summaries = [_summary(slot, sight.memory.groups[slot.group], sight, logical=logical) for slot in shown]
        return {"ClusterNodeSummaries": summaries, "NextToken": token}

    def describe_node(self, _caller: Caller, members: Members) -> Json:
        sight = sight_of(self._source, members["ClusterName"])
        slot = _named(sight, members)
        return {"NodeDetails": _details(slot, sight.memory.groups[slot.group], sight)}


def _asked(sight: Sight, members: Members) -> Iterator[tuple[Key, SlotRecord]]:
    part, unlaunched = members.get("InstanceGroupNameContains", ""), members.get("IncludeNodeLogicalIds", False)
    for slot in sight.memory.slots.values():
        if slot.group not in sight.memory.groups or part not in slot.group:
            continue
        is_there = slot.instance is not None or unlaunched
        if is_there and is_in_time_filter(_launched(slot), members, "CreationTimeAfter", "CreationTimeBefore"):
            yield _key(slot, members), slot


def _key(slot: SlotRecord, members: Members) -> Key:
    """Return the node's sort key: its name in Slurm or its launch time, made unique by the logical id."""
    if members.get("SortBy") == "NAME":
        return (str(slot.node), slot.logical)
    return (_launched(slot), slot.logical)


def _named(sight: Sight, members: Members) -> SlotRecord:
    id, logical = members.get("NodeId"), members.get("NodeLogicalId")
    if (id is None) == (logical is None):
        raise invalid("Exactly one of NodeId and NodeLogicalId must be given.")
    slot = sight.slot_with_id(id) if id is not None else sight.slot_with_logical(logical or "")
    if slot is None or slot.group not in sight.memory.groups:
        raise not_found(f"Node {id or logical} not found in cluster {sight.cluster.name}.")
    return slot


def _launched(slot: SlotRecord) -> float:
    """Return the launch time of the node's instance; without an instance, when the node was asked for."""
    return slot.created if slot.launched is None else slot.launched


def _summary(slot: SlotRecord, group: Group, sight: Sight, *, logical: bool) -> Json:
    return {
        "InstanceGroupName": group.name,
        "InstanceId": _shown_id(slot) or "",
        "NodeLogicalId": slot.logical if logical else None,
        "InstanceType": _type(slot, group, sight),
        "LaunchTime": _launched(slot),
        "LastSoftwareUpdateTime": slot.updated,
        "InstanceStatus": status_of(slot, group, sight),
        "PrivateDnsHostname": slot.node,
        "CurrentImageReleaseVersion": slot.version.release or None,
    }


def _details(slot: SlotRecord, group: Group, sight: Sight) -> Json:
    kept = json.loads(group.extras)
    has_instance = slot.instance is not None
    return {
        "InstanceGroupName": group.name,
        "InstanceId": _shown_id(slot),
        "NodeLogicalId": slot.logical,
        "InstanceStatus": status_of(slot, group, sight),
        "InstanceType": _type(slot, group, sight),
        "LaunchTime": _launched(slot),
        "LastSoftwareUpdateTime": slot.updated,
        "LifeCycleConfig": lifecycle_of(group),
        "ThreadsPerCore": group.threads_per_core or None,
        "PrivatePrimaryIp": _address(slot, sight, 4),
        "PrivatePrimaryIpv6": _address(slot, sight, 6),
        "PrivateDnsHostname": slot.node,
        "CurrentImageId": (slot.version.image or "default") if has_instance else None,
        "DesiredImageId": group.version.image or "default",
        "CurrentImageReleaseVersion": (slot.version.release or None) if has_instance else None,
        "DesiredImageReleaseVersion": group.version.release or None,
        **{name: kept[name] for name in _KEPT if name in kept},
    }


def _shown_id(slot: SlotRecord) -> str | None:
    return None if slot.instance is None else node_id(slot.instance)


def _type(slot: SlotRecord, group: Group, sight: Sight) -> str:
    """Return the instance type that the provider reports, else the first type of the group."""
    # Of a group's several types the provider may have taken any.
    instance = sight.instance_of(slot)
    return (instance.type if instance else "") or next(iter(group.types), "unknown")


def _address(slot: SlotRecord, sight: Sight, version: int) -> str | None:
    """Return the node's address of this IP version, by its agent, else the provider, else Slurm; None if unknown."""
    agent, instance, node = sight.agent_of(slot), sight.instance_of(slot), sight.seen.nodes.get(slot.node)
    said = [agent.address if agent else "", instance.address if instance else "", node.address if node else ""]
    return next((text for text in said if _version_of(text) == version), None)


def _version_of(text: str) -> int:
    """Return the IP version of an address; 0 if the text is not an address."""
    try:
        return ipaddress.ip_address(text).version
    except ValueError:
        return 0


def status_of(slot: SlotRecord, group: Group, sight: Sight) -> Json:
    """Return the ClusterInstanceStatusDetails of a node."""
    case = sight.cases.get(slot.node) if slot.step is SlotStep.SERVING else None
    run = sight.deeps.get(slot.node)
    message = _deep(run) if run else _repair(case) if case else _trouble(slot, sight.at)
    return {"Status": _word(slot, group, case, run), "Message": message[:_MAX_MESSAGE] or None}


def _word(slot: SlotRecord, group: Group, case: Case | None, run: DeepRun | None) -> str:
    if run is not None and not slot.is_leaving:
        return "DeepHealthCheckInProgress"
    if slot.step is SlotStep.SERVING:
        return _word_of_repair(case)
    if slot.is_leaving or (slot.step in _LEAVING and slot.purpose is not Purpose.RENEW):
        return "ShuttingDown"
    if slot.instance is not None and slot.hitch is not Hitch.NONE:
        return "Failure"
    if slot.purpose is Purpose.RENEW or (slot.has_served and group.status is GroupStatus.SYSTEM_UPDATING):
        return "SystemUpdating"
    if slot.step in (SlotStep.VERIFY, SlotStep.RETURN) and group.on_start_checks:
        return "DeepHealthCheckInProgress"
    return "Pending"


def _word_of_repair(case: Case | None) -> str:
    """Return the status of a node in service: Running while it is only suspected, Failure while a person must act."""
    if case is None or case.step is CaseStep.SUSPECT:
        return "Running"
    return "Failure" if case.step is CaseStep.HELD else "Pending"


def _repair(case: Case) -> str:
    at = f"waits for `steward approve {case.number}`" if case.waits_for_yes else case.step.value
    return f"Under repair ({at}): {case.why.text}"


def _deep(run: DeepRun) -> str:
    return f"Deep check {run.id} ({run.cause.value}) is {run.state.value}"


def _trouble(slot: SlotRecord, now: float) -> str:
    """Return the last failure, and the time of the next try until it comes; empty for a node in service."""
    if slot.hitch is Hitch.NONE or slot.step is SlotStep.SERVING:
        return ""
    again = f" Next try at {_clock(slot.next_try)}." if slot.next_try > now else ""
    return f"{slot.trouble or slot.hitch.value}.{again}"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
