"""A head with API groups, and what befalls their slots, in the words of `picture`."""

from dataclasses import replace
from typing import Any

from steward.model.agent_action import Action
from steward.model.capacity_policy import CapacityPolicy
from steward.model.group import Cluster, ClusterStatus, Goal, Group, GroupStatus, Role
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, Key
from steward.model.instance import Instance, InstanceState
from steward.model.memory import Memory
from steward.model.node import Node, NodeBase, Reason
from steward.model.observed import AgentView, Freshness, Observed
from steward.model.setup import Lifecycle, SetupReport, SetupState
from steward.model.slot import SlotRecord, SlotStep
from steward.model.why import Why
from tests.builders.picture import T0, Picture, n
from tests.builders.want import a_want, acts, but

SCRIPTS = Lifecycle(source="file:///scripts", on_create="on_create.sh")


def a_group(name: str = "workers", target: int = 4, minimum: int = 0, **fields: Any) -> Group:
    default: dict[str, Any] = {
        "role": Role.COMPUTE,
        "types": ("ml.g5.xlarge",),
        "status": GroupStatus.CREATING,
        "created": T0,
        "partition": name,
        "minimum_since": T0,
    }
    return Group(name=name, goal=Goal(target=target, minimum=minimum), **{**default, **fields})


def an_empty_head(*groups: Group, cluster: dict[str, Any] | None = None, **capacity: Any) -> Picture:
    """No machine, no node; the cluster and its groups were just asked for."""
    fields: dict[str, Any] = {"name": "demo", "id": "abcdef012345", "created": T0, "status": ClusterStatus.CREATING}
    seen = Observed(at=T0, agents_since=T0 - 10_000, provider=Freshness.FRESH)
    want = a_want(repair=acts(settle_degraded_s=0.0), capacity=but(CapacityPolicy(), **capacity))
    memory = Memory(
        cluster=Cluster(**{**fields, **(cluster or {})}), groups={g.name: g for g in groups or (a_group(),)}
    )
    return Picture(seen=seen, want=want, memory=memory)


def slot(picture: Picture, node: str) -> SlotRecord:
    return picture.memory.slots[n(node)]


def group(picture: Picture, name: str = "workers") -> Group:
    return picture.memory.groups[name]


def with_group(picture: Picture, name: str = "workers", **fields: Any) -> Picture:
    """Somebody changed the group."""
    groups = {**picture.memory.groups, name: replace(picture.memory.groups[name], **fields)}
    return replace(picture, memory=replace(picture.memory, groups=groups))


NODE = "workers-1"
LOGICAL = "abcdef012345-1"
MARK = "steward:setup:hold:abcdef012345"


def a_slot_at(step: SlotStep, *, slot: dict[str, Any] | None = None, **rules: Any) -> Picture:
    """One worker at a step, entered ten seconds ago: its instance runs, its agent speaks, Slurm holds its node."""
    whole = an_empty_head(a_group(target=1, status=GroupStatus.IN_SERVICE, good=Goal(target=1)), **rules)
    why = Why(rule="group.target", text="group workers shall have 1 instances")
    fields: dict[str, Any] = {"entered": T0 - 10, "created": T0 - 100, "why": why, "instance": InstanceId("i-1")}
    record = SlotRecord(node=n(NODE), group="workers", logical=LOGICAL, step=step, **{**fields, **(slot or {})})
    who = Incarnation(instance=InstanceId("i-1"), boot=BootId("b-1"))
    reason = None if step is SlotStep.SERVING else Reason(text=MARK, at=T0 - 50)
    node = Node(
        name=n(NODE),
        base=NodeBase.IDLE,
        flags=frozenset({"DYNAMIC_NORM"} | ({"DRAIN"} if reason else set())),
        reason=reason,
        partitions=frozenset({"workers"}),
        slurmd_started=T0 - 20,
    )
    machine = Instance(id=InstanceId("i-1"), node=n(NODE), state=InstanceState.RUNNING, token=f"{LOGICAL}-0")
    picture = whole.see(
        nodes={n(NODE): node},
        agents={n(NODE): AgentView(node=n(NODE), incarnation=who, connected=True, last_heard=T0)},
        instances={machine.id: machine},
    )
    return replace(picture, memory=replace(picture.memory, slots={n(NODE): record}))


def with_slot(picture: Picture, **fields: Any) -> Picture:
    """Its record is another one."""
    slots = {n(NODE): replace(picture.memory.slots[n(NODE)], **fields)}
    return replace(picture, memory=replace(picture.memory, slots=slots))


def nothing_there(picture: Picture) -> Picture:
    """No instance, no agent, no node."""
    return picture.see(nodes={}, agents={}, instances={})


def asked(picture: Picture, key: str, error: str = "", ago_s: float = 5.0) -> Picture:
    """An action was asked for, and failed where an error is given."""
    memory = replace(picture.memory, asked={**picture.memory.asked, Key(key): picture.now - ago_s})
    failures = {**picture.seen.failures, **({key: error} if error else {})}
    return replace(picture, memory=memory).see(failures=failures)


def reported(picture: Picture, token: str, state: SetupState, **fields: Any) -> Picture:
    """The agent tells how the scripts stand."""
    return picture.agent(NODE, setup=SetupReport(token=token, state=state, **fields))


def planned(picture: Picture) -> list[type[Action]]:
    """The kinds of its actions, in order."""
    return [type(action) for action in picture.plan().actions]


def the(kind: type[Action], picture: Picture) -> Any:
    """The one action of that kind."""
    found = [action for action in picture.plan().actions if isinstance(action, kind)]
    assert len(found) == 1, picture.plan().actions
    return found[0]
