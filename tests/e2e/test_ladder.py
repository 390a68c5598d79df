"""The ladder on real nodes: drains of Slurm's own are looked into; a light repair that fails goes up a rung."""

import time

from steward_bed.faults import FaultKind
from tests.e2e.story import Story

KILL = "Kill task failed (JobId=7 StepId=0)"
XID_46 = "NVRM: Xid (PCI:0000:3b:00): 46, pid='<unknown>', name=<unknown>, GPU stopped processing"


def test_a_node_that_slurm_drained_is_given_back_each_time_when_its_checks_pass(story: Story) -> None:
    """A job's processes that Slurm cannot end are no fault of the machine, how often they may come: no reboot."""
    before = story.instance("n5")
    for _ in range(3):
        began = time.time()
        story.bed.run(["scontrol", "update", "nodename=n5", "state=drain", f"reason={KILL}"])
        case = story.wait_case("n5", "closed", 60.0, since=began)
        assert (case["check"], case["rung"]) == ("slurm.kill_task_failed", "none")
        story.wait("it takes jobs again", lambda: story.node_state("n5") == "IDLE")
    assert story.instance("n5") == before


def test_a_persons_own_words_keep_the_node_out(story: Story) -> None:
    began = time.time()
    story.bed.run(["scontrol", "update", "nodename=n5", "state=drain", "reason=Kill task failed, I look into it"])
    marker = story.hurt(FaultKind.FAIL_CHECK, "n4", "to see that time has passed")
    story.wait_case("n4", "closed", 60.0, since=marker)
    assert story.cases("n5", since=began) == []
    assert "DRAIN" in story.node_state("n5")
    story.bed.run(["scontrol", "update", "nodename=n5", "state=resume"])


def test_a_reset_that_the_node_cannot_do_is_followed_by_a_reboot(story: Story) -> None:
    """There is no GPU on the bed: the agent says so at once."""
    hurt_at = story.hurt(FaultKind.KERNEL_LOG, "n5", XID_46)
    case = story.wait_case("n5", "closed", 90.0, since=hurt_at)
    assert case["rung"] == "reboot"
    steps = [event["kind"] for event in story.events(since=hurt_at) if event["node"] == "n5"]
    assert steps.index("case.mend") < steps.index("case.launch")
    story.wait("it takes jobs again", lambda: story.node_state("n5") == "IDLE")
