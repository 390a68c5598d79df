"""Steward's own death: jobs are unharmed, cases go on, nothing is done twice."""

import time

import pytest

from steward.model.case import new_case_id
from steward_bed.faults import FaultKind
from tests.e2e.story import XID_79, Story, task_script

AWAY_S = 60.0
HELD = """[ "${{SLURM_RESTART_COUNT:-0}}" = 0 ] || exit 0
while [ ! -e {dir}/die ]; do sleep 0.1; done
exit 1
"""


@pytest.mark.once
def test_head_stopped_for_a_minute_in_a_case_and_a_hold(story: Story) -> None:
    """The head freezes while it repairs a node; meanwhile a script fails on another bad node and is held."""
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    bystander = story.submit(story.script("calm.sh", f"while [ ! -e {story.dir}/go ]; do sleep 0.1; done\n"), "-N1")
    held = story.submit(story.script("held.sh", HELD.format(dir=story.dir)), "--auto-resume=1", "-N1", "--exclusive")
    story.wait("the script to be held is known", lambda: any(held == known["id"] for known in story.get("/v1/jobs")))
    victim = next(
        node
        for node in (line.split()[0].split(":")[1] for line in story.lines("started"))
        if node != story.job(job).batch_host
    )
    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)
    story.wait("a case is open", lambda: story.cases(victim, since=hurt_at), 15.0)
    story.hurt(FaultKind.STOP_HEAD)
    bad_host = story.job(held).batch_host
    story.hurt(FaultKind.KERNEL_LOG, bad_host, XID_79)
    (story.dir / "die").touch()
    time.sleep(AWAY_S)
    assert story.job(bystander).state == "RUNNING"
    assert story.job(job).state in ("RUNNING", "PENDING")
    assert (story.job(held).state, story.job(held).restarts) == ("RUNNING", 0)
    story.hurt(FaultKind.CONT_HEAD)
    assert story.wait_state(held, "COMPLETED", 60.0).restarts == 1
    story.wait("it runs again", lambda: len(story.lines("started")) >= 4, 30.0)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    assert story.wait_end(bystander).state == "COMPLETED"
    for node in (victim, bad_host):
        story.wait_case(node, "closed", 60.0, since=hurt_at)


@pytest.mark.parametrize("step", ["drain", "release", "launch", "provision", "verify", "return"])
def test_head_killed_at_a_step_of_a_case_comes_to_the_same_end(story: Story, step: str) -> None:
    """kill -9 as soon as the case is seen at the step (or past it), start again: one new machine, node back."""
    order = ["suspect", "drain", "release", "launch", "provision", "verify", "return", "closed"]
    before: dict[str, str] = {status.name: status.instance for status in story.bed.status().nodes}
    began = time.time()
    story.bed.run(["scontrol", "update", "nodename=n2", "state=fail", "reason=Action:Replace"])
    story.wait(
        f"the case has come to {step}",
        lambda: any(order.index(str(case["step"])) >= order.index(step) for case in story.cases("n2", since=began)),
    )
    story.hurt(FaultKind.KILL_HEAD)
    story.hurt(FaultKind.START_HEAD)
    story.wait_case("n2", "closed", 60.0, since=began)
    story.wait("it is back", lambda: story.node_state("n2") == "IDLE")
    assert story.instance("n2") != before["n2"]
    assert len(story.cases("n2", since=began)) == 1
    after: dict[str, str] = {status.name: status.instance for status in story.bed.status().nodes}
    assert {name: after[name] for name in after if name != "n2"} == {n: before[n] for n in before if n != "n2"}


def test_refused_launches_are_tried_again_and_seen(story: Story) -> None:
    story.hurt(FaultKind.REFUSE_LAUNCH)
    began = time.time()
    story.bed.run(["scontrol", "update", "nodename=n3", "state=fail", "reason=Action:Replace"])
    story.wait("the refusal is told", lambda: any("capacity" in str(e["text"]) for e in story.events(since=began)))
    assert story.wait_case("n3", "launch", 5.0, since=began)
    story.hurt(FaultKind.ALLOW_LAUNCH)
    story.wait_case("n3", "closed", 90.0, since=began)


def test_a_node_whose_repair_no_head_remembers_is_checked_and_serves_again(story: Story) -> None:
    """Its store was lost with the head: only the mark in Slurm is left."""
    lost, began, before = new_case_id(7, time.time() - 60.0), time.time(), story.instance("n4")
    mark = f"reason=steward:gpu.ecc:replace:{lost}"
    story.bed.run(["scontrol", "update", "nodename=n4", "state=drain", mark])
    case = story.wait_case("n4", "closed", 60.0, since=began)
    assert (case["check"], case["rung"], case["why"]["rule"]) == ("gpu.ecc", "none", "node.lost_case")
    story.wait("it takes jobs", lambda: story.node_state("n4") == "IDLE")
    assert story.instance("n4") == before


def test_a_job_whose_node_was_dead_and_back_while_no_head_looked_runs_again(story: Story) -> None:
    """Slurm did not miss the node, and shows a run of which nothing is left; the job beside it goes on."""
    text = f"echo >>{story.dir}/$1-${{SLURM_RESTART_COUNT:-0}}\nwhile [ ! -e {story.dir}/go ]; do sleep 0.1; done\n"
    script, began = story.script("run.sh", text), time.time()
    jobs = {
        name: story.submit(script, "--auto-resume=1", "-N1", "--exclusive", arguments=(name,))
        for name in ("lost", "beside")
    }
    for name in jobs:
        story.wait(f"{name} runs", (story.dir / f"{name}-0").exists)
    story.wait("both are known", lambda: set(jobs.values()) <= {one["id"] for one in story.get("/v1/jobs")})
    host, instance = story.job(jobs["lost"]).batch_host, story.instance(story.job(jobs["lost"]).batch_host)
    story.hurt(FaultKind.KILL_HEAD)
    story.hurt(FaultKind.KILL_NODE, host)
    story.hurt(FaultKind.START_NODE, host)
    story.hurt(FaultKind.START_HEAD)
    story.wait("it runs again", (story.dir / "lost-1").exists, 30.0)
    assert story.instance(host) == instance
    assert story.cases(host, since=began) == []
    (story.dir / "go").touch()
    assert [story.wait_end(job).state for job in jobs.values()] == ["COMPLETED", "COMPLETED"]
    assert [story.job(job).restarts for job in jobs.values()] == [1, 0]
