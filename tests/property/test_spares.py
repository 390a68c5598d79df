"""A site with fixed machines keeps the law in every story, comes to rest, and survives kill -9 at any point."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from steward.model.case import CaseStep
from steward.model.health import Advice, Severity
from steward.model.ids import NodeName
from steward.model.job import JobState
from steward.model.mark import SPARE
from steward.policy.controls import resume_actions
from tests.fakes.branches import at_each
from tests.fakes.head import Head
from tests.fakes.world_cluster import START
from tests.property.stories import Blow, a_site_head, blow, dies_at, site_stories, tell

CALM_TURNS = 90
EXAMPLES = 40
NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)
LATEST = START + 200.0


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=NO_SHRINK)
@given(story=site_stories)
@example(story=[blow("kill", "n3"), blow("mend", "n3", after_s=20.0)])
@example(story=[blow("kill", "n3"), blow("kill", "s1", after_s=20.0), blow("mend", "n3", after_s=20.0)])
@example(
    story=[blow("kill", "n3"), blow("admin drains", "n3", after_s=20.0), blow("admin undrains", "n3", after_s=20.0)]
)
@example(story=[blow("kill", "n3"), blow("kill", "n4", after_s=20.0), blow("kill", "n5", after_s=20.0)])
@example(story=[blow("kill", "n3"), blow("Action:Reboot", "n3", after_s=20.0)])
@example(story=[blow("xid, reboot", "n3"), blow("head killed", "n3", size=3)])
def test_every_story_of_a_site_keeps_the_law_and_comes_to_rest(story: list[Blow]) -> None:
    head = a_site_head()
    tell(head, story)
    for turn in range(CALM_TURNS):
        head.run(20.0)
        if not restless(head):
            return
        if turn % 10 == 9:
            assert head.memory is not None
            head.memory = resume_actions(head.memory, head.world.now)
    assert restless(head) == []


def restless(head: Head) -> list[str]:
    """What is neither as it should be nor left to a person."""
    assert head.memory is not None
    shown, world, spares = head.world.slurm.shown_nodes(head.world.now), head.world, head.want.spares
    cases = [case for case in head.memory.cases.values() if case.is_open]
    held = {case.node for case in cases if case.step is CaseStep.HELD}
    waits = {
        case.node for case in cases if case.step is CaseStep.LAUNCH and case.tries
    }  # for a spare that is not there
    lent = {loan.node: loan.instead_of for loan in world.machines.loans.values()}
    found = [f"case {c.id} of {c.node} is stuck at {c.step.value}" for c in cases if c.node not in held | waits]
    for name, node in shown.items():
        serves = node.is_schedulable and world.is_alive(name)
        if name in spares and name not in lent:
            serves = node.mark == SPARE
        if not serves and name not in held | waits and not node.is_foreign:
            found.append(f"{name} is not as it should be: {node}")
    found += [f"{spare} serves for {node}, which serves" for spare, node in lent.items() if node and is_in(head, node)]
    found += [f"two spares serve for {node}" for node in set(lent.values()) if list(lent.values()).count(node) > 1]
    return found + [f"ask {ask} was never answered" for ask in world.asks]


def is_in(head: Head, node: NodeName) -> bool:
    return head.world.slurm.shown_nodes(head.world.now)[node].is_schedulable


def _kill(head: Head) -> None:
    head.world.machines.kill(NodeName("n3"))


def _xid_reboot(head: Head) -> None:
    head.world.machines.fail_check(NodeName("n6"), Severity.FATAL, Advice.REBOOT, head.world.now, "kernel_log")


def _refused(head: Head) -> None:
    head.world.machines.refusals.append("capacity: lent already")
    _kill(head)


def _tell(fault: Callable[[Head], None], dies: Callable[[], bool]) -> tuple[object, ...]:
    """The fault; a person mends the node that was left to him; all comes to rest."""
    head = a_site_head(spares=1, works_s=8.0)
    dies_at(head, dies)
    fault(head)
    head.run(12.0)
    for node in (NodeName("n3"), NodeName("n6")):
        if not head.world.is_alive(node):
            head.world.machines.mend(node, head.world.now)
            head.run(5.0)
            head.world.slurm.undrain(node)
    while head.world.now < LATEST and (head.memory is None or restless(head) or _unfinished(head)):
        head.run(1.0)
    return _end(head)


def _unfinished(head: Head) -> bool:
    return not all(job.state is JobState.COMPLETED for job in head.world.slurm.jobs.values())


def _end(head: Head) -> tuple[object, ...]:
    machines = head.world.machines
    in_service = sorted(name for name in head.world.slurm.nodes if is_in(head, name))
    return in_service, restless(head), _unfinished(head), dict(machines.loans), machines.made


@pytest.mark.long
@pytest.mark.parametrize("fault", [_kill, _xid_reboot, _refused], ids=lambda fault: fault.__name__.strip("_"))
def test_a_head_killed_at_any_journal_point_comes_to_the_same_end(fault: Callable[[Head], None]) -> None:
    end, killed = at_each(lambda dies: _tell(fault, dies))
    assert end == ([f"n{i}" for i in range(1, 7)], [], False, {}, 7)
    assert killed
    assert {at: seen for at, seen in enumerate(killed, 1) if seen != end} == {}
