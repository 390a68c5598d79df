"""The facts of the cluster that a node's lifecycle scripts learn, as JSON texts in HyperPod's format."""

import json
from functools import lru_cache
from typing import Any

from steward.model.arn import arn_of
from steward.model.group import Group, Role
from steward.model.ids import InstanceId, NodeName
from steward.model.slot import SlotRecord
from steward.policy.draft import Draft

_ROLES = (Role.CONTROLLER, Role.LOGIN, Role.COMPUTE)
_HERE = ("127.", "::1")


def resource_config(node: NodeName, draft: Draft) -> str:
    """`resource_config.json`: every group and its instances. It is the same for all nodes of a plan; one in which the
    node's own present instance is not named is made anew."""
    text, named = _whole(draft)
    record = draft.records.get(node)
    if record is not None and record.instance is not None and record.instance not in named:
        _whole.cache_clear()
        text, _ = _whole(draft)
    return text


def provisioning_parameters(draft: Draft) -> str:
    """`provisioning_parameters.json`, as far as the groups say it; the runner adds what the scripts' own one has."""
    groups = sorted(draft.groups.values(), key=lambda group: group.name)
    told: dict[str, Any] = {"version": "1.0.0", "workload_manager": "slurm"}
    for key, role in (("controller_group", Role.CONTROLLER), ("login_group", Role.LOGIN)):
        if first := next((group.name for group in groups if group.role is role), ""):
            told[key] = first
    told["worker_groups"] = [
        {"instance_group_name": group.name, "partition_name": group.partition}
        for group in groups
        if group.role is Role.COMPUTE
    ]
    return json.dumps(told, indent=1)


@lru_cache(maxsize=1)
def _whole(draft: Draft) -> tuple[str, frozenset[InstanceId]]:
    """Made once for a plan, in which hundreds of nodes may ask for it. (text, instances that are in it)."""
    named = [record for record in draft.records.values() if record.instance is not None]
    by_group: dict[str, list[SlotRecord]] = {}
    for record in sorted(named, key=lambda record: record.created):
        by_group.setdefault(record.group, []).append(record)
    groups = sorted(draft.groups.values(), key=lambda group: (_ROLES.index(group.role), group.name))
    told = {
        "ClusterConfig": _cluster(draft),
        "InstanceGroups": [_group(group, by_group.get(group.name, []), draft) for group in groups],
        "ClusterType": "Slurm",
        "SlurmConfig": {"PrimaryControllerIp": _controller(groups, by_group, draft), "SecondaryControllerIps": []},
    }
    return json.dumps(told), frozenset(record.instance for record in named if record.instance is not None)


def _cluster(draft: Draft) -> dict[str, str]:
    if draft.cluster is None:
        return {"ClusterArn": "", "ClusterName": ""}
    return {"ClusterArn": arn_of(draft.cluster.id, draft.want.capacity), "ClusterName": draft.cluster.name}


def _group(group: Group, records: list[SlotRecord], draft: Draft) -> dict[str, Any]:
    partitions = [group.partition] if group.partition else []
    return {
        "Name": group.name,
        "InstanceType": group.types[0] if group.types else "",
        "SlurmConfig": {"NodeType": group.role.value, "PartitionNames": partitions},
        "Instances": [_instance(record, group, draft) for record in records],
    }


def _instance(record: SlotRecord, group: Group, draft: Draft) -> dict[str, str]:
    address = _address(record, group, draft)
    return {
        "InstanceName": record.node,
        "AgentIpAddress": address,
        "CustomerIpAddress": address,
        "InstanceId": str(record.instance),
    }


def _address(record: SlotRecord, group: Group, draft: Draft) -> str:
    """Where others reach it. Empty when that is not known yet, and for a controller of which only the controller itself
    could use what is known: each node then takes the head that it speaks to."""
    address = _known_address(record, draft)
    return "" if group.role is Role.CONTROLLER and address.startswith(_HERE) else address


def _known_address(record: SlotRecord, draft: Draft) -> str:
    """Where its agent speaks from, or what the provider says of its instance."""
    agent = draft.seen.agents.get(record.node)
    if agent is not None and agent.address and agent.incarnation and agent.incarnation.instance == record.instance:
        return agent.address
    instance = draft.seen.instances.get(record.instance) if record.instance is not None else None
    return instance.address if instance is not None else ""


def _controller(groups: list[Group], by_group: dict[str, list[SlotRecord]], draft: Draft) -> str:
    controllers = [group for group in groups if group.role is Role.CONTROLLER]
    addresses = [_address(record, group, draft) for group in controllers for record in by_group.get(group.name, [])]
    return addresses[0] if addresses else ""
