"""More than one thing goes wrong: jobs compete, faults come together or in the middle of a resume, people act too."""

from steward_bed.faults import FaultKind
from tests.e2e.story import Story, task_script


def started(story: Story, job: int, restart: int) -> list[str]:
    """Nodes on which tasks of this run of the job began."""
    lines = [line for line in story.lines(f"started-{job}") if f"restart={restart}" in line]
    return [line.split()[0] for line in lines]


def submitted(story: Story, nodes: int) -> int:
    """A job on whole nodes that runs until the file `go` is there; its tasks have begun."""
    task = task_script(story)
    where = f"echo $SLURMD_NODENAME restart=${{SLURM_RESTART_COUNT:-0}} >>{story.dir}/started-$SLURM_JOB_ID"
    script = story.script("train.sh", f"srun bash -c '{where}; exec bash {task}'\n")
    job = story.submit(script, "--auto-resume=1", f"-N{nodes}", f"-n{nodes}", "--gres=gpu:8")
    story.wait(f"all tasks of job {job} run", lambda: len(started(story, job, 0)) == nodes)
    return job


def goes_well(story: Story, *jobs: int) -> None:
    (story.dir / "go").touch()
    assert [story.wait_end(job, 60.0).state for job in jobs] == ["COMPLETED"] * len(jobs)


def test_two_jobs_compete_for_one_spare_node_and_both_come_back(story: Story) -> None:
    first, second = submitted(story, 3), submitted(story, 2)
    victims = [started(story, job, 0)[-1] for job in (first, second)]
    story.hurt(FaultKind.REFUSE_LAUNCH)
    for victim in victims:
        story.hurt(FaultKind.KILL_NODE, victim)

    def again() -> list[int]:
        return [job for job in (first, second) if story.job(job).restarts == 1 and story.job(job).state == "RUNNING"]

    story.wait("one of them has the spare", again, 30.0)
    waiting = second if again() == [first] else first
    story.wait_state(waiting, "PENDING")  # its sound nodes may still clean up
    story.hurt(FaultKind.ALLOW_LAUNCH)
    story.wait("the other one has a new machine", lambda: len(again()) == 2, 60.0)
    goes_well(story, first, second)


def test_the_batch_host_and_a_second_node_die_together(story: Story) -> None:
    job = submitted(story, 4)
    host = story.job(job).batch_host
    other = next(node for node in started(story, job, 0) if node != host)

    for victim in (host, other):
        story.hurt(FaultKind.KILL_NODE, victim)

    story.wait("four tasks run again", lambda: len(started(story, job, 1)) == 4, 60.0)
    assert story.job(job).restarts == 1
    goes_well(story, job)


def test_a_fault_in_the_middle_of_a_resume_and_an_admin_who_drains_meanwhile(story: Story) -> None:
    job = submitted(story, 2)
    hit = started(story, job, 0)
    idle = next(name for name in ("n6", "n5", "n4", "n3") if name not in hit)
    story.hurt(FaultKind.REFUSE_LAUNCH)  # else a node that was hit may serve again
    story.hurt(FaultKind.KILL_NODE, hit[-1])
    story.bed.run(["scontrol", "update", f"nodename={idle}", "state=drain", "reason=ann: new fan"])
    story.wait("it runs again", lambda: len(started(story, job, 1)) == 2, 30.0)
    assert idle not in started(story, job, 1)

    story.hurt(FaultKind.KILL_NODE, started(story, job, 1)[0])

    story.wait("it runs once more", lambda: len(started(story, job, 2)) == 2, 30.0)
    assert not {hit[-1], started(story, job, 1)[0], idle} & set(started(story, job, 2))
    story.hurt(FaultKind.ALLOW_LAUNCH)
    goes_well(story, job)
    assert story.node_field(idle, "Reason").startswith("ann: new fan")
    assert "DRAIN" in story.node_state(idle)


def test_after_a_retry_in_place_the_scripts_next_step_starts_though_the_dead_node_was_the_first_ones_last(
    story: Story,
) -> None:
    """The others had ended when the frozen node was found out: Slurm before 23.11 keeps such a step for ever."""
    where = f"echo $SLURMD_NODENAME ${{STEWARD_ATTEMPT:-1}} >>{story.dir}/attempts"
    fail = f"while [ ! -e {story.dir}/die ]; do sleep 0.05; done; exit 1"
    task = story.script("task.sh", f"{where}\n[ $STEWARD_ATTEMPT = 1 ] || exit 0\n{fail}\n")
    script = story.script("train.sh", f"srun -N3 -n3 bash {task}; srun -N3 -n3 --gres=gpu:8 true\n")
    job = story.submit(script, "--auto-resume=1", "-N4", "--no-kill", "--exclusive", "--gres=gpu:8")
    story.wait("three tasks run", lambda: len(story.lines("attempts")) == 3)
    victim = next(line.split()[0] for line in story.lines("attempts") if story.job(job).batch_host not in line)

    hurt_at = story.hurt(FaultKind.FREEZE_NODE, victim)
    (story.dir / "die").touch()

    assert story.wait_end(job, 60.0).state == "COMPLETED"
    assert (story.job(job).restarts, len(story.lines("attempts"))) == (0, 6)
    story.wait_case(victim, "closed", since=hurt_at)


def test_ranks_wait_for_those_of_a_node_that_was_dead_and_is_back_while_no_head_looked(story: Story) -> None:
    where = f"echo $SLURMD_NODENAME restart=${{SLURM_RESTART_COUNT:-0}} >>{story.dir}/started-$SLURM_JOB_ID"
    script = story.script("train.sh", f"srun bash -c '{where}; [ $SLURM_RESTART_COUNT ] || exec sleep 3600'\n")
    job = story.submit(script, "--auto-resume=1", "-N2", "-n2", "--gres=gpu:8")
    story.wait("both tasks run", lambda: len(started(story, job, 0)) == 2)
    other = next(node for node in started(story, job, 0) if node != story.job(job).batch_host)
    story.hurt(FaultKind.KILL_HEAD)
    story.hurt(FaultKind.KILL_NODE, other)
    story.hurt(FaultKind.START_NODE, other)
    story.hurt(FaultKind.START_HEAD)

    assert story.wait_end(job, 180.0).state == "COMPLETED"
    assert len(started(story, job, 1)) == 2
    assert f"{other}: it has booted since the run began there" in story.explain(str(job))
