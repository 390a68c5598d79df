"""The main job: a node dies under an opted-in job, the job comes back, the node is replaced."""

import time

import pytest

from steward_bed.bed import Backend
from steward_bed.faults import FaultKind
from tests.e2e.story import Story, task_script


def started(story: Story, attempt: int = 1, restart: int = 0) -> list[str]:
    """Nodes on which tasks of this attempt began."""
    wanted = f"attempt={attempt} restart={restart}"
    return [line.split()[0].split(":")[1] for line in story.lines("started") if wanted in line]


def test_with_a_spare_in_the_allocation_the_step_runs_again_on_the_others(story: Story) -> None:
    task = task_script(story)
    script = story.script("train.sh", f"srun -N4 -n4 bash {task}\n")
    job = story.submit(script, "--auto-resume=1", "-N5", "--no-kill", "--gres=gpu:8")
    story.wait("four tasks run", lambda: len(started(story)) == 4)
    batch_host = story.job(job).batch_host
    victim = next(node for node in started(story) if node != batch_host)
    before = story.instance(victim)

    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)

    story.wait("four tasks run again", lambda: len(started(story, attempt=2)) == 4)
    assert victim not in started(story, attempt=2)
    assert story.job(job).restarts == 0
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    case = story.wait_case(victim, "closed", since=hurt_at)
    assert story.instance(victim) != before
    assert case["returned"] > case["replaced"] > case["marked"]
    story.wait("the node takes jobs again", lambda: story.node_state(victim) == "IDLE")


def test_a_step_that_lost_a_node_runs_again_though_its_other_tasks_ended_well(story: Story) -> None:
    task = story.script(
        "task.sh",
        f"""echo "_:$SLURMD_NODENAME $SLURM_PROCID attempt=$STEWARD_ATTEMPT restart=0" >>{story.dir}/started
[ "$SLURM_PROCID:$STEWARD_ATTEMPT" != 2:1 ] || sleep 600
""",
    )
    script = story.script("train.sh", f"srun --no-kill -N3 -n3 bash {task}\n")
    job = story.submit(script, "--auto-resume=1", "-N4", "--no-kill")
    story.wait("three tasks run", lambda: len(started(story)) == 3)
    victim = next(line.split()[0].split(":")[1] for line in story.lines("started") if " 2 attempt=1" in line)
    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)
    assert story.wait_end(job).state == "COMPLETED"
    assert len(started(story, attempt=2)) == 3
    assert victim not in started(story, attempt=2)
    story.wait_case(victim, "closed", since=hurt_at)


@pytest.mark.parametrize("who", ["another node", "the batch host"])
def test_with_the_spare_outside_the_job_is_requeued_and_runs(story: Story, who: str) -> None:
    task = task_script(story)
    script = story.script("train.sh", f"srun bash {task}\n")
    job = story.submit(script, "--auto-resume=1", "-N4", "-n4", "--gres=gpu:8", "--exclusive")
    story.wait("four tasks run", lambda: len(started(story)) == 4)
    batch_host = story.job(job).batch_host
    victim = batch_host if who == "the batch host" else next(n for n in started(story) if n != batch_host)

    story.hurt(FaultKind.REFUSE_LAUNCH)  # else the node may be replaced before the job starts again

    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)

    story.wait("four tasks run again", lambda: len(started(story, restart=1)) == 4)
    assert victim not in started(story, restart=1)
    (line,) = [line for line in story.lines("out") if "steward: resumed, " in line]
    assert line == f"steward: resumed, 1 of 5, after {victim} failed; no checkpoint is known"
    story.hurt(FaultKind.ALLOW_LAUNCH)
    story.wait(
        "its comment is there: Slurm takes none of a job that has ended",
        lambda: comment_on(victim) in shown(story, job),
    )
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    assert story.job(job).restarts == 1
    is_accounted_for(story, job, victim, hurt_at)
    story.wait_case(victim, "closed", since=hurt_at)
    assert story.get(f"/v1/report?job={job}")["jobs"][0]["incidents"][0]["returned"] > hurt_at


def is_accounted_for(story: Story, job: int, victim: str, hurt_at: float) -> None:
    """Its history has both runs, all its time is in one phase, and users of sacct read what happened."""
    is_over = lambda: story.get(f"/v1/jobs/{job}/history")[-1]["ending"] == "over"  # noqa: E731
    story.wait("the ledger knows the end", is_over)
    first, second = story.get(f"/v1/jobs/{job}/history")
    assert (first["ending"], first["culprits"], second["restart"]) == ("requeued", [victim], 1)
    (told,) = story.get(f"/v1/report?job={job}")["jobs"]
    spent = sum(segment["end"] - segment["begin"] for segment in told["timeline"])
    assert spent == pytest.approx(second["ended"] - first["started"], abs=0.01)
    assert sum(told["sums"]["seconds"].values()) == pytest.approx(spent, abs=0.01)
    (incident,) = told["incidents"]
    assert hurt_at - 1.0 <= incident["fault"] <= incident["detected"] <= incident["marked"] <= incident["running"]
    assert f"AdminComment={comment_on(victim)}" in shown(story, job)
    if story.bed.spec.backend is Backend.DOCKER:  # the local bed has no accounting
        sacct = ["sacct", "-nXP", "-j", str(job), "-o", "AdminComment"]
        story.wait("sacct has it", lambda: comment_on(victim) in story.bed.run(sacct).text)


def comment_on(victim: str) -> str:
    return f"steward: resumed 1x ({victim} "


def shown(story: Story, job: int) -> str:
    return story.bed.run(["scontrol", "-o", "show", "job", str(job)]).text


