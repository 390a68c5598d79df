"""Steward never harms: what it must leave alone, and what it must not believe."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from steward_bed.faults import FaultKind
from tests.e2e.story import Story, task_script


def test_an_agent_that_dies_alone_drains_nothing(story: Story) -> None:
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    victim = story.job(job).batch_host
    hurt_at = story.hurt(FaultKind.KILL_AGENT, victim)
    story.wait("the head noted it", lambda: story.events("agent", since=hurt_at) or story.events("node", since=hurt_at))
    time.sleep(6.0)  # longer than any detection takes
    assert "DRAIN" not in story.node_state(victim)
    assert "DOWN" not in story.node_state(victim)
    assert [case for case in story.cases(victim, since=hurt_at) if case["marked"]] == []
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    assert story.job(job).restarts == 0


def test_who_restarts_slurmd_and_the_agent_at_once_has_jobs_run_on(story: Story) -> None:
    """As an upgrade of both does: nobody listens there for a moment, and the agent is gone."""
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    for node in sorted(line.split()[0].split(":")[1] for line in story.lines("started")):
        hurt_at = story.hurt(FaultKind.RESTART_SERVICES, node)
        back_for_good(story, node)
        assert story.events("case.", since=hurt_at) == []
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    assert (story.job(job).restarts, len(story.lines("started"))) == (0, 2)


def test_services_that_stay_off_for_a_while_cost_no_job_though_slurm_asks_meanwhile(story: Story) -> None:
    """Slurm, which asks at the same port, calls the node not responding when it had no answer there for ten seconds."""
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    node = story.job(job).batch_host
    hurt_at = story.hurt(FaultKind.STOP_SERVICES, node)
    story.bed.run(["scancel", "--signal=CONT", str(job)])
    story.wait("Slurm gets no answer there", lambda: "NOT_RESPONDING" in story.node_state(node), 120.0)
    time.sleep(6.0)  # longer than any detection takes
    story.hurt(FaultKind.START_SERVICES, node)
    back_for_good(story, node)
    assert story.events("case.", since=hurt_at) == []
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    assert (story.job(job).restarts, len(story.lines("started"))) == (0, 2)


def back_for_good(story: Story, node: str) -> None:
    """Wait until all agents have been there for two seconds on end, and Slurm has the node in service.

    At the first look the head may not know yet that one is gone.
    """
    since = [time.monotonic()]

    def are_there() -> bool:
        if story.silent_agents():
            since[0] = time.monotonic()
        return time.monotonic() - since[0] >= 2.0

    story.wait("its agent is back, and stays", are_there)
    story.wait("it is in service", lambda: story.node_state(node) in ("ALLOCATED", "MIXED"))


def test_when_all_agents_vanish_no_node_is_touched_and_one_incident_tells_it(story: Story) -> None:
    began = time.time()
    nodes = [status.name for status in story.bed.status().nodes]
    for node in nodes:
        story.hurt(FaultKind.KILL_AGENT, node)
    story.wait("there is an incident", lambda: story.events("incident", since=began), 15.0)
    time.sleep(6.0)
    assert len([event for event in story.events("incident", since=began) if "opened" in str(event["kind"])]) == 1
    for node in nodes:
        assert story.node_state(node) in ("IDLE", "IDLE*")
    for node in nodes:
        story.hurt(FaultKind.START_AGENT, node)
    story.wait("it is over", lambda: any("over" in str(e["kind"]) for e in story.events("incident", since=began)), 30.0)


def test_a_job_on_a_rack_that_loses_its_power_runs_elsewhere_and_the_incident_ends(story: Story) -> None:
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    hosts = {line.split()[0].split(":")[1] for line in story.lines("started")}
    rack = [*sorted(hosts), next(node for node in story.bed.spec.node_names if node not in hosts)]
    began = time.time()
    with ThreadPoolExecutor(len(rack)) as hands:
        list(hands.map(partial(story.hurt, FaultKind.KILL_NODE), rack))
    story.wait("two tasks run again", lambda: len(story.lines("started")) == 4, 60.0)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    assert story.job(job).restarts == 1
    for node in rack:
        story.wait_case(node, "closed", 60.0, since=began)
    story.wait("no incident is open", lambda: story.get("/v1/status")["incidents"] == [])


def test_an_admins_drain_is_never_undone_or_overwritten(story: Story) -> None:
    story.bed.run(["scontrol", "update", "nodename=n5", "state=drain", "reason=disk swap, Ann"])
    try:
        hurt_at = story.hurt(FaultKind.FAIL_CHECK, "n5", "something is wrong")
        story.wait("a note says hands off", lambda: "Ann" in story.explain("n5") or "admin" in story.explain("n5"))
        story.hurt(FaultKind.KILL_NODE, "n5")
        time.sleep(8.0)
        assert story.node_field("n5", "Reason").startswith("disk swap, Ann")
        assert [case for case in story.cases("n5", since=hurt_at) if case["marked"]] == []
    finally:
        story.bed.restore()
        story.bed.run(["scontrol", "update", "nodename=n5", "state=resume"])


def test_action_replace_from_an_admin_is_a_command(story: Story) -> None:
    before = story.instance("n6")
    began = time.time()
    story.bed.run(["scontrol", "update", "nodename=n6", "state=fail", "reason=Action:Replace"])
    story.wait_case("n6", "closed", since=began)
    assert story.instance("n6") != before
    story.wait("it is back", lambda: story.node_state("n6") == "IDLE")


def test_a_near_miss_of_an_admins_command_is_told_and_not_done(story: Story) -> None:
    began = time.time()
    story.bed.run(["scontrol", "update", "nodename=n6", "state=drain", "reason=action:replace"])
    try:
        story.wait(
            "a warning says so", lambda: any("Action:Replace" in str(e["text"]) for e in story.events(since=began))
        )
        assert story.cases("n6", since=began) == []
    finally:
        story.bed.run(["scontrol", "update", "nodename=n6", "state=resume"])


def test_hostile_text_is_stored_as_text(story: Story) -> None:
    trap = story.dir / "trap"
    text = f"$(touch {trap}) `touch {trap}` '; touch {trap}; \" State=IDLE Reason=none \\n\x1b[31m"
    began = time.time()
    job = story.submit(story.script("job.sh", "sleep 5; exit 1\n"), "--auto-resume=1", f"--job-name={text}", "-N1")
    story.hurt(FaultKind.FAIL_CHECK, "n4", text)
    story.wait_case("n4", "closed", 60.0, since=began)
    assert story.wait_end(job, 30.0).restarts == 0
    assert not trap.exists()
    assert "\x1b" not in story.explain("n4") + story.explain(str(job)) + str(story.events(since=began))


def test_an_ordinary_users_job_is_resumed_too(story: Story) -> None:
    task = task_script(story)
    story.dir.chmod(0o777)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N1", "-n1", user="nobody")
    story.wait("it runs", lambda: len(story.lines("started")) == 1)
    victim = story.lines("started")[0].split()[0].split(":")[1]
    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)
    story.wait("it runs again", lambda: len(story.lines("started")) == 2)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    story.wait_case(victim, "closed", since=hurt_at)


def test_a_node_that_a_person_gives_back_in_a_pause_keeps_its_machine(story: Story) -> None:
    """Its repair waited for a job only. When the pause is over, a person has taken the node back."""
    go = story.dir / "go"
    job = story.submit(story.script("waits.sh", f"while [ ! -e {go} ]; do sleep 0.1; done\n"), "-w", "n2")
    story.wait_state(job, "RUNNING")
    machine = story.instance("n2")
    hurt = story.hurt(FaultKind.FAIL_CHECK, "n2", "looks broken")
    case = story.wait_case("n2", "release", since=hurt)
    story.bed.run(["steward", "pause", "a person looks at n2"])
    story.hurt(FaultKind.PASS_CHECK, "n2")
    story.bed.run(["scontrol", "update", "nodename=n2", "state=resume"])
    go.touch()
    story.wait_end(job)
    story.wait("it is in service", lambda: story.node_state("n2") == "IDLE")
    story.bed.run(["steward", "resume-actions"])
    later = story.submit(story.script("later.sh", "exec sleep 600\n"), "-w", "n2")
    closed = story.wait_case("n2", "closed", since=hurt)
    assert (closed["id"], "gave the node back" in closed["why"]["text"]) == (case["id"], True)
    assert story.wait_state(later, "RUNNING").restarts == 0
    assert story.instance("n2") == machine
    story.bed.run(["scancel", str(later)])
