"""What an elastic run goes through on a real Slurm: it loses nodes and jobs in all ways, and goes on (test_grow.py: it
grows and shrinks)."""

import os
import signal
from typing import Any

import pytest

from steward_bed.bed import Backend
from steward_bed.faults import FaultKind
from tests.e2e.elastic_runs import EXAMPLE, KEEP_EVERY, LIVE, QUICK, ElasticStory, a_run, python_of
from tests.e2e.on_node import agent_of
from tests.e2e.story import Story

pytestmark = pytest.mark.timeout(300)
WHO = ("head", "agent", "coordinator", "slurmctld")
FEW = "--exclude=n4,n5,n6"
"""Three nodes are enough: two of the base's own, one to grow into."""
OTHERS = ("n1", "n2", "n3", "n4", "n5", "n6")


def grown(story: Story, *options: str, **more: Any) -> ElasticStory:
    """A run that has grown from two nodes into the third."""
    run = a_run(story, "-N2", FEW, *options, **more)
    run.trains_at(2)
    run.trains_at(3, after=1)
    return run


def test_a_replicas_node_that_dies_makes_the_run_smaller_at_once_and_it_grows_again(story: Story) -> None:
    run = grown(story)
    _, node = run.replica()
    killed = story.hurt(FaultKind.KILL_NODE, node)
    smaller = run.trains_at(2, after=2)
    assert smaller["at"] - killed < 10.0
    assert run.lost_steps() <= KEEP_EVERY, "from the last checkpoint that it kept"
    run.trains_at(3, after=3, deadline_s=120.0)
    assert story.job(run.job).restarts == 0


def test_scancel_of_a_replica_costs_no_step_and_another_comes_after_a_pause(story: Story) -> None:
    run = grown(story)
    replica, _ = run.replica()
    story.bed.run(["scancel", str(replica)])
    run.trains_at(2, after=2)
    story.wait("its job is over", lambda: replica not in run.replicas(LIVE), 30.0)
    run.trains_at(3, after=3)
    assert run.lost_steps() == 0


def test_scancel_of_the_base_ends_its_replicas_at_once_and_the_run(story: Story) -> None:
    run = grown(story)
    replica, _ = run.replica()
    story.bed.run(["scancel", str(run.job)])
    story.wait("the replica is over", lambda: not run.replicas(LIVE), 20.0)
    assert story.job(replica).state in ("CANCELLED", "COMPLETED", "FAILED", "GONE")
    story.wait("the run is over", lambda: run.shown()["phase"] == "ended", 20.0)
    assert story.job(run.job).restarts == 0, "who ends a run by hand does not want it back"
    if story.bed.spec.backend is Backend.DOCKER:  # the local bed has no accounting
        assert_none_is_runaway(story)


def assert_none_is_runaway(story: Story) -> None:
    """No replica runs on in the database."""
    shown = ["sacctmgr", "--noheader", "show", "runawayjobs"]
    story.wait("no job is runaway", lambda: "No runaway jobs" in story.bed.run(shown, check=False).text, 30.0)


def test_replicas_end_as_soon_as_their_base_begins_to_end(story: Story) -> None:
    """Its nodes clean up for KillWait (30 s), and the replicas are not kept for so long."""
    run = grown(story, lingers=True)
    story.bed.run(["scancel", str(run.job)])
    story.wait("no replica is left", lambda: not run.replicas(LIVE), 20.0)
    assert story.job(run.job).state == "COMPLETING"


def test_the_base_requeued_begins_again_from_its_checkpoint_and_grows_again(story: Story) -> None:
    run = grown(story)
    run.goes_on()
    made = len(run.sizes)
    story.bed.run(["scontrol", "requeue", str(run.job)])
    again = run.trains_at(2, 3, after=made, deadline_s=90.0)
    assert again["step"] > 0, "from its checkpoint"
    run.trains_at(3, after=made, deadline_s=90.0)
    assert story.job(run.job).restarts == 1


def test_the_node_of_the_bases_script_dies_and_the_whole_run_is_resumed(story: Story) -> None:
    run = grown(story)
    run.goes_on()
    made = len(run.sizes)
    story.hurt(FaultKind.KILL_NODE, story.job(run.job).batch_host)
    again = run.trains_at(2, 3, after=made, deadline_s=90.0)
    assert again["step"] > 0, "from its checkpoint"
    run.trains_at(3, after=made, deadline_s=120.0)
    assert story.job(run.job).restarts == 1


