"""Groups in every story: the law of each plan, and that they come to be as wanted once they can."""

from dataclasses import replace

from hypothesis import HealthCheck, Phase, example, given, settings

from steward.model.case import CaseStep
from steward.model.group import Goal, Group, GroupStatus, RolloutState
from steward.model.ids import NodeName
from steward.model.job import JobState
from steward.model.order import UpdateSoftware
from steward.model.partition import PartitionState
from steward.model.slot import Hitch, SlotStep
from steward.policy.controls import reset_breakers
from steward.policy.orders import carry_out
from tests.fakes.head import Head
from tests.property.group_stories import Turn, a_group_head, group_world, set_goal, stories, tell, turn

CALM_S = 1200.0
EXAMPLES = 40
TURN_HANDED_ON = [
    *(turn("admin drains", 1, 1.0), turn("kill", 1, 30.0), turn("replace node", 4, 1.0), turn("lose actions", 4, 1.0)),
    *(turn("head away", 4, 8.0), turn("Slurm hangs", 2), turn("bad scripts", 1), turn("quota", 2, 3.0)),
    *(turn("Slurm hangs", 3, 3.0), turn("delete node", 5, 1.0), turn("update", 1, 8.0), turn("goal", 3, 0.3)),
]
"""A slot that leaves ends the repair of its node, and another repair has its turn in the same plan."""
NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=NO_SHRINK)
@given(story=stories)
@example(story=[turn("room", 1), turn("goal", 5, 8.0), turn("head killed", 3), turn("no minimum", 1, 30.0)])
@example(story=[turn("bad scripts", 1), turn("broken", 5), turn("pause", 1, 3.0), turn("goal", 2, 3.0)])
@example(story=[turn("submit", 2, 30.0), turn("goal", 1, 3.0), turn("provider hangs", 3), turn("goal", 5)])
@example(story=TURN_HANDED_ON)
@example(story=[turn("lose actions", 3), turn("kill", 1, 8.0), turn("admin drains", 2), turn("double actions", 5)])
def test_every_story_keeps_the_law_and_ends_with_the_groups_as_wanted(story: list[Turn]) -> None:
    head = a_group_head()
    tell(head, story)
    assert comes_to_rest(head) == []


def comes_to_rest(head: Head) -> list[str]:
    """A person resets the breakers that tripped, as often as they do."""
    for _ in range(int(CALM_S / 20)):
        reset(head)
        head.run(20.0)
        if not restless(head):
            return []
    return restless(head)


def reset(head: Head) -> None:
    now = head.world.now
    head.order(lambda memory: reset_breakers(memory, "", now) if memory.breakers else memory)


def workers(head: Head) -> Group:
    assert head.memory is not None
    return head.memory.groups["workers"]


def restless(head: Head) -> list[str]:
    """What is not as the goals say, but for what waits for a person."""
    assert head.memory is not None
    memory, world = head.memory, group_world(head)
    held = {case.node for case in memory.cases.values() if case.step is CaseStep.HELD}
    found = [
        f"{slot.node} is at {slot.step.value}: {slot.trouble}"
        for slot in memory.slots.values()
        if slot.step is not SlotStep.SERVING
    ]
    for name, group in memory.groups.items():
        if group.status is not GroupStatus.IN_SERVICE:
            found.append(f"{name} is {group.status.value}: {group.message}")
    here = {machine.node for machine in world.machines.alive.values()}
    wanted = {slot.node for slot in memory.slots.values() if slot.group == "workers"}
    found += [f"{node} has no machine" for node in sorted(wanted - here - held)]
    found += [f"{node} has a machine and no slot" for node in sorted(here - wanted)]
    shown = world.slurm.shown_nodes(world.now)
    out = [n for n in sorted(wanted - held) if n not in shown or not (shown[n].is_schedulable or shown[n].is_foreign)]
    found += [f"{node} is not in service: {shown.get(node)}" for node in out]
    found += [f"{node} is known to Slurm and has no slot" for node in sorted(shown.keys() - wanted)]
    return found


def test_a_killed_head_never_makes_a_machine_twice_nor_loses_one() -> None:
    for point in range(1, 60, 4):
        head = a_group_head(target=2, minimum=1)
        head.kill_at = point
        head.run(40.0)
        assert comes_to_rest(head) == [], f"killed at {point}"
        assert set(head.world.machines.launched.values()) == {1}, f"killed at {point}"
        assert len(head.world.machines.launched) == 2, f"killed at {point}: {head.world.machines.launched}"


