"""A fault of a node beside what a user, an admin or Slurm itself does to the same job at the same moment."""

import time
from collections.abc import Iterator

import pytest

from steward_bed.faults import FaultKind
from tests.e2e.changed_conf import changed_conf
from tests.e2e.story import JobSeen, Story, task_script

ONE = ("--auto-resume=1", "-N1", "--exclusive")


def started(story: Story, script: str = "", *options: str) -> int:
    """A job that has begun; by default its task waits for the file `go`."""
    text = script or f"bash {task_script(story)}\n"
    job = story.submit(
        story.script("job.sh", f"echo $SLURM_JOB_ID $SLURMD_NODENAME >>{story.dir}/begun\n{text}"), *ONE, *options
    )
    story.wait("it has begun", lambda: [line for line in story.lines("begun") if line.startswith(f"{job} ")])
    return job


def runs_again(story: Story, job: int, restarts: int = 1, deadline_s: float = 40.0) -> JobSeen:
    story.wait(
        "it runs again", lambda: (story.job(job).state, story.job(job).restarts) == ("RUNNING", restarts), deadline_s
    )
    return story.job(job)


SAVED_S = 6.0
"""slurmctld writes its state within five seconds: what it knew for less is lost when it is killed."""


def slurmctld_away(story: Story, seconds: float, node: str = "") -> None:
    """It is killed, and is started again after so many seconds; meanwhile a node dies."""
    time.sleep(SAVED_S)
    story.hurt(FaultKind.KILL_SLURMCTLD)
    if node:
        story.hurt(FaultKind.KILL_NODE, node)
    time.sleep(seconds)
    story.hurt(FaultKind.START_SLURMCTLD)


def ends_well(story: Story, job: int, restarts: int) -> None:
    (story.dir / "go").touch()
    ended = story.wait_end(job, 60.0)
    assert (ended.state, ended.restarts) == ("COMPLETED", restarts), story.tell()


def test_a_suspended_job_whose_node_died_is_held_by_slurm_and_comes_back_when_it_is_released(story: Story) -> None:
    job = started(story)
    story.bed.run(["scontrol", "suspend", str(job)])
    story.wait_state(job, "SUSPENDED")
    story.hurt(FaultKind.KILL_NODE, story.job(job).batch_host)
    held = "was suspended when its last run ended, for which Slurm holds it (JobHeldAdmin)"
    story.wait("it is told that Slurm holds it", lambda: held in story.explain(f"{job}"), 30.0)
    story.bed.run(["scontrol", "release", str(job)])
    runs_again(story, job)
    ends_well(story, job, 1)


@pytest.fixture
def epilog(story: Story) -> Iterator[Story]:
    """An Epilog of six seconds."""
    with changed_conf(story.bed, lambda conf: f"{conf}\nEpilog={story.script('epilog.sh', 'sleep 6')}\n"):
        yield story


def test_a_job_that_was_complete_stays_so_when_its_node_dies_in_the_epilog(epilog: Story) -> None:
    job = started(epilog, "sleep 3")
    after = epilog.submit(epilog.script("after.sh", "true"), "-N1", f"--dependency=afterok:{job}")
    node = epilog.job(job).batch_host
    epilog.wait_state(job, {"COMPLETING", "COMPLETED"})
    hurt_at = epilog.hurt(FaultKind.KILL_NODE, node)
    epilog.wait_case(node, "closed", 60.0, since=hurt_at)
    assert (epilog.wait_end(job).state, epilog.job(job).restarts) == ("COMPLETED", 0)
    assert epilog.wait_end(after, 60.0).state == "COMPLETED"
    assert len(epilog.lines("begun")) == 1


def test_a_job_that_its_user_put_back_comes_back_when_its_node_dies_in_the_epilog(epilog: Story) -> None:
    job = started(epilog)
    node = epilog.job(job).batch_host
    epilog.bed.run(["scontrol", "requeue", str(job)])
    epilog.hurt(FaultKind.KILL_NODE, node)
    runs_again(epilog, job)
    ends_well(epilog, job, 1)