def test_a_rank_that_never_saves_is_forced_at_the_grace_and_the_run_goes_on_from_the_last_checkpoint(
    story: Story,
) -> None:
    """Nothing presses the growth before, which waits for a save of twice the grace."""
    run = grown(story, words="grace=4,settle=0,faulty=1,snooze=1,backoff=60", save_s=(8, 600))
    begun, last = run.lines("begun")[-1], [one["step"] for one in run.lines("step") if one["generation"] == 1]
    assert begun["step"] == max(last), "the growth lost no step"
    run.goes_on(steps=KEEP_EVERY)
    replica, _ = run.replica()
    story.bed.run(["scancel", str(replica)])
    smaller = run.trains_at(2, after=2)
    assert smaller["step"] % KEEP_EVERY == 0, "what it keeps from time to time, not a save on demand"
    story.wait("its cost is told", lambda: any("are made again" in text for text in run.told_of("elastic.steps")))
    run.goes_on()
    story.wait("the replica's job is over", lambda: not run.replicas(LIVE), 30.0)


@pytest.mark.long
@pytest.mark.parametrize("nodes", [2, 4])
def test_a_growth_that_nobody_needs_waits_for_a_save_of_twice_the_grace_and_costs_no_step(
    story: Story, nodes: int
) -> None:
    words = "grace=10,settle=3,faulty=1,snooze=1,backoff=1"
    run = a_run(story, "-N1", f"--exclude={','.join(OTHERS[nodes:])}", sizes=str(nodes), words=words, save_s=(20,))
    run.trains_at(nodes, after=1, deadline_s=120.0)
    run.goes_on()
    assert run.lost_steps() == 0
    told = run.told_of()
    assert any("longer than its grace" in text for text in told), told
    assert not any("are made again" in text or "called off" in text for text in told), told
    (report,) = story.get(f"/v1/report?job={run.job}")["jobs"]
    assert not report["steps_redone"], report


def test_a_run_that_begins_where_no_agent_is_trains_on_its_own_nodes_to_its_end(story: Story) -> None:
    story.hurt(FaultKind.KILL_AGENT, "n1")
    story.wait("its agent is away", lambda: story.silent_agents() == ["n1"])
    run = a_run(story, "-N2", "-wn1,n2", FEW, steps=40)
    run.trains_at(2)
    assert story.wait_end(run.job, 60.0).state == "COMPLETED"
    assert (run.sizes, run.step) == ([2], 40)
    assert [line for line in story.lines("out") if "told of no coordinator in time: the run stays at its size" in line]


def test_a_run_whose_agent_answers_too_late_stays_at_its_size_and_is_told_so(story: Story) -> None:
    agent = agent_of(story.bed, "n1").pid
    os.kill(agent, signal.SIGSTOP)
    try:
        run = a_run(story, "-N2", "-wn1,n2", FEW)
        run.trains_at(2)
    finally:
        os.kill(agent, signal.SIGCONT)
    story.wait("it is told", lambda: run.told_of("elastic.alone"), 30.0)
    assert "its script started before the agent of its node answered" in story.explain(str(run.job))
    run.goes_on()
    assert (run.sizes, run.replicas(LIVE)) == ([2], {})


def test_two_runs_share_what_is_idle_and_do_not_take_it_from_each_other(story: Story) -> None:
    words = "grace=10,settle=1,faulty=1,snooze=2,backoff=5"
    runs = [a_run(story, "-N1", "--exclusive", "--exclude=n5,n6", sizes="4", words=words) for _ in range(2)]
    for run in runs:
        run.trains_at(1)
    story.wait("no node is idle", lambda: sum(sizes[-1] for sizes in (run.sizes for run in runs)) == 4, 60.0)
    before = [len(run.sizes) for run in runs]
    for run in runs:
        run.goes_on()
    for run in runs:
        run.goes_on(steps=100, deadline_s=60.0)
    assert [len(run.sizes) for run in runs] == before, "nobody's size changed meanwhile"


@pytest.mark.long
def test_nodes_that_come_and_go_make_few_changes_and_the_run_goes_on(story: Story) -> None:
    run = grown(story, words="grace=10,settle=1,faulty=1,snooze=1,backoff=8")
    short = story.script("short.sh", "sleep 4")
    for _ in range(6):
        other = story.submit(short, "-N1", "--exclusive", FEW)
        story.wait_end(other, 60.0)
    changes = run.shown()["changes"]
    assert changes <= 9, f"the pauses grow: {run.told_of()}"
    assert run.lost_steps() == 0
    run.goes_on()


TWICE = """
cd {dir}
srun --ntasks=1 --nodes=1 true
launch="{python} -m steward.job.launch {python} {dir}/train.py"
trap : TERM
setsid --wait srun --no-kill --ntasks-per-node=1 $launch first --steps=400 --sample-s=0.004
setsid --wait srun --no-kill --ntasks-per-node=1 $launch second --steps=60 --sample-s=0.004
"""


