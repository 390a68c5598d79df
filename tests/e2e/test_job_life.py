"""What a resumed job is to those who wait for it, and what its lost attempts leave."""

from steward_bed.faults import FaultKind
from tests.e2e.story import Story

WORKS = "echo run ${SLURM_RESTART_COUNT:-0}; sleep 9"
KINDS = ("afterok", "afternotok", "afterany")
LEAVES = """srun --no-kill -N2 -n2 bash -c 'setsid nohup sleep 77 >/dev/null 2>&1 & sleep 10'"""


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


def test_what_an_attempt_left_running_is_named_to_the_next_one_and_in_explain(story: Story) -> None:
    script = story.script("leaves.sh", LEAVES)
    job = story.submit(script, "-N3", "--ntasks-per-node=1", "--exclusive", "--no-kill", "--auto-resume=1")
    seen = story.wait_state(job, "RUNNING")
    nodes = story.bed.run(["scontrol", "show", "hostnames", seen.fields["NodeList"]]).text.split()
    host, other = nodes[:2]
    story.wait("its step runs", lambda: f"{job}.0" in story.bed.run(["squeue", "--steps", "--noheader"]).text)
    story.hurt(FaultKind.KILL_NODE, other)
    story.wait("it is named", lambda: "Earlier attempts had left processes" in story.explain(str(job)), 40.0)
    assert f"{host}: " in story.explain(str(job))
    assert story.wait_end(job, 60.0).state == "COMPLETED"
