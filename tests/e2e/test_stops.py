"""A machine that shuts down in good order sends SIGTERM to everything, then it is gone. Its job comes back, however its
script answers; a job that ends beside it does not."""

from steward_bed.faults import FaultKind
from tests.e2e.story import Story

ENDS = {"signal": "exec sleep 120", "own code": "trap 'exit 200' TERM", "saved": "trap 'sleep 0.3; exit 0' TERM"}
"""What a script does at SIGTERM."""


def started(story: Story, name: str, at_term: str, *options: str) -> int:
    text = f"echo >>{story.dir}/{name}-$SLURM_RESTART_COUNT\n{at_term}\nsleep 120 & wait $!\n"
    job = story.submit(story.script(f"{name}.sh", text), "--auto-resume=1", "-N1", "--gres=gpu:8", *options)
    story.wait_state(job, "RUNNING")
    story.wait(f"{name} has begun", (story.dir / f"{name}-").exists)
    return job


def test_jobs_on_machines_that_shut_down_in_good_order_come_back_and_no_others(story: Story) -> None:
    jobs = {name.replace(" ", "-"): started(story, name.replace(" ", "-"), text) for name, text in ENDS.items()}
    failed = started(story, "failed", "sleep 4; exit 7")
    cancelled = started(story, "cancelled", "trap 'exit 200' TERM")
    story.bed.run(["scancel", str(cancelled)])

    for job in jobs.values():
        story.hurt(FaultKind.STOP_NODE, story.job(job).batch_host, "1")

    for name, job in jobs.items():
        story.wait(f"{name} runs again", (story.dir / f"{name}-1").exists, 30.0)
        assert story.job(job).restarts == 1
    assert (story.wait_end(failed).state, story.job(failed).restarts) == ("FAILED", 0)
    assert (story.wait_end(cancelled).state, story.job(cancelled).restarts) == ("CANCELLED", 0)
    for job in jobs.values():
        story.bed.run(["scancel", str(job)])
