"""What lifecycle scripts are told of the cluster."""

import json
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from steward.model.group import Cluster, ClusterStatus, Goal, Group, GroupStatus, Role
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, NodeName
from steward.model.instance import Instance, InstanceState
from steward.model.memory import Memory
from steward.model.observed import AgentView, Observed
from steward.model.slot import SlotRecord, SlotStep
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.setup import provisioning_parameters, resource_config
from tests.builders.want import a_want

NOW = 1000.0
W1, C1 = NodeName("worker-1"), NodeName("head")


def a_group(name: str, role: Role, *, partition: str = "", types: tuple[str, ...] = ()) -> Group:
    return Group(
        name=name,
        role=role,
        types=types,
        goal=Goal(target=1),
        status=GroupStatus.CREATING,
        created=NOW,
        partition=partition,
    )


def a_slot(node: NodeName, group: str, instance: str) -> SlotRecord:
    return SlotRecord(
        node=node,
        group=group,
        logical=f"slot-{node}",
        step=SlotStep.SETUP,
        entered=NOW,
        created=NOW,
        why=Why(rule="test", text="wanted"),
        instance=InstanceId(instance) if instance else None,
    )


def an_agent(node: NodeName, instance: str, address: str) -> AgentView:
    who = Incarnation(instance=InstanceId(instance), boot=BootId("b"))
    return AgentView(node=node, incarnation=who, connected=True, last_heard=NOW, address=address)


MEMORY = Memory(
    cluster=Cluster(name="lab", id="abc123", created=NOW, status=ClusterStatus.CREATING),
    groups={
        "worker": a_group("worker", Role.COMPUTE, partition="dev", types=("ml.p5.48xlarge", "x")),
        "controller": a_group("controller", Role.CONTROLLER),
        "login": a_group("login", Role.LOGIN),
    },
    slots={W1: a_slot(W1, "worker", "i-1"), C1: a_slot(C1, "controller", "i-c")},
)
SEEN = Observed(at=NOW, agents={W1: an_agent(W1, "i-1", "10.0.0.7"), C1: an_agent(C1, "i-c", "10.0.0.1")})


def told(seen: Observed = SEEN, memory: Memory = MEMORY, node: NodeName = W1) -> Any:
    return json.loads(resource_config(node, Draft(seen, a_want(), memory, NOW)))


def test_it_has_the_format_that_scripts_for_hyperpod_read() -> None:
    config = told()
    assert config["ClusterConfig"] == {
        "ClusterArn": "arn:aws:sagemaker:local-cluster-1:000000000000:cluster/abc123",
        "ClusterName": "lab",
    }
    assert config["ClusterType"] == "Slurm"
    assert config["SlurmConfig"] == {"PrimaryControllerIp": "10.0.0.1", "SecondaryControllerIps": []}
    assert [group["Name"] for group in config["InstanceGroups"]] == ["controller", "login", "worker"]
    assert config["InstanceGroups"][2] == {
        "Name": "worker",
        "InstanceType": "ml.p5.48xlarge",
        "SlurmConfig": {"NodeType": "Compute", "PartitionNames": ["dev"]},
        "Instances": [
            {
                "InstanceName": "worker-1",
                "AgentIpAddress": "10.0.0.7",
                "CustomerIpAddress": "10.0.0.7",
                "InstanceId": "i-1",
            }
        ],
    }


def test_before_its_agent_speaks_the_provider_says_where_an_instance_is() -> None:
    instance = Instance(id=InstanceId("i-1"), node=W1, state=InstanceState.RUNNING, address="10.9.9.9")
    old = an_agent(W1, "i-0", "10.0.0.6")
    config = told(replace(SEEN, agents={W1: old}, instances={instance.id: instance}))
    assert config["InstanceGroups"][2]["Instances"][0]["CustomerIpAddress"] == "10.9.9.9"


def test_a_loopback_address_is_no_controller_for_others() -> None:
    """Nor is it one by another member of the same file: each node fills in how it reaches the head."""
    agents = {**SEEN.agents, C1: an_agent(C1, "i-c", "127.0.0.1")}
    config = told(replace(SEEN, agents=agents))
    assert config["SlurmConfig"]["PrimaryControllerIp"] == ""
    (controller,) = config["InstanceGroups"][0]["Instances"]
    assert (controller["AgentIpAddress"], controller["CustomerIpAddress"]) == ("", "")


def test_a_slot_without_an_instance_is_not_in_it() -> None:
    slots = {**MEMORY.slots, NodeName("worker-2"): a_slot(NodeName("worker-2"), "worker", "")}
    assert len(told(memory=replace(MEMORY, slots=MappingProxyType(slots)))["InstanceGroups"][2]["Instances"]) == 1


def test_an_instance_that_came_in_this_very_plan_is_in_it() -> None:
    draft = Draft(SEEN, a_want(), MEMORY, NOW)
    first = resource_config(W1, draft)
    assert resource_config(W1, draft) is first, "made once"
    new = NodeName("worker-2")
    draft.slots[new] = a_slot(new, "worker", "i-2")
    assert '"i-2"' in resource_config(new, draft)


def test_the_parameters_name_each_group_in_its_role() -> None:
    assert json.loads(provisioning_parameters(Draft(SEEN, a_want(), MEMORY, NOW))) == {
        "version": "1.0.0",
        "workload_manager": "slurm",
        "controller_group": "controller",
        "login_group": "login",
        "worker_groups": [{"instance_group_name": "worker", "partition_name": "dev"}],
    }
