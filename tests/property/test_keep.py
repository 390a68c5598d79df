"""Kept nodes and hot spares, whatever happens and wherever the head dies: always freed, never beyond their bound, never
those of others, and no job loses its own place in the queue."""

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from steward.model.reservation import Reservation
from tests.builders.want import but
from tests.fakes.head import Head
from tests.property.stories import FEW, Blow, a_head, blow, opted_in, stories, tell

KEEP_S, OTHERS_S, CALM_S = 60.0, 20.0, 600.0
SHORT = but(FEW, keep_s=KEEP_S, keep_others_s=OTHERS_S, hot_spares=1)
COURSE = "course"


def a_full_head() -> Head:
    """Besides the two jobs of every story one that wants most of the cluster, and others that wait for a node each;
    somebody's own reservation begins later."""
    head = a_head(resume=SHORT, works_s=20.0)
    opted_in(head, head.world.submit(5, works_s=250.0))
    for _ in range(3):
        head.world.submit(1, mode=None, works_s=15.0)
    slurm, now = head.world.slurm, head.world.now
    node = min(slurm.nodes)
    slurm.kept[COURSE] = Reservation(name=COURSE, nodes=frozenset({node}), starts=now + 9000, ends=now + 9900)
    head.run(1.0)
    return head


@pytest.mark.long
@settings(
    max_examples=8,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(story=stories)
@example(story=[blow("kill", "n2", after_s=60.0), blow("head killed", size=3, after_s=0.3), blow("kill", "n3")])
@example(story=[blow("kill", "n3", after_s=60.0), blow("Slurm hangs", size=3), blow("kill", "n4", after_s=9.0)])
@example(
    story=[
        blow("head away", "n4", size=3, after_s=1.0),
        blow("provider hangs", "n5", size=3, after_s=20.0),
        blow("xid, reboot", "n6", after_s=21.0),
        blow("kill", "n5", size=2, after_s=20.0),
        blow("xid, reboot", "n4", size=3, after_s=8.0),
        blow("degraded", "n5", after_s=23.0),
    ]
)
@example(story=[blow("kill", "n4", size=3, after_s=3.0), blow("break launches", "n4", after_s=8.0)])
@example(story=[blow("provider hangs", size=3, after_s=60.0), *(blow("kill", f"n{i}", after_s=1.0) for i in (2, 3))])
def test_what_is_kept_is_always_freed_and_never_anybody_elses(story: list[Blow]) -> None:
    head = a_full_head()
    tell(head, story)
    head.run(CALM_S)

    slurm = head.world.slurm
    assert COURSE in slurm.kept
    assert [name for name, each in slurm.kept.items() if each.kept_for is not None] == []
    assert [job.id for job in slurm.jobs.values() if job.nice] == []
