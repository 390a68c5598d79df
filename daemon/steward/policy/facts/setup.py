"""The setup of a new instance by lifecycle scripts, for slots and repairs alike: the order and its progress."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from steward.model.arn import arn_of
from steward.model.case import Case
from steward.model.group import Group, Role
from steward.model.health import Advice
from steward.model.ids import InstanceId, NodeName
from steward.model.observed import AgentView
from steward.model.setup import SetupReport, SetupState
from steward.model.slot import SlotRecord
from steward.policy.draft import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetup:
    """A run of a group's scripts on an instance. `token` is unique to the instance and the try."""

    node: NodeName
    group: Group
    token: str


def setup_of_case(case: Case, draft: Draft) -> NodeSetup | None:
    """Return the setup that a repair's new instance needs before its checks count; None if it needs no scripts."""
    record = draft.slots.get(case.node)
    group = draft.groups.get(record.group) if record else None
    if record is None or group is None or case.rung is not Advice.REPLACE or not group.lifecycle.has_scripts:
        return None
    return NodeSetup(node=case.node, group=group, token=f"{case.token}-{group.version.serial}")


def report_of(setup: NodeSetup, view: AgentView | None) -> SetupReport | None:
    """Return the agent's report of this very run; None if there is none."""
    report = view.setup if view and view.connected else None
    return report if report is not None and report.token == setup.token else None


def is_prepared(setup: NodeSetup, view: AgentView | None) -> bool:
    """Return whether the scripts succeeded, or there are none."""
    if not setup.group.lifecycle.has_scripts:
        return True
    report = report_of(setup, view)
    return report is not None and report.state is SetupState.SUCCEEDED


def setup_failure(setup: NodeSetup, view: AgentView | None) -> str:
    """Return why the run failed, in one line; empty if it has not failed."""
    report = report_of(setup, view)
    if report is None or report.state is not SetupState.FAILED:
        return ""
    status = "" if report.exit_status is None else f", exit status {report.exit_status}"
    last = f": {report.lines[-1]}" if report.lines else ""
    return f"lifecycle scripts did not run successfully: {report.step or 'setup'}{status}; {report.why}{last}"


# The description of the cluster for a node's lifecycle scripts, as JSON texts in HyperPod's format.

_ROLES = (Role.CONTROLLER, Role.LOGIN, Role.COMPUTE)
_LOOPBACK = ("127.", "::1")


def resource_config(node: NodeName, draft: Draft) -> str:
    """Return `resource_config.json`: every group and its instances."""
    # the text is made once for all nodes of a plan, and again if the node's own instance is missing in it
    text, named = _config_of_all(draft)
    record = draft.slots.get(node)
    if record is not None and record.instance is not None and record.instance not in named:
        _config_of_all.cache_clear()
        text, _ = _config_of_all(draft)
    return text


def provisioning_parameters(draft: Draft) -> str:
    """Return `provisioning_parameters.json` by the groups; the runner on the node merges the scripts' own file."""
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
def _config_of_all(draft: Draft) -> tuple[str, frozenset[InstanceId]]:
    """Return the text and the instances in it; made once for a plan, in which hundreds of nodes may need it."""
    named = [record for record in draft.slots.values() if record.instance is not None]
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
    """Return the address at which other nodes reach a slot; empty if unknown, or a controller's loopback address.

    For an empty controller address, each node fills in the address of the head that it speaks to.
    """
    address = _known_address(record, draft)
    return "" if group.role is Role.CONTROLLER and address.startswith(_LOOPBACK) else address


def _known_address(record: SlotRecord, draft: Draft) -> str:
    """Return the address that the slot's agent speaks from, or else the provider's; empty if unknown."""
    agent = draft.seen.agents.get(record.node)
    if agent is not None and agent.address and agent.incarnation and agent.incarnation.instance == record.instance:
        return agent.address
    instance = draft.seen.instances.get(record.instance) if record.instance is not None else None
    return instance.address if instance is not None else ""


def _controller(groups: list[Group], by_group: dict[str, list[SlotRecord]], draft: Draft) -> str:
    controllers = [group for group in groups if group.role is Role.CONTROLLER]
    addresses = [_address(record, group, draft) for group in controllers for record in by_group.get(group.name, [])]
    return addresses[0] if addresses else ""