def test_a_users_own_requeue_beside_a_fault_costs_at_most_one_resume(story: Story) -> None:
    job = started(story)
    story.hurt(FaultKind.KILL_NODE, story.job(job).batch_host)
    story.bed.run(["scontrol", "requeue", str(job)], check=False)
    story.wait("it runs again", lambda: story.job(job).restarts and story.job(job).state == "RUNNING", 40.0)
    (story.dir / "go").touch()
    assert story.wait_end(job, 60.0).state == "COMPLETED"
    assert story.job(job).restarts == 1


def test_a_job_that_its_user_put_back_held_stays_held_when_its_node_dies(story: Story) -> None:
    job = started(story)
    node = story.job(job).batch_host
    hurt_at = story.hurt(FaultKind.KILL_NODE, node)
    story.bed.run(["scontrol", "requeuehold", str(job)], check=False)
    story.wait_case(node, "closed", 60.0, since=hurt_at)
    held = story.job(job)
    assert (held.state, held.fields["Priority"]) == ("PENDING", "0"), story.tell()
    assert "it is held (job requeued in held state): it stays where it is until it is released" in story.explain(
        f"{job}"
    )
    story.bed.run(["scontrol", "release", str(job)])
    runs_again(story, job)
    ends_well(story, job, 1)


def test_scancel_beside_a_fault_is_the_jobs_end(story: Story) -> None:
    job = started(story)
    node = story.job(job).batch_host
    hurt_at = story.hurt(FaultKind.KILL_NODE, node)
    story.bed.run(["scancel", str(job)])
    story.wait_case(node, "closed", 60.0, since=hurt_at)
    assert story.wait_end(job).state == "CANCELLED"
    assert len(story.lines("begun")) == 1


def test_a_signal_of_its_user_beside_a_fault_is_not_the_jobs_end(story: Story) -> None:
    """Its script takes the signal for a wish to save, and goes on."""
    job = started(story, f"trap 'echo >>{story.dir}/saved' USR1\nwhile [ ! -e {story.dir}/go ]; do sleep 0.1; done\n")
    story.bed.run(["scancel", "--batch", "--signal=USR1", str(job)])
    story.hurt(FaultKind.KILL_NODE, story.job(job).batch_host)
    runs_again(story, job)
    ends_well(story, job, 1)


@pytest.mark.parametrize("seconds", [0.0, 12.0])
def test_a_fault_while_slurmctld_is_away_is_answered_when_it_is_back(story: Story, seconds: float) -> None:
    job = started(story)
    slurmctld_away(story, seconds, story.job(job).batch_host)
    runs_again(story, job, deadline_s=60.0)
    ends_well(story, job, 1)


def test_a_script_that_fails_by_itself_while_slurmctld_is_away_is_not_run_again(story: Story) -> None:
    job = started(story, f"sleep {SAVED_S + 3:.0f}; exit 7")
    slurmctld_away(story, 8.0)
    ended = story.wait_end(job, 60.0)
    assert (ended.state, ended.exit_code, ended.restarts) == ("FAILED", "7:0", 0)


def test_a_job_that_slurm_sends_to_a_node_that_has_just_died_begins_elsewhere(story: Story) -> None:
    story.hurt(FaultKind.KILL_NODE, "n4")
    task = task_script(story)
    job = story.submit(story.script("job.sh", f"srun bash {task}"), "--auto-resume=1", "-N6", "-n6", "--exclusive")
    story.wait("all run", lambda: len(story.lines("started")) >= 6, 60.0)
    (story.dir / "go").touch()
    assert story.wait_end(job, 60.0).state == "COMPLETED"


def test_a_job_whose_node_freezes_while_its_step_begins_comes_back(story: Story) -> None:
    task = task_script(story)
    job = story.submit(
        story.script("job.sh", f"sleep 1\nsrun bash {task}"), "--auto-resume=1", "-N2", "-n2", "--exclusive"
    )
    story.wait_state(job, "RUNNING")
    other = next(
        n
        for n in ("n1", "n2", "n3", "n4", "n5", "n6")
        if n != story.job(job).batch_host and "ALLOCATED" in story.node_state(n)
    )
    story.hurt(FaultKind.FREEZE_NODE, other)
    runs_again(story, job)
    ends_well(story, job, 1)


