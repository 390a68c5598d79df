"""A run grows into idle nodes, shrinks and loses a node: on each bed and each Slurm, without torch."""

import pytest

from steward_bed.faults import FaultKind
from tests.e2e.elastic_runs import GRACE_S, KEEP_EVERY, a_run
from tests.e2e.story import Story

KEPT_AWAY = "--exclude=n4,n5,n6"
PATIENCE_S = 90.0


@pytest.mark.timeout(400)
def test_a_run_grows_shrinks_grows_again_and_goes_on_when_a_node_is_lost(story: Story) -> None:
    run = a_run(story, "-N2", KEPT_AWAY)
    run.trains_at(2, deadline_s=PATIENCE_S)
    run.trains_at(3, after=1, deadline_s=PATIENCE_S)
    assert list(run.replicas().values()) == ["n3"], "it shares no node with the run"

    other = story.submit(story.script("other.sh", "sleep 5"), "-N1", "--exclusive", KEPT_AWAY)
    story.wait_end(other, 60.0)
    assert story.job(other).state == "COMPLETED"
    assert story.waited_s(other) <= GRACE_S + 5
    run.trains_at(2, after=2, deadline_s=PATIENCE_S)
    run.trains_at(3, after=3, deadline_s=PATIENCE_S)
    assert run.sizes == [2, 3, 2, 3]
    assert run.lost_steps() == 0

    story.hurt(FaultKind.KILL_NODE, "n3")
    run.trains_at(2, after=4, deadline_s=PATIENCE_S)
    assert run.lost_steps() <= KEEP_EVERY, "from the last checkpoint that it kept"
    story.bed.run(["scancel", str(run.job)])
    story.wait_end(run.job, 60.0)
