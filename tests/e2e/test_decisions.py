"""What is resumed and what is not, and that Steward says why."""

from functools import partial
from pathlib import Path

import pytest

from steward.adapters.process import Failed
from steward_bed.faults import FaultKind
from tests.e2e.story import XID_79, Story, task_script

TRIES = 5
LATE = "the agent did not answer in time"
"""A busy agent is not waited for (0.3 s): such a step runs without a folder."""


@pytest.mark.parametrize(("command", "exit_code"), [("exit 3", "3:0"), ("kill -SEGV $$", "0:11")])
def test_a_users_bug_ends_the_job_with_its_own_exit_code(story: Story, command: str, exit_code: str) -> None:
    job = story.submit(story.script("bug.sh", command + "\n"), "--auto-resume=1", "-N2")
    seen = story.wait_end(job, 15.0)
    assert (seen.state, seen.exit_code, seen.restarts) == ("FAILED", exit_code, 0)
    story.wait("explain says why", lambda: "resume.no_evidence" in story.explain(str(job)), 5.0)


def test_a_job_may_say_how_it_is_resumed_and_a_word_too_many_is_refused(story: Story) -> None:
    tell = (
        "echo $STEWARD_AUTO_RESUME $STEWARD_RESUME_COUNT; "
        f'[ -n "$STEWARD_PROGRESS_FILE" ] || echo "{LATE}"; echo 1 >$STEWARD_PROGRESS_FILE && echo told'
    )
    script = story.script("tell.sh", f"({tell}; srun -n1 bash -c '{tell}') >>said\n")
    with pytest.raises(Failed, match=r"'maxi=3' is not known.*,max=N"):
        story.submit(script, "--auto-resume=1,maxi=3", "-N1")
    for _ in range(TRIES):
        job = story.submit(script, "--auto-resume=1,max=3,codes=2:3", "-N1")
        assert story.wait_end(job).state == "COMPLETED"
        if LATE not in (said := story.lines("said")[-4:]):
            break
    assert said == ["1,max=3,codes=2:3 0", "told"] * 2


def test_a_failing_step_without_evidence_is_not_tried_again(story: Story) -> None:
    script = story.script("bug.sh", "srun -N2 -n2 bash -c 'echo $STEWARD_ATTEMPT >>tries; exit 5'\n")
    job = story.submit(script, "--auto-resume=1", "-N2")
    seen = story.wait_end(job, 20.0)
    assert (seen.state, seen.exit_code) == ("FAILED", "5:0")
    assert story.lines("tries") == ["1", "1"]