def test_who_waits_for_a_job_that_saved_when_its_machine_shut_down_waits_for_its_last_run(story: Story) -> None:
    job = started(story, "[ $SLURM_RESTART_COUNT ] && exit 0\ntrap 'sleep 0.3; exit 0' TERM\nsleep 120 & wait $!\n")
    waits = [
        story.submit(
            story.script("after.sh", f"wc -l <{story.dir}/begun >>{story.dir}/after\n"),
            "-N1",
            f"--dependency={kind}:{job}",
        )
        for kind in ("afterok", "afterany")
    ]
    story.hurt(FaultKind.STOP_NODE, story.job(job).batch_host, "1")
    for each in waits:
        assert story.wait_end(each, 60.0).state == "COMPLETED"
    assert story.lines("after") == ["2", "2"]
    assert story.job(job).restarts == 1


def test_of_an_array_that_is_cancelled_beside_a_fault_nothing_comes_back(story: Story) -> None:
    script = story.script("task.sh", f"echo $SLURM_ARRAY_TASK_ID >>{story.dir}/begun; sleep 60")
    array = story.submit(script, *ONE, "--array=0-3%3")
    story.wait("three run", lambda: len(story.lines("begun")) == 3)
    node = story.bed.run(["squeue", "-h", "-t", "R", "-o", "%N"]).text.split()[0]
    hurt_at = story.hurt(FaultKind.KILL_NODE, node)
    story.bed.run(["scancel", str(array)])
    story.wait_case(node, "closed", 60.0, since=hurt_at)
    story.wait("nothing is left", lambda: not story.bed.run(["squeue", "-h"]).text.strip(), 30.0)
    assert len(story.lines("begun")) == 3


def test_a_job_that_gave_a_node_up_is_not_hurt_by_that_nodes_end(story: Story) -> None:
    job = started(story, "", "-N3")
    kept = sorted(n for n in ("n1", "n2", "n3", "n4", "n5", "n6") if "ALLOCATED" in story.node_state(n))
    story.bed.run(["scontrol", "update", f"jobid={job}", "numnodes=2"])
    story.wait("it has two", lambda: story.job(job).fields["NumNodes"] == "2")
    gone = next(n for n in kept if story.node_state(n) == "IDLE")
    hurt_at = story.hurt(FaultKind.KILL_NODE, gone)
    story.wait_case(gone, "closed", 60.0, since=hurt_at)
    assert story.job(job).state == "RUNNING"
    host = story.job(job).batch_host
    story.hurt(FaultKind.KILL_NODE, host)
    runs_again(story, job)
    ends_well(story, job, 1)


def test_a_fault_of_a_node_that_nothing_used_explains_neither_a_step_nor_the_script(story: Story) -> None:
    used = "$(scontrol show hostnames $SLURM_JOB_NODELIST | head -2 | paste -sd,)"
    text = f"""srun -N2 -n2 -w {used} bash {task_script(story)}
sleep 8
srun -N1 -n1 sh -c 'exit 3' || echo >>{story.dir}/handled
exit 7
"""
    job = story.submit(story.script("job.sh", text), "--auto-resume=1", "-N3", "--no-kill", "--exclusive")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    busy = {line.split()[0].split(":")[1] for line in story.lines("started")}
    (third,) = (
        node for node in story.bed.spec.node_names if "ALLOCATED" in story.node_state(node) and node not in busy
    )
    story.hurt(FaultKind.KILL_NODE, third)
    story.wait("it has left the job", lambda: story.job(job).fields["NumNodes"] == "2", 30.0)
    (story.dir / "go").touch()
    ended = story.wait_end(job, 60.0)
    assert (ended.state, ended.exit_code, ended.restarts) == ("FAILED", "7:0", 0)
    assert (len(story.lines("started")), len(story.lines("handled"))) == (2, 1)


def test_a_step_that_somebody_runs_from_outside_ends_by_itself(story: Story) -> None:
    job = started(story)
    done = story.bed.run(["srun", f"--jobid={job}", "--overlap", "-N1", "-n1", "sh", "-c", "exit 3"], check=False)
    assert done.returncode == 3
    story.hurt(FaultKind.KILL_NODE, story.job(job).batch_host)
    runs_again(story, job)
    ends_well(story, job, 1)
