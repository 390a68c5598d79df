"""P1 to P6 and P8 to P12 on every plan of every story, and that the world comes to rest (P3)."""

from hypothesis import HealthCheck, Phase, given, settings

from steward.model.case import Step
from steward.model.ids import NodeName
from steward.model.job import JobState
from tests.fakes.head import Head
from tests.property.stories import Blow, a_head, stories, tell

CALM_S = 900.0
EXAMPLES = 60
NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), phases=NO_SHRINK)
@given(story=stories)
def test_every_story_keeps_the_law_and_comes_to_rest(story: list[Blow]) -> None:
    head = a_head()
    tell(head, story)
    assert comes_to_rest(head) == []


def comes_to_rest(head: Head) -> list[str]:
    """What is still restless after a long calm time; stops as soon as nothing is."""
    for _ in range(int(CALM_S / 20)):
        head.run(20.0)
        if not restless(head):
            return []
    return restless(head)


def restless(head: Head) -> list[str]:
    """What is neither as it should be nor waiting for a person."""
    assert head.memory is not None
    found = []
    held = {case.node for case in head.memory.cases.values() if case.step is Step.HELD}
    open_cases = [c for c in head.memory.cases.values() if c.is_open and c.step is not Step.HELD]
    found += [f"case {c.id} of {c.node} is stuck at {c.step.value}" for c in open_cases]
    stopped = bool(head.memory.breakers)
    shown = head.world.slurm.shown_nodes()
    for name, node in shown.items():
        sound = node.is_schedulable and head.world.is_alive(name)
        if not sound and name not in held and not node.is_foreign and not stopped:
            found.append(f"{name} is out of service and nobody cares: {node}")
    for machines in head.world.machines.launched.items():
        if machines[1] > 1:
            found.append(f"token {machines[0]} made {machines[1]} machines")
    nodes_used = [m.node for m in head.world.machines.alive.values()]
    found += [f"two machines serve {n}" for n in set(nodes_used) if nodes_used.count(n) > 1]
    found += [f"ask {ask} was never answered" for ask in head.world.asks]
    active = (JobState.RUNNING,)
    running = [j for j in head.world.slurm.jobs.values() if j.state in active and not dead_nodes(head, j.nodes)]
    found += [f"job {j.id} still runs" for j in running if not stopped]
    return found


def dead_nodes(head: Head, nodes: frozenset[NodeName]) -> bool:
    return any(not head.world.is_alive(name) for name in nodes)
