"""What befalls a cluster of groups, as data that Hypothesis can make and shrink."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from steward.model.capacity_policy import CapacityPolicy
from steward.model.group import BatchSize, Cluster, ClusterStatus, Goal, GroupStatus, Role
from steward.model.health import Advice, Severity
from steward.model.ids import NodeName
from steward.model.memory import Memory
from steward.model.order import AddNodes, NodeWish, Order, Refusal, TouchNodes, UpdateSoftware
from steward.model.repair_policy import LadderPolicy
from steward.model.resume_policy import ResumePolicy
from steward.model.setup import Lifecycle
from steward.policy.controls import pause, resume_actions
from steward.policy.orders import carry_out
from tests.builders.capacity import SCRIPTS, a_group
from tests.builders.want import a_want, acts, but
from tests.fakes.group_world import GroupWorld
from tests.fakes.head import Head
from tests.fakes.world_cluster import START
from tests.property.group_law import CLUSTER, GroupLaw

MOST = 5
QUICK = acts(
    settle_degraded_s=0.5,
    drain_deadline_s=20.0,
    launch_timeout_s=60.0,
    provision_timeout_s=30.0,
    verify_timeout_s=30.0,
    return_timeout_s=10.0,
    release_deadline_h=400.0 / 3600,
    capacity_backoff_s=(2.0, 4.0),
    agents_grace_s=5.0,
    breaker_min=6,
    node_repairs=50,
    budgets=LadderPolicy(hardware_repairs=50, replacements_per_day=50, cooldown_s=10.0, reboot_timeout_s=60.0),
    replacements_per_hour=100,
    correlated_min=20,
)
RULES: dict[str, Any] = {
    "minimum_timeout_h": 120.0 / 3600,
    "capacity_backoff_s": (2.0, 5.0),
    "quota_backoff_s": (5.0,),
    "script_backoff_s": (2.0, 5.0),
    "bootstrap_backoff_s": (2.0, 5.0),
    "other_backoff_s": (2.0, 5.0),
    "setup_timeout_s": 20.0,
    "launches_at_once": 3,
    "provider": "local",
    "owned_partitions": frozenset({"workers"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing that happens `after_s` the one before."""

    after_s: float
    kind: str
    size: int = 1

    @property
    def node(self) -> NodeName:
        return NodeName(f"workers-{self.size}")


def group_world(head: Head) -> GroupWorld:
    assert isinstance(head.world, GroupWorld)
    return head.world


def set_goal(head: Head, goal: Goal) -> None:
    """As UpdateCluster does it: a change of the minimum starts its clock anew."""

    def change(memory: Memory) -> Memory:
        group = memory.groups.get("workers")
        if group is None or group.status is GroupStatus.DELETING:
            return memory
        clock = head.world.now if group.status.is_gated and goal.minimum != group.goal.minimum else group.minimum_since
        changed = replace(group, goal=goal, minimum_since=clock)
        return replace(memory, groups=MappingProxyType({**memory.groups, "workers": changed}))

    head.order(change)


def _room(head: Head, turn: Turn) -> None:
    head.world.machines.room = turn.size


def _goal(head: Head, turn: Turn) -> None:
    set_goal(head, Goal(target=turn.size, minimum=min(2, turn.size)))


def _refuse(text: str) -> Callable[[Head, Turn], None]:
    return lambda head, turn: head.world.machines.refusals.extend([text] * turn.size)


def _bad_scripts(head: Head, turn: Turn) -> None:
    group_world(head).bad_scripts[turn.node] = 2 * turn.size


def _away(head: Head, turn: Turn) -> None:
    head.memory = None
    head.world.advance(10.0 * turn.size)
    head.world.restart_head()


def _kill_head(head: Head, turn: Turn) -> None:
    head.kill_at = head.point + turn.size


def _slurm_hangs(head: Head, turn: Turn) -> None:
    head.world.slurm_hangs_until = head.world.now + 4.0 * turn.size


def _provider_hangs(head: Head, turn: Turn) -> None:
    head.world.provider_hangs_until = head.world.now + 4.0 * turn.size


def _submit(head: Head, turn: Turn) -> None:
    job = head.world.submit(min(turn.size, 2), works_s=10.0 * turn.size, mode=None)
    head.world.slurm.jobs[job] = replace(head.world.slurm.jobs[job], partition="workers")


def _admin_drains(head: Head, turn: Turn) -> None:
    if turn.node in head.world.slurm.nodes:
        head.world.slurm.admin(turn.node, "DRAIN", "my own maintenance", head.world.now)


def _admin_undrains(head: Head, turn: Turn) -> None:
    node = head.world.slurm.nodes.get(turn.node)
    if node is not None and node.is_foreign:
        head.world.slurm.undrain(turn.node)


