"""`an_api_cluster()`: a healthy cluster of the API with a controller and workers; each method changes one thing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steward.model.capacity_policy import CapacityPolicy
from steward.model.case import Case, CaseStep, Trigger
from steward.model.desired import Desired
from steward.model.events import Event
from steward.model.group import Cluster, ClusterStatus, Goal, Group, GroupStatus, Operation, Role
from steward.model.health import Incarnation
from steward.model.ids import BootId, CaseId, InstanceId
from steward.model.instance import Instance, InstanceState
from steward.model.memory import Memory
from steward.model.node import Node, NodeBase
from steward.model.observed import AgentView, Observed
from steward.model.slot import SlotRecord, SlotStep
from steward.model.why import Why
from tests.builders.picture import T0, n
from tests.builders.want import a_want, but

ID = "abcdef012345"
ARN = f"arn:aws:sagemaker:local-cluster-1:000000000000:cluster/{ID}"
ROLE = "arn:aws:iam::000000000000:role/any"
WHY = Why(rule="test", text="for the test")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPicture:
    """What a head with an API cluster sees and remembers."""

    seen: Observed
    memory: Memory
    want: Desired
    events: tuple[Event, ...] = ()

    def slot(self, node: str, **fields: Any) -> "ApiPicture":
        slots = {**self.memory.slots, n(node): replace(self.memory.slots[n(node)], **fields)}
        return self.remember(slots=slots)

    def group(self, group: Group) -> "ApiPicture":
        """Add or replace it."""
        return self.remember(groups={**self.memory.groups, group.name: group})

    def change_group(self, name: str, **fields: Any) -> "ApiPicture":
        return self.group(replace(self.memory.groups[name], **fields))

    def cluster(self, **fields: Any) -> "ApiPicture":
        assert self.memory.cluster is not None
        return self.remember(cluster=replace(self.memory.cluster, **fields))

    def node(self, name: str, **fields: Any) -> "ApiPicture":
        return self.see(nodes={**self.seen.nodes, n(name): replace(self.seen.nodes[n(name)], **fields)})

    def without_node(self, name: str) -> "ApiPicture":
        return self.see(nodes={key: node for key, node in self.seen.nodes.items() if key != name})

    def agent(self, name: str, **fields: Any) -> "ApiPicture":
        return self.see(agents={**self.seen.agents, n(name): replace(self.seen.agents[n(name)], **fields)})

    def repaired(self, name: str, step: CaseStep = CaseStep.LAUNCH) -> "ApiPicture":
        case = Case(
            id=CaseId("c-1"),
            node=n(name),
            check="lost",
            trigger=Trigger.LOST,
            step=step,
            opened=T0,
            entered=T0,
            why=Why(rule="lost", text="its agent is gone"),
        )
        return self.remember(cases={case.id: case})

    def operation(self, id: str, at: float = T0, **fields: Any) -> "ApiPicture":
        operation = Operation(id=id, at=at, **fields)
        return self.remember(operations={**self.memory.operations, id: operation})

    def happened(self, kind: str, text: str = "it happened", **fields: Any) -> "ApiPicture":
        return replace(self, events=(*self.events, Event(at=T0 + len(self.events), kind=kind, text=text, **fields)))

    def see(self, **fields: Any) -> "ApiPicture":
        return replace(self, seen=replace(self.seen, **fields))

    def remember(self, **fields: Any) -> "ApiPicture":
        return replace(self, memory=replace(self.memory, **fields))


def an_api_cluster(workers: int = 3) -> ApiPicture:
    """`controller-1`, and `workers-1` ... in service, each with node, agent and instance."""
    nodes = [f"workers-{number}" for number in range(1, workers + 1)]
    slots = [a_slot("controller-1", "controller", 0), *(a_slot(node, "workers", i) for i, node in enumerate(nodes, 1))]
    groups = [a_group("controller", role=Role.CONTROLLER, count=1), a_group("workers", count=workers, partition="dev")]
    return ApiPicture(
        seen=_seen(nodes),
        memory=Memory(
            cluster=Cluster(name="ml-cluster", id=ID, created=T0 - 100, status=ClusterStatus.IN_SERVICE, serial=100),
            groups={group.name: group for group in groups},
            slots={slot.node: slot for slot in slots},
        ),
        want=a_want(capacity=but(CapacityPolicy(), provider="local", slurm_include=Path("/etc/slurm/steward.conf"))),
    )


def nothing() -> ApiPicture:
    """A head without an API cluster."""
    return replace(an_api_cluster(), memory=Memory())


def _seen(nodes: list[str]) -> Observed:
    return Observed(
        at=T0,
        nodes={
            n(node): Node(name=n(node), base=NodeBase.IDLE, address=_address(node), slurmd_started=T0 - 20)
            for node in nodes
        },
        agents={n(node): _agent(node) for node in nodes},
        instances={InstanceId(f"box/{node}"): _instance(node) for node in nodes},
        agents_since=T0 - 1000,
    )


def a_group(name: str, *, role: Role = Role.COMPUTE, count: int = 2, minimum: int = 0, **fields: Any) -> Group:
    default: Mapping[str, Any] = {
        "types": ("ml.c5.large",),
        "status": GroupStatus.IN_SERVICE,
        "created": T0 - 100,
        "extras": f'{{"ExecutionRole": "{ROLE}"}}',
    }
    goal = Goal(target=count, minimum=minimum)
    return Group(name=name, role=role, goal=goal, **{**default, "good": goal, **fields})


def a_slot(node: str, group: str, number: int, **fields: Any) -> SlotRecord:
    default: Mapping[str, Any] = {
        "step": SlotStep.SERVING,
        "entered": T0 - 50,
        "created": T0 - 90 + number,
        "instance": InstanceId(f"box/{node}"),
        "launched": T0 - 80 + number,
        "served": T0 - 50,
        "has_served": True,
    }
    return SlotRecord(node=n(node), group=group, logical=f"{ID}-{number}", why=WHY, **{**default, **fields})


def _agent(node: str) -> AgentView:
    who = Incarnation(instance=InstanceId(f"box/{node}"), boot=BootId("boot-1"))
    return AgentView(
        node=n(node), incarnation=who, connected=True, last_heard=T0, reported_at=T0, address=_address(node)
    )


def _instance(node: str) -> Instance:
    return Instance(id=InstanceId(f"box/{node}"), node=n(node), state=InstanceState.RUNNING, launched=T0 - 80)


def _address(node: str) -> str:
    return f"10.0.0.{node.rpartition('-')[2]}"
