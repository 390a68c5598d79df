"""Every law holds for a head that is shown all of Slurm once a minute, and in between just what it looks at."""

from hypothesis import HealthCheck, example, given, settings

from steward.model.ids import NodeName
from steward.model.job import JobState
from steward.model.mark import Mark
from tests.fakes.head import Head
from tests.property.stories import Blow, a_head, blow, stories, tell
from tests.property.test_stories import NO_SHRINK, comes_to_rest

MINUTE_S = 60.0
EXAMPLES = 40


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=NO_SHRINK)
@given(story=stories)
@example(story=[blow("kill", "n1"), blow("admin drains", "n1", after_s=0.3), blow("xid", "n4", after_s=3.0)])
@example(story=[blow("admin drains", "n4", after_s=3.0), blow("xid", "n4", after_s=1.0)])
@example(story=[blow("xid", "n2"), blow("cancel", after_s=0.3), blow("submit", after_s=1.0), blow("kill", "n3")])
@example(story=[blow("Slurm hangs", size=3), blow("kill", "n1"), blow("xid", "n4", after_s=3.0)])
@example(story=[blow("kill", "n2"), blow("kill", "n4"), blow("Slurm hangs", after_s=0.3)])
@example(story=[blow("admin drains", "n3"), blow("freeze", "n3"), blow("Action:Replace", "n6", after_s=1.0)])
@example(story=[blow("kill", f"n{i}") for i in (1, 2, 3)])
@example(story=[blow("submit, with steps"), blow("hang", "n5", after_s=8.0), blow("head killed", after_s=6.0, size=3)])
def test_every_story_keeps_the_law_though_most_of_the_picture_is_a_minute_old(story: list[Blow]) -> None:
    head = a_head(sweep_s=MINUTE_S)
    tell(head, story)
    assert comes_to_rest(head) == []


def a_running_job(head: Head) -> frozenset[NodeName]:
    """The nodes of one."""
    return next(job.nodes for job in head.world.slurm.jobs.values() if job.state is JobState.RUNNING)


def test_a_node_that_an_admin_took_out_after_the_sweep_is_left_alone() -> None:
    head = a_head(sweep_s=MINUTE_S)
    name = min(a_running_job(head))
    head.world.slurm.admin(name, "DRAIN", "my own maintenance", head.world.now)
    head.world.machines.kill(name)
    head.run(30.0)
    node = head.world.slurm.nodes[name]
    assert node.reason is not None
    assert node.reason.text == "my own maintenance"
    assert not [action for action in head.done if action.key.startswith(("drain:", "down:"))]


def test_a_lost_node_is_dealt_with_as_soon_as_on_a_site_that_is_swept_all_the_time() -> None:
    took = []
    for sweep_s in (None, MINUTE_S):
        head = a_head(sweep_s=sweep_s)
        name = max(a_running_job(head))
        head.world.machines.kill(name)
        began = head.world.now
        while head.world.slurm.nodes[name].mark is None:
            head.run(0.1)
        took.append(round(head.world.now - began, 1))
        assert isinstance(head.world.slurm.nodes[name].mark, Mark)
    assert took[1] <= took[0]