TURNS: dict[str, Callable[[Head, Turn], None]] = {
    "goal": _goal,
    "no minimum": lambda head, turn: set_goal(head, Goal(target=turn.size)),
    "room": _room,
    "capacity": _refuse("capacity: none left"),
    "quota": _refuse("quota: enough is enough"),
    "broken": _refuse("no answer"),
    "refused": _refuse("refused: no such image"),
    "bad scripts": _bad_scripts,
    "kill": lambda head, turn: head.world.machines.kill(turn.node),
    "freeze": lambda head, turn: head.world.machines.mute(turn.node, head.world.now),
    "agent dies": lambda head, turn: head.world.machines.restart_agent(turn.node, head.world.now, 3.0 * turn.size),
    "submit": _submit,
    "admin drains": _admin_drains,
    "admin undrains": _admin_undrains,
    "lose actions": lambda head, turn: head.mishaps.extend(["lost"] * turn.size),
    "refuse actions": lambda head, turn: head.mishaps.extend(["refused"] * turn.size),
    "double actions": lambda head, turn: head.mishaps.extend(["twice"] * turn.size),
    "Slurm hangs": _slurm_hangs,
    "provider hangs": _provider_hangs,
    "head killed": _kill_head,
    "head away": _away,
    "pause": lambda head, turn: head.order(pause),
    "go on": lambda head, turn: head.order(lambda memory: resume_actions(memory, head.world.now)),
}


def _order(make: Callable[[Turn], Order]) -> Callable[[Head, Turn], None]:
    """Through the door that the API uses; refused ones change nothing."""

    def give(head: Head, turn: Turn) -> None:
        memory = head.memory if head.memory is not None else head.store.load()
        with suppress(Refusal):
            carried = carry_out(make(turn), memory, head.world.seen(), head.want)
            head.order(lambda _: carried.memory)

    return give


def _touch(wish: NodeWish) -> Callable[[Turn], Order]:
    return lambda turn: TouchNodes(who="me", cluster="demo", wish=wish, logical_ids=(f"{CLUSTER}-{turn.size + 1}",))


def _update(turn: Turn) -> Order:
    size = BatchSize(count=turn.size)
    return UpdateSoftware(who="me", cluster="demo", groups=(("workers", f"v{turn.size}"),), batch=size)


def _bad_node(head: Head, turn: Turn) -> None:
    head.world.machines.fail_check(turn.node, Severity.FATAL, Advice.REPLACE, head.world.now, "gpu")


ORDERS: dict[str, Callable[[Head, Turn], None]] = {
    "add nodes": _order(lambda turn: AddNodes(who="me", cluster="demo", wishes=(("workers", turn.size),))),
    "delete node": _order(_touch(NodeWish.DELETE)),
    "replace node": _order(_touch(NodeWish.REPLACE)),
    "reboot node": _order(_touch(NodeWish.REBOOT)),
    "update": _order(_update),
    "xid": _bad_node,
}
TURNS |= ORDERS
turns = st.builds(
    Turn,
    after_s=st.sampled_from([0.0, 0.3, 1.0, 3.0, 8.0, 30.0]),
    kind=st.sampled_from(sorted(TURNS)),
    size=st.integers(1, MOST),
)
stories = st.lists(turns, min_size=1, max_size=12)


def turn(kind: str, size: int = 1, after_s: float = 0.0) -> Turn:
    return Turn(after_s=after_s, kind=kind, size=size)


def a_group_head(*, scripts: bool = True, target: int = 4, minimum: int = 2, **capacity: Any) -> Head:
    """A cluster with a controller and a group of workers was just created."""
    world = GroupWorld.with_partitions("workers")
    workers = a_group(target=target, minimum=minimum, lifecycle=SCRIPTS if scripts else Lifecycle(), created=START)
    controller = a_group("controller", 1, 1, role=Role.CONTROLLER, partition="", created=START)
    cluster = Cluster(name="demo", id=CLUSTER, created=START, status=ClusterStatus.CREATING)
    want = a_want(repair=QUICK, resume=ResumePolicy(), capacity=but(CapacityPolicy(), **{**RULES, **capacity}))
    head = Head(world=world, want=want, watch=GroupLaw(want))
    groups = MappingProxyType({"workers": workers, "controller": controller})
    head.order(lambda memory: replace(memory, cluster=cluster, groups=groups))
    return head


def tell(head: Head, story: list[Turn]) -> None:
    """Let it all happen, then let things calm down."""
    for one in story:
        head.run(one.after_s)
        TURNS[one.kind](head, one)
    head.run(30.0)
    world = group_world(head)
    for machine in list(world.machines.alive.values()):
        world.machines.unmute(machine.node)
    for node in list(world.slurm.nodes):
        if world.slurm.nodes[node].is_foreign:
            world.slurm.undrain(node)
    world.machines.refusals.clear()
    world.machines.room = None
    world.bad_scripts.clear()
    head.mishaps.clear()
    head.order(lambda memory: resume_actions(memory, head.world.now))
