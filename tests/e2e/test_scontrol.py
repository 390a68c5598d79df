"""Slurm's own commands hang: nobody is harmed."""

from steward_bed.faults import FaultKind
from tests.e2e.story import Story


def test_a_hung_scontrol_harms_nobody(story: Story) -> None:
    script = story.script("job.sh", "sleep 2; exit 4\n")
    story.hurt(FaultKind.HANG_SCONTROL)
    try:
        job = story.submit(script, "--auto-resume=1", "-N1")
        seen = story.wait_end(job, 120.0)
        assert (seen.state, seen.exit_code) == ("FAILED", "4:0")
    finally:
        story.hurt(FaultKind.MEND_SCONTROL)
    assert all("DRAIN" not in story.node_state(node) for node in ("n1", "n2", "n3", "n4", "n5", "n6"))