def test_a_head_killed_while_a_group_shrinks_ends_what_leaves_and_nothing_else() -> None:
    for point in range(1, 40, 3):
        head = a_group_head(scripts=False, target=4, minimum=1)
        head.run(30.0)
        set_goal(head, Goal(target=2))
        head.kill_at = head.point + point
        head.run(40.0)
        assert comes_to_rest(head) == [], f"killed at {point}"
        assert len(head.world.machines.launched) == 4, f"killed at {point}: {head.world.machines.launched}"
        assert len(head.world.machines.alive) == 2, f"killed at {point}"


def test_partial_capacity_is_used_and_the_rest_comes_when_there_is_room() -> None:
    head = a_group_head(minimum=3)
    head.world.machines.room = 2
    head.run(40.0)
    assert workers(head).status is GroupStatus.CREATING
    assert group_world(head).slurm.partitions["workers"].state is PartitionState.DOWN
    assert len(head.world.machines.alive) == 2
    head.world.machines.room = 3
    head.run(40.0)
    assert workers(head).status is GroupStatus.IN_SERVICE
    assert group_world(head).slurm.partitions["workers"].state is PartitionState.UP
    head.world.machines.room = None
    assert comes_to_rest(head) == []
    assert len(head.world.machines.alive) == 4


def test_a_new_group_whose_minimum_never_comes_goes_back_to_nothing() -> None:
    head = a_group_head(minimum=3)
    head.world.machines.room = 2
    head.run(200.0)
    group = workers(head)
    assert (group.goal, group.status) == (Goal(target=0), GroupStatus.IN_SERVICE)
    assert comes_to_rest(head) == []
    assert head.world.machines.alive == {}


def test_a_grown_group_whose_minimum_never_comes_goes_back_and_its_jobs_go_on() -> None:
    head = a_group_head(target=2, minimum=1)
    head.run(40.0)
    job = head.world.submit(2, works_s=300.0, mode=None)
    head.world.slurm.jobs[job] = replace(head.world.slurm.jobs[job], partition="workers")
    head.world.machines.room = 3
    head.run(5.0)
    set_goal(head, Goal(target=6, minimum=5))
    head.run(60.0)
    assert workers(head).status is GroupStatus.UPDATING
    assert group_world(head).slurm.partitions["workers"].state is PartitionState.DOWN
    head.run(100.0)
    assert workers(head).goal == Goal(target=2, minimum=1)
    assert head.world.slurm.jobs[job].state is JobState.RUNNING
    assert head.world.slurm.jobs[job].restarts == 0
    assert comes_to_rest(head) == []
    assert len(head.world.machines.alive) == 2


def update(head: Head, image: str) -> None:
    order = UpdateSoftware(who="ann", cluster="demo", groups=(("workers", ""),), image=image)
    head.order(lambda memory: carry_out(order, memory, head.world.seen(), head.want).memory)


def test_an_update_that_cures_what_failed_before_it_is_not_rolled_back_for_that() -> None:
    head = a_group_head(minimum=1)
    group_world(head).bad_scripts.update({NodeName(f"workers-{number}"): 1 for number in (1, 2, 3)})
    head.run(10.0)
    assert head.memory is not None
    assert [slot.hitch for slot in head.memory.slots.values()].count(Hitch.SCRIPT) == 3
    update(head, "ami-00000000000000001")
    head.run(120.0)
    group = workers(head)
    assert group.rollout is not None
    assert (group.rollout.state, group.rollout.failures) == (RolloutState.SUCCEEDED, 0)
    assert comes_to_rest(head) == []


def test_an_image_that_the_provider_refuses_is_rolled_back_and_the_group_can_be_updated_again() -> None:
    head = a_group_head(scripts=False, minimum=1)
    head.run(40.0)
    head.world.machines.refusals.extend(["refused: no such image"] * 3)
    update(head, "ami-0bad0bad0bad0bad0")
    head.run(120.0)
    group = workers(head)
    assert group.rollout is not None
    assert (group.rollout.state, group.version.image) == (RolloutState.ROLLBACK_COMPLETE, "")
    assert "no such image" in group.message
    assert comes_to_rest(head) == []
    update(head, "ami-00000000000000001")
    head.run(120.0)
    assert (workers(head).status, workers(head).version.image) == (GroupStatus.IN_SERVICE, "ami-00000000000000001")
    assert comes_to_rest(head) == []
