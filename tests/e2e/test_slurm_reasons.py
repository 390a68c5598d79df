"""Slurm's own reasons, one after the other on a real node: what Steward does, whom it names, how it ends.

Where a reason cannot be provoked here it is written as slurmctld would write it, as SlurmUser; docs/health.md has the
table. A failing Prolog is in test_launch.py, a killed task in test_ladder.py.
"""

import time

import pytest

from steward_bed.bed import Backend
from tests.e2e.changed_conf import changed_conf
from tests.e2e.story import Story

REPAIR_S = 120.0
GIVEN_BACK = {
    "Job step not running (JobId=7 StepId=0)": "slurm.step_not_running",
    "reboot complete": "slurm.reboot_complete",
    "Node unexpectedly rebooted": "slurm.rebooted",
    "batch job complete failure": "slurm.batch_complete",
    "SlurmdSpoolDir is full": "slurm.spool_full",
    "Epilog error": "slurm.epilog_error",
    "Prolog/Epilog failure": "slurm.prolog_epilog",
}
REBOOTED = {
    "switch_g_job_postfini failed": "slurm.switch_postfini",
    "Low RealMemory (reported:3900 < 100.00% of configured:4096)": "slurm.low_memory",
    "gres/gpu count reported lower than configured (4 < 8)": "slurm.gres_lower",
    "Duplicate jobid": "slurm.duplicate_jobid",
}
"""Of a duplicate job id because the agents of these nodes may restart no slurmd: the next rung is due."""
FOR_A_PERSON = (
    "Job env setup error",
    "Bad core count",
    "CoreSpec differ",
    "NO NETWORK ADDRESS FOUND",
    "Could not unpack gres data",
    "gres/gpu type (h100) reported but not configured",
    "Failed to set node feature(s): x",
)
PASSES = ("reboot requested", "POWER_DOWN_ASAP")


def drain(story: Story, node: str, reason: str) -> float:
    """As SlurmUser: root on the local bed. The head has seen the node in service."""
    story.wait("its checks passed", lambda: "HealthCheck:Passed" in story.node_field(node, "ActiveFeatures"))
    began = time.time()
    as_slurm = ["runuser", "-u", "slurm", "--"] if story.bed.spec.backend is Backend.DOCKER else []
    story.bed.run([*as_slurm, "scontrol", "update", f"nodename={node}", "state=drain", f"reason={reason}"])
    return began


@pytest.mark.parametrize(("reason", "check"), GIVEN_BACK.items())
def test_a_node_that_is_sound_is_given_back_as_the_same_machine(story: Story, reason: str, check: str) -> None:
    before, began = story.instance("n5"), drain(story, "n5", reason)
    case = story.wait_case("n5", "closed", REPAIR_S, since=began)
    assert (case["check"], case["rung"]) == (check, "none")
    story.wait("it takes jobs again", lambda: story.node_state("n5") == "IDLE")
    assert story.instance("n5") == before


@pytest.mark.parametrize(("reason", "check"), REBOOTED.items())
def test_a_node_that_needs_a_reboot_is_back_after_it(story: Story, reason: str, check: str) -> None:
    before, began = story.instance("n5"), drain(story, "n5", reason)
    case = story.wait_case("n5", "closed", REPAIR_S, since=began)
    assert (case["check"], case["rung"], case["why"]["rule"]) == (check, "reboot", "node.slurm_reason")
    story.wait("it takes jobs again", lambda: story.node_state("n5") == "IDLE")
    assert story.instance("n5") == before


@pytest.mark.parametrize("reason", FOR_A_PERSON)
def test_what_a_person_must_mend_is_told_once_and_left(story: Story, reason: str) -> None:
    began = drain(story, "n4", reason)
    told = story.wait("it is told", lambda: story.events("node.slurm_reason", since=began), 30.0)
    assert isinstance(told, list)
    assert [(event["node"], "a person must look" in event["text"]) for event in told] == [("n4", True)]
    assert story.cases("n4", since=began) == []
    assert "DRAIN" in story.node_state("n4")
    story.wait("its author is named", lambda: "by Slurm itself" in story.explain("n4"))
    assert "person or tool" not in story.explain("n4")
    story.bed.run(["scontrol", "update", "nodename=n4", "state=resume"])


@pytest.mark.parametrize("reason", PASSES)
def test_what_passes_by_itself_is_left_alone(story: Story, reason: str) -> None:
    began = drain(story, "n4", reason)
    story.wait("it is seen", lambda: reason in story.explain("n4"), 30.0)
    assert story.events("node.slurm_reason", since=began) == story.cases("n4", since=began) == []
    story.bed.run(["scontrol", "update", "nodename=n4", "state=resume"])


def test_a_reboot_by_slurm_that_does_not_come_about_is_done_by_the_provider(story: Story) -> None:
    """Slurm writes under the login of the person who ordered it, and appends word by word."""
    before, began = story.instance("n3"), time.time()
    with changed_conf(story.bed, lambda conf: f"{conf}\nRebootProgram=/bin/true\nResumeTimeout=5\n"):
        story.bed.run(["scontrol", "reboot", "n3"])
        story.wait("Slurm says so", lambda: "reboot issued" in story.explain("n3"), 30.0)
        assert story.cases("n3", since=began) == []
        case = story.wait_case("n3", "closed", REPAIR_S, since=began)
    assert (case["check"], case["rung"], case["why"]["rule"]) == ("slurm.reboot_timeout", "reboot", "node.slurm_reason")
    assert story.node_state("n3") == "IDLE"
    assert story.instance("n3") == before