def test_a_frozen_node_is_marked_within_seconds(story: Story) -> None:
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(started(story)) == 2)
    victim = next(node for node in started(story) if node != story.job(job).batch_host)

    story.hurt(FaultKind.REFUSE_LAUNCH)  # else it may be back before we look
    hurt_at = story.hurt(FaultKind.FREEZE_NODE, victim)

    # Not "is DOWN": the docker bed's machine answers once more when it is ended, which leaves it DRAINED.
    story.wait("it is out by our mark", lambda: story.node_field(victim, "Reason").startswith("steward:"), 8.0)
    assert any(word in story.node_state(victim) for word in ("DOWN", "DRAIN"))
    story.hurt(FaultKind.ALLOW_LAUNCH)
    story.wait("two tasks run again", lambda: len(started(story, restart=1)) == 2)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    story.wait_case(victim, "closed", since=hurt_at)


def test_two_jobs_hit_by_one_node_both_come_back(story: Story) -> None:
    task = task_script(story)
    script = story.script("train.sh", f"srun bash {task}\n")
    jobs = [story.submit(script, "--auto-resume=1", "-N1", "-n1", "--gres=gpu:4", "-w", "n2") for _ in range(2)]
    for job in jobs:
        story.wait_state(job, "RUNNING")
    story.wait("both run", lambda: len(started(story)) == 2)
    for job in jobs:  # the wish for n2 was for the start only
        story.bed.run(["scontrol", "update", f"jobid={job}", "reqnodelist="], check=False)

    hurt_at = story.hurt(FaultKind.KILL_NODE, "n2")

    story.wait("both run again", lambda: len(started(story, restart=1)) == 2, 30.0)
    (story.dir / "go").touch()
    assert [story.wait_end(job).state for job in jobs] == ["COMPLETED", "COMPLETED"]
    story.wait_case("n2", "closed", since=hurt_at)


def test_a_job_without_the_option_is_left_to_slurm(story: Story) -> None:
    script = story.script("plain.sh", "exit 7\n")
    job = story.submit(script, "-N1")
    seen = story.wait_end(job)
    assert (seen.state, seen.exit_code, seen.restarts) == ("FAILED", "7:0", 0)
    assert job not in [entry["id"] for entry in story.get("/v1/jobs")]


def test_an_array_task_is_resumed_alone(story: Story) -> None:
    task = task_script(story)
    script = story.script("train.sh", f"srun bash {task}\n")
    first = story.submit(script, "--auto-resume=1", "-N1", "-n1", "--gres=gpu:8", "--array=0-1")
    story.wait("both tasks run", lambda: len(started(story)) == 2)
    victim = started(story)[0]

    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)

    story.wait("the hit one runs again", lambda: len(started(story, restart=1)) == 1)
    time.sleep(1.0)
    assert len(started(story, restart=1)) == 1
    (story.dir / "go").touch()
    for index in (0, 1):
        look = lambda index=index: f"{first}_{index}" not in story.bed.run(["squeue", "-h", "-o", "%i"]).text  # noqa: E731
        story.wait("the array ends", look, 30.0)
    story.wait_case(victim, "closed", since=hurt_at)


def test_no_requeue_is_the_users_word_unless_the_option_overrules_it(story: Story) -> None:
    task = task_script(story)
    script = story.script("train.sh", f"#SBATCH --no-requeue\nsrun bash {task}\n")
    job = story.submit(script, "--auto-resume=1,requeue=1", "-N1", "-n1")
    story.wait("the task runs", lambda: len(started(story)) == 1)
    story.wait("requeue is on", lambda: story.job(job).fields.get("Requeue") == "1")
    victim = started(story)[0]
    stays = story.submit(script, "--auto-resume=1", "-N1", "-n1", f"-w{victim}")
    story.wait("both tasks run", lambda: len(started(story)) == 2)
    story.wait("its wish is known", lambda: "the job is not requeued" in story.explain(f"{stays}"))
    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)
    story.wait("the first runs again", lambda: len(started(story, restart=1)) == 1)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    assert story.wait_end(stays).state == "NODE_FAIL"
    story.wait("it is told why", lambda: "[resume.no_requeue]" in story.explain(f"{stays}"))
    story.wait_case(victim, "closed", since=hurt_at)
    assert story.job(stays).restarts == 0


def test_a_job_whose_node_had_no_agent_when_it_began_comes_back_all_the_same(story: Story) -> None:
    story.hurt(FaultKind.KILL_AGENT, "n2")
    story.wait("its agent is away", lambda: story.silent_agents() == ["n2"])
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"bash {task}\n"), "--auto-resume=1", "-N1", "-wn2", "--export=NONE")
    story.wait("it runs", lambda: len(started(story)) == 1)
    story.wait("its wish is known", lambda: "The job asked to be resumed (--auto-resume=1)" in story.explain(f"{job}"))
    hurt_at = story.hurt(FaultKind.KILL_NODE, "n2")
    story.wait("it runs again", lambda: len(started(story, restart=1)) == 1, 60.0)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    story.wait_case("n2", "closed", since=hurt_at)


def test_a_job_that_depends_on_a_resumed_one_starts_after_it(story: Story) -> None:
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N1", "-n1")
    after = story.submit(story.script("after.sh", "true\n"), f"--dependency=afterok:{job}")
    story.wait("the task runs", lambda: len(started(story)) == 1)
    victim = started(story)[0]
    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)
    story.wait("it runs again", lambda: len(started(story, restart=1)) == 1)
    assert story.job(after).state == "PENDING"
    (story.dir / "go").touch()
    assert story.wait_end(after, 60.0).state == "COMPLETED"
    story.wait_case(victim, "closed", since=hurt_at)
