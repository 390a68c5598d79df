"""What a resumed job is to those who wait for it."""

from steward_bed.faults import FaultKind
from tests.e2e.story import Story

WORKS = "echo run ${SLURM_RESTART_COUNT:-0}; sleep 9"
KINDS = ("afterok", "afternotok", "afterany")


def test_who_waits_for_a_job_waits_for_its_last_run(story: Story) -> None:
    """With requeue=1 it comes back though it was submitted with --no-requeue; without, its node's death is its end."""
    script = story.script("works.sh", WORKS)
    options = ("-N1", "--exclusive", "--no-requeue")
    back = story.submit(script, *options, "--auto-resume=1,requeue=1", "--job-name=chain")
    ends = story.submit(script, *options, "--auto-resume=1")
    after = story.script("after.sh", "true")
    waits = {
        (of, kind): story.submit(after, "-N1", f"--dependency={kind}:{of}", "--kill-on-invalid-dep=yes")
        for of in (back, ends)
        for kind in KINDS
    }
    single = story.submit(after, "-N1", "--job-name=chain", "--dependency=singleton")
    nodes = [story.wait_state(job, "RUNNING").fields["NodeList"] for job in (back, ends)]
    for node in nodes:
        story.hurt(FaultKind.KILL_NODE, node)
    assert story.wait_end(ends).state == "NODE_FAIL"
    assert (story.job(waits[back, "afterany"]).state, story.job(single).state) == ("PENDING", "PENDING")
    assert story.wait_end(back, 60.0).state == "COMPLETED"
    assert story.job(back).restarts == 1

    found = {key: story.wait_end(job, 60.0).state for key, job in waits.items()}
    assert [found[back, kind] for kind in KINDS] == ["COMPLETED", "CANCELLED", "COMPLETED"]
    assert [found[ends, kind] for kind in KINDS] == ["CANCELLED", "COMPLETED", "COMPLETED"]
    assert story.wait_end(single, 60.0).state == "COMPLETED"