def test_a_gpu_that_fell_off_the_bus_moves_the_job_and_replaces_the_node(story: Story) -> None:
    task = story.script(
        "task.sh",
        f"""run="attempt=$STEWARD_ATTEMPT restart=${{SLURM_RESTART_COUNT:-0}}"
echo "$SLURMD_NODENAME $run resumes=$STEWARD_RESUME_COUNT culprits=$STEWARD_CULPRITS" >>{story.dir}/started
while [ ! -e {story.dir}/go ]; do
    [ -e {story.dir}/die.$SLURMD_NODENAME.${{SLURM_RESTART_COUNT:-0}} ] && exit 1
    sleep 0.05
done
""",
    )
    job = story.submit(story.script("train.sh", f"srun -K bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    victim = next(line.split()[0] for line in story.lines("started") if story.job(job).batch_host not in line)
    before = story.instance(victim)

    story.hurt(FaultKind.REFUSE_LAUNCH)  # else the node may be replaced before the job starts again
    hurt_at = story.hurt(FaultKind.KERNEL_LOG, victim, XID_79)
    (story.dir / f"die.{victim}.0").touch()

    story.wait("it runs elsewhere", lambda: sum("restart=1" in line for line in story.lines("started")) == 2)
    again = [line for line in story.lines("started") if "restart=1" in line]
    assert not any(line.startswith(victim) for line in again)
    assert all(f"resumes=1 culprits={victim}" in line for line in again)
    story.hurt(FaultKind.ALLOW_LAUNCH)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    case = story.wait_case(victim, "closed", since=hurt_at)
    assert case["check"] == "kernel.xid" or "79" in str(case["why"])
    assert story.instance(victim) != before
    story.wait("it is back under its name", lambda: story.node_state(victim) == "IDLE")


def test_an_application_error_in_the_kernel_log_drains_nothing(story: Story) -> None:
    hurt_at = story.hurt(FaultKind.KERNEL_LOG, "n3", "NVRM: Xid (PCI:0000:3b:00): 31, pid=12, name=python, MMU Fault")
    marker = story.hurt(FaultKind.FAIL_CHECK, "n4", "to see that findings have travelled")
    story.wait_case("n4", "closed", 60.0, since=marker)
    assert story.cases("n3", since=hurt_at) == []
    assert story.node_state("n3") == "IDLE"


def slurmds(story: Story) -> list[Path]:
    """Where the shim writes what it does for a script."""
    return [path for name, path in story.bed.logs().items() if name.startswith("slurmd-")]


@pytest.mark.parametrize("moment", ["hold", "retry", "requeue"])
def test_scancel_ends_the_job_at_once(story: Story, moment: str) -> None:
    task = task_script(story)
    if moment == "hold":
        script = story.script("job.sh", f"while [ ! -e {story.dir}/die ]; do sleep 0.1; done\nexit 9\n")
        job = story.submit(script, "--auto-resume=1", "-N1")
        story.wait_state(job, "RUNNING")
        story.hurt(FaultKind.STOP_HEAD)
        (story.dir / "die").touch()
        held = f"job {job}: script ended with status"
        story.wait("the shim waits", lambda: any(held in log.read_text("utf-8", "replace") for log in slurmds(story)))
        assert story.job(job).state == "RUNNING"
    else:
        options = ["-N2", "--no-kill"] if moment == "retry" else ["-N1"]
        script = story.script("job.sh", f"srun -N1 -n1 bash {task}\n")
        job = story.submit(script, "--auto-resume=1", *options)
        story.wait("the task runs", lambda: len(story.lines("started")) == 1)
        victim = story.lines("started")[0].split()[0].split(":")[1]
        if moment == "requeue":
            others = ",".join(f"n{i}" for i in range(1, 7) if f"n{i}" != victim)
            filler = story.submit(story.script("fill.sh", "sleep 600\n"), "-N5", "--exclusive", "-w", others)
            story.wait_state(filler, "RUNNING")
        story.hurt(FaultKind.REFUSE_LAUNCH)  # else it may be back before we look
        story.hurt(FaultKind.KILL_NODE, victim)
        story.wait("the node is down", lambda: "DOWN" in story.node_state(victim), 10.0)
    story.bed.run(["scancel", str(job)])
    if moment == "hold":
        story.hurt(FaultKind.CONT_HEAD)
    seen = story.wait_state(job, "CANCELLED", 10.0)
    story.wait(
        "nothing of it is left",
        lambda: "COMPLETING" not in story.bed.run(["squeue", "-h", "-j", str(job), "-o", "%T"], check=False).text,
        15.0,
    )
    assert story.job(job).state == "CANCELLED"
    assert seen.state == "CANCELLED"


def has_line(story: Story, name: str, line: str) -> bool:
    return line in story.lines(name)


@pytest.mark.once
def test_many_requeues_in_a_row_leave_none_stuck(story: Story, pytestconfig: pytest.Config) -> None:
    """Three seconds each; `--requeues 100` for more."""
    times: int = pytestconfig.getoption("--requeues")
    script = story.script("job.sh", "echo ${SLURM_RESTART_COUNT:-0} >>runs; sleep 600\n")
    job = story.submit(script, "--auto-resume=1", "-N6", "--exclusive")
    story.wait("run 0 has begun", partial(has_line, story, "runs", "0"))
    for number in range(1, times + 1):
        story.wait("opted in is known", lambda: str(job) in str(story.get("/v1/jobs")), 10.0)
        story.bed.run(["scontrol", "requeue", str(job)])
        # Slurm may lose the SIGTERM for a script that it is just starting: that one lasts until KillWait (30 s).
        story.wait(f"run {number} has begun", partial(has_line, story, "runs", str(number)), 45.0)
    assert story.job(job).restarts == times
    story.bed.run(["scancel", str(job)])


def test_the_option_with_a_bad_value_is_refused_with_one_line(story: Story) -> None:
    script = story.script("job.sh", "true\n")
    refused = story.bed.run(["sbatch", "--auto-resume=maybe", str(script)], check=False)
    assert refused.returncode != 0
    told = [line for line in refused.error_text.splitlines() if "steward:" in line]  # Slurm adds a line of its own
    assert len(told) == 1
    assert "use 0, 1 or any:N" in told[0]
    assert refused.text == ""