def test_a_script_that_trains_twice_on_nodes_of_its_own_grows_in_the_first_and_ends_both(story: Story) -> None:
    """The replica's script runs the first training again: it must not take part in the second."""
    story.dir.chmod(0o1777)
    for name in ("first", "second"):
        (story.dir / name).mkdir()
    (story.dir / "train.py").write_text((EXAMPLE / "train.py").read_text())
    text = TWICE.format(dir=story.dir, python=python_of(story.bed))
    options = ("-N2", "--exclusive", "--ntasks-per-node=1", FEW, f"--elastic=3,{QUICK}")
    job = story.submit(story.script("twice.sh", text), *options)
    first, second = (ElasticStory(story=story, folder=story.dir / name, job=job) for name in ("first", "second"))
    first.trains_at(3, after=1)
    second.trains_at(2)
    story.wait("its replica is over", lambda: not first.replicas(LIVE), 20.0)
    story.wait_end(job, 60.0)
    assert story.job(job).state == "COMPLETED"
    assert [run.lines("done")[-1]["step"] for run in (first, second)] == [400, 60]
    assert second.sizes == [2]
    assert first.lost_steps() == second.lost_steps() == 0


NAMES = ("a b;c $(touch {dir}/hurt) `id` ü\"'\\%n %j", "x\ny")


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_name_of_a_run_is_a_name_and_nothing_else(story: Story, name: str) -> None:
    run = grown(story, f"--job-name={name.format(dir=story.dir)}")
    _, node = run.replica()
    assert node == "n3"
    story.bed.run(["scancel", str(run.job)])
    story.wait("nothing of it is left", lambda: not run.replicas(LIVE), 20.0)
    assert not (story.dir / "hurt").exists()


def test_another_users_job_that_says_it_is_a_replica_is_none(story: Story) -> None:
    run = grown(story, "--exclude=n5,n6", sizes="3")
    liar = story.submit(
        story.script("liar.sh", "sleep 600"),
        "-N1",
        "--nodelist=n4",
        f"--comment=steward-elastic:{run.job}:r77",
        "--output=/dev/null",
        user="nobody",
    )
    story.wait_state(liar, "RUNNING")
    run.goes_on()
    assert story.job(liar).state == "RUNNING", "it is nobody's replica: it is left alone"
    assert run.sizes[-1] == 3
    story.bed.run(["scancel", str(run.job)])
    story.wait("the run is over", lambda: run.shown()["phase"] == "ended", 20.0)
    assert story.job(liar).state == "RUNNING"


def test_a_replica_whose_time_is_up_costs_no_step_and_is_replaced(story: Story) -> None:
    run = grown(story)
    replica, _ = run.replica()
    story.bed.run(["scontrol", "update", f"jobid={replica}", "timelimit=1"])
    run.trains_at(2, after=2, deadline_s=90.0)
    run.trains_at(3, after=3)
    assert run.lost_steps() == 0
    story.wait("its job is over", lambda: replica not in run.replicas(LIVE), 60.0)


@pytest.mark.long
def test_a_base_whose_time_is_up_ends_with_its_replicas_and_is_not_resumed(story: Story) -> None:
    run = grown(story)
    story.bed.run(["scontrol", "update", f"jobid={run.job}", "timelimit=1"])
    story.wait_state(run.job, "TIMEOUT", 120.0)
    story.wait("no replica is left", lambda: not run.replicas(LIVE), 20.0)
    story.wait("the run is over", lambda: run.shown()["phase"] == "ended", 20.0)


@pytest.mark.parametrize("at", [pytest.param("asks", marks=pytest.mark.long), "size"])
@pytest.mark.parametrize("killed", WHO)
def test_who_is_killed_while_the_run_grows_keeps_it_from_nothing(story: Story, killed: str, at: str) -> None:
    """When a replica job is asked for, and when all ranks are asked to save for it."""
    run = a_run(story, "-N2", FEW)
    story.wait("it is about to grow", lambda: run.told_of(f"elastic.{at}"), 60.0)
    kill(story, run, killed)
    run.trains_at(3, after=1, deadline_s=120.0)
    run.goes_on()
    assert run.lost_steps() <= KEEP_EVERY
    assert story.job(run.job).restarts == 0


@pytest.mark.long
@pytest.mark.parametrize("killed", WHO)
def test_who_is_killed_while_the_run_gives_a_node_back_does_not_end_it(story: Story, killed: str) -> None:
    run = grown(story)
    run.goes_on()
    replica, _ = run.replica()
    story.bed.run(["scancel", str(replica)])
    kill(story, run, killed)
    run.trains_at(2, after=2, deadline_s=60.0)
    run.trains_at(3, after=3, deadline_s=120.0)
    assert run.lost_steps() <= KEEP_EVERY
    assert story.job(run.job).restarts == 0


def kill(story: Story, run: ElasticStory, what: str) -> None:
    match what:
        case "head":
            story.hurt(FaultKind.KILL_HEAD)
            story.hurt(FaultKind.START_HEAD)
        case "agent":
            story.hurt(FaultKind.KILL_AGENT, "n1")
            story.hurt(FaultKind.START_AGENT, "n1")
        case "coordinator":
            run.kill_coordinator()
        case _:
            story.hurt(FaultKind.RESTART_SLURMCTLD)
