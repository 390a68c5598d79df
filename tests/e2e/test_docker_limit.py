"""Time that a fault took is given back to its job.

Without slurmdbd, as on the local bed, Slurm 22.05 refuses every change of a running job that has lost a node ("the DB
index is being set").
"""

from steward_bed.faults import FaultKind
from tests.e2e.story import Story


def test_the_time_that_a_fault_took_is_added_to_the_jobs_limit(story: Story) -> None:
    """From the fault to the first step after it: the second attempt needs four seconds to begin."""
    steps = story.script(
        "steps.sh",
        f"""echo $SLURMD_NODENAME >>{story.dir}/began
[ "$STEWARD_ATTEMPT" = 1 ] || sleep 4
for step in $(seq 1 600); do echo $step >$STEWARD_PROGRESS_FILE; sleep 0.5; done
""",
    )
    job = story.submit(
        story.script("train.sh", f"srun -N2 -n2 {steps}\n"), "--auto-resume=1", "-N3", "--no-kill", "--time=10"
    )
    story.wait("its steps are known", lambda: "Last reported step:" in story.explain(f"{job}"))
    story.wait("both tasks began", lambda: len(story.lines("began")) == 2)
    host = story.job(job).batch_host

    story.hurt(FaultKind.KILL_NODE, next(node for node in story.lines("began") if node != host))

    story.wait("it has a minute more", lambda: story.job(job).fields["TimeLimit"] == "00:11:00", 40.0)
    assert story.job(job).restarts == 0
    assert any(event["job"] == job for event in story.events("job.time_given_back"))
