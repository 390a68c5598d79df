"""Groups on nodes of a site's own pool: what serves is adopted with its jobs, the rest launched, others' left."""

from dataclasses import replace
from types import MappingProxyType

from steward.model.action import DownNode, DrainNode, LaunchInstance, TerminateInstance
from steward.model.capacity_policy import Pool
from steward.model.group import Goal
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.model.job import JobState
from steward.model.memory import Memory
from steward.model.node import Node, NodeBase
from steward.model.observed import Observed
from steward.model.slot import SlotStep
from tests.fakes.group_world import GroupWorld
from tests.fakes.head import Head
from tests.property.group_law import GroupLaw
from tests.property.group_stories import a_group_head, set_goal

NAMES = tuple(NodeName(f"b{i}") for i in range(1, 6))


def a_pool_head(running: int, target: int, *, scripts: bool = False) -> Head:
    """Nodes b1..b5 of slurm.conf; the first ones run and serve, the others have no machine."""
    pool = Pool(group="workers", nodes=NAMES)
    head = a_group_head(scripts=scripts, target=target, minimum=1, pools={"workers": pool})
    slots = MappingProxyType({name: Slot(node=name, group="workers") for name in NAMES})
    head.want = replace(head.want, slots=slots)
    head.watch = PoolLaw(head.want)
    for name in NAMES[:running]:
        head.world.machines.add(name, "", head.world.now - 100, boot_s=0.0)
    for name in NAMES:
        machine = head.world.machines.of(name)
        started = machine.ready_at if machine else None
        node = Node(name=name, base=NodeBase.IDLE, partitions=frozenset({"workers"}), slurmd_started=started)
        head.world.slurm.nodes[name] = node
    head.world.machines.launched.clear()
    head.world.advance(1.0)
    return head


class PoolLaw(GroupLaw):
    """Machines that ran before may be ended when their adopted slot goes."""

    def _ends_its_own(self, action: TerminateInstance, seen: Observed, memory: Memory) -> None:
        owner = memory.slots.get(action.node)
        assert owner is not None
        assert owner.instance == action.instance or seen.instances[action.instance].token.startswith(owner.logical)


def in_service(head: Head) -> list[str]:
    assert head.memory is not None
    return sorted(slot.node for slot in head.memory.slots.values() if slot.step is SlotStep.SERVING)


def test_nodes_that_serve_are_adopted_with_their_jobs_and_the_rest_is_launched() -> None:
    head = a_pool_head(running=2, target=4)
    job = head.world.submit(2, works_s=60.0, mode=None)
    head.world.slurm.jobs[job] = replace(head.world.slurm.jobs[job], partition="workers")
    head.world.advance(1.0)
    head.run(30.0)
    assert in_service(head) == ["b1", "b2", "b3", "b4", "controller-1"]
    launched = {action.slot.node for action in head.done if isinstance(action, LaunchInstance)}
    assert launched == {"b3", "b4"}
    held = {action.node for action in head.done if isinstance(action, DrainNode | DownNode)}
    assert held == {"b3", "b4"}
    head.run(60.0)
    assert (head.world.slurm.jobs[job].state, head.world.slurm.jobs[job].restarts) == (JobState.COMPLETED, 0)


def test_a_node_of_the_pool_that_no_slot_took_is_left_alone() -> None:
    head = a_pool_head(running=5, target=2)
    head.run(40.0)
    assert in_service(head) == ["b1", "b2", "controller-1"]
    assert not [action for action in head.done if isinstance(action, TerminateInstance | DrainNode)]


def test_scripts_on_an_adopted_node_wait_until_its_jobs_are_over() -> None:
    head = a_pool_head(running=1, target=1, scripts=True)
    job = head.world.submit(1, works_s=60.0, mode=None)
    head.world.slurm.jobs[job] = replace(head.world.slurm.jobs[job], partition="workers")
    head.world.advance(1.0)
    head.run(50.0)
    world = head.world
    assert isinstance(world, GroupWorld)
    assert (in_service(head), world.setups) == (["controller-1"], {})
    head.run(60.0)
    assert in_service(head) == ["b1", "controller-1"]
    assert world.slurm.jobs[job].state is JobState.COMPLETED
    assert list(world.setups.values()) == [1]


def test_what_left_the_pool_comes_back_with_a_new_machine() -> None:
    head = a_pool_head(running=3, target=3)
    head.run(20.0)
    set_goal(head, Goal(target=1))
    head.run(40.0)
    assert len(head.world.machines.alive) == 1
    set_goal(head, Goal(target=3))
    head.run(60.0)
    assert len(in_service(head)) == 4
    assert len(head.world.machines.alive) == 3
