"""Faults of the cluster around Steward, with real processes: slurmctld dies, half of the network is cut, no munged.

The whole matrix of faults, on simulated time: tests/chaos and docs/reliability.md.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from steward_bed.faults import FaultKind
from tests.e2e.story import Story, task_script
from tests.e2e.test_health_breaker import MCE

CUT = ("n1", "n3", "n5")
CUT_S = 12.0
"""Longer than a node that is cut off alone is left in place."""
MUNGE_S = 8.0
DEAD_S = 4.0
STATE = "/var/lib/slurm/slurmctld/job_state"


@contextmanager
def _killed(story: Story, unit: str) -> Iterator[None]:
    """kill -9 of a unit of the controller's; started again at the end."""
    story.bed.run(["systemctl", "kill", "--signal=KILL", "--kill-whom=main", unit])
    story.bed.run(["systemctl", "stop", unit])
    assert story.bed.run(["systemctl", "is-active", unit], check=False).text.strip() != "active"
    try:
        yield
    finally:
        story.bed.run(["systemctl", "reset-failed", unit], check=False)
        story.bed.run(["systemctl", "start", unit])


def _wait_until_saved(story: Story, job: int) -> None:
    """slurmctld writes its state every five seconds at the earliest, later on a slow disk: killed before that, it would
    start the job once more."""
    word = f"saved-{job}-{time.time_ns()}"
    story.bed.run(["scontrol", "update", f"jobid={job}", f"comment={word}"])
    is_there = lambda: story.bed.run(["grep", "-qa", word, STATE], check=False).returncode == 0  # noqa: E731
    story.wait(f"slurmctld has written the state of job {job}", is_there, 30.0)


def _instances(story: Story) -> dict[str, str]:
    return {status.name: status.instance for status in story.bed.status().nodes}


def _out_of_service(story: Story) -> list[str]:
    states = {node: story.node_state(node) for node in story.bed.spec.node_names}
    return [f"{node}: {state}" for node, state in states.items() if "DRAIN" in state or "DOWN" in state]


def test_slurmctld_killed_while_a_node_is_replaced_leaves_one_case_and_one_new_machine(story: Story) -> None:
    """It dies before it has written that the node is out of service, and has forgotten that when it is back."""
    calm = story.submit(story.script("calm.sh", f"while [ ! -e {story.dir}/go ]; do sleep 0.1; done\n"), "-N1")
    host = story.wait_state(calm, "RUNNING").batch_host
    victim = next(node for node in story.bed.spec.node_names if node != host)
    before, began = _instances(story), time.time()
    story.hurt(FaultKind.REFUSE_LAUNCH)
    _wait_until_saved(story, calm)
    story.hurt(FaultKind.KERNEL_LOG, victim, MCE)
    story.wait_case(victim, "launch", since=began)
    with _killed(story, "slurmctld"):
        story.hurt(FaultKind.ALLOW_LAUNCH)
        time.sleep(DEAD_S)
    story.wait_case(victim, "closed", 60.0, since=began)
    story.wait("it is back", lambda: story.node_state(victim) == "IDLE")
    assert len(story.cases(since=began)) == 1
    assert {name for name, instance in _instances(story).items() if instance != before[name]} == {victim}
    assert (story.job(calm).state, story.job(calm).restarts) == ("RUNNING", 0)


def test_half_of_the_nodes_cut_off_is_one_incident_and_no_node_is_touched(story: Story) -> None:
    task = task_script(story)
    job = story.submit(story.script("calm.sh", f"srun bash {task}\n"), "-N6", "-n6")
    story.wait("six tasks run", lambda: len(story.lines("started")) == 6)
    before, began = _instances(story), time.time()
    with ThreadPoolExecutor(len(CUT)) as hands:  # one after the other, the first may be out before the others are late
        list(hands.map(partial(story.hurt, FaultKind.CUT_NODE), CUT))
    story.wait("there is an incident", lambda: story.events("incident.opened", since=began))
    time.sleep(CUT_S)
    assert _out_of_service(story) == []
    for node in CUT:
        story.hurt(FaultKind.JOIN_NODE, node)
    story.wait("it is over", lambda: story.events("incident.over", since=began), 40.0)
    assert len(story.events("incident.opened", since=began)) == 1
    story.wait("all agents are heard", lambda: not story.silent_agents())
    (story.dir / "go").touch()
    assert (story.wait_end(job).state, story.job(job).restarts) == ("COMPLETED", 0)
    assert _instances(story) == before
    assert story.cases(since=began) == []


def test_munged_down_on_the_controller_harms_no_job_and_no_node(story: Story) -> None:
    """Nobody can prove who he is: no command of the head reaches Slurm, no agent is let in."""
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    before, began = _instances(story), time.time()
    with _killed(story, "munge"):
        time.sleep(MUNGE_S)
    story.wait("all agents are heard", lambda: not story.silent_agents())
    (story.dir / "go").touch()
    assert (story.wait_end(job).state, story.job(job).restarts) == ("COMPLETED", 0)
    assert _out_of_service(story) == []
    assert _instances(story) == before
    assert [case for case in story.cases(since=began) if case["marked"]] == []
