"""What the faults of one machine alone lead to: every container has its own disks, file systems and clock.

Each node breaks in its own way at the same moment. A file server that hangs is in test_health_machine.py (the local
bed): containers get no FUSE. Without munged an agent can prove nothing that it says: nobody can ask it to restart
munged, so it does that itself, long before Slurm gives the node up after SlurmdTimeout (300 s).
"""

import time
from collections.abc import Iterator, Mapping

import pytest

from steward.testbed.bed import Bed
from steward.testbed.reset import reset
from tests.e2e.conftest import own_place
from tests.e2e.findings import bad, instance
from tests.e2e.health_bed import OWN
from tests.e2e.lost_memory import memory_lost
from tests.e2e.on_node import on_node, put_site_check
from tests.e2e.story import Story
from tests.e2e.wrong_clock import BEHIND_S, wrong_clock

REPAIR_S = 90.0
MUNGE_S = 25.0
DROP_IN = "/run/systemd/system/steward-agent.service.d"


@pytest.fixture(scope="module")
def story(health_bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    reset(health_bed)
    with own_place(health_bed, request) as place:
        yield Story(health_bed, place)


@pytest.fixture(scope="module")
def before(story: Story) -> Mapping[str, str]:
    """Each node's instance, before anything happens to it."""
    return {node: instance(story, node) for node in story.bed.spec.node_names}


@pytest.fixture(scope="module")
def hurt_at(story: Story, before: Mapping[str, str]) -> float:
    """n1's disk is full, n2's file system read-only, n4's clock wrong, n5 has lost memory."""
    began = time.time()
    small_disk(story, "n1", OWN.full)
    on_node(story.bed, "n1", "sh", "-c", f"head -c 1000k /dev/zero >{OWN.full}/log")
    small_disk(story, "n2", OWN.writable)
    on_node(story.bed, "n2", "mount", "-o", "remount,ro", OWN.writable)
    set_clock(story, "n4")
    with memory_lost(story.bed, "n5"):
        on_node(story.bed, "n5", "systemctl", "restart", "steward-agent")  # memory is looked at by a new agent at once
        story.wait("n5 is out", lambda: "steward:memory" in story.node_field("n5", "Reason"), 30.0)
    return began


def small_disk(story: Story, node: str, path: str) -> None:
    on_node(story.bed, node, "mount", "-t", "tmpfs", "-o", "size=1m", "bed", path)


def set_clock(story: Story, node: str) -> None:
    words = " ".join(f"{name}={value}" for name, value in wrong_clock(story.dir).items())
    script = f"mkdir -p {DROP_IN} && printf '[Service]\\nEnvironment=%s\\n' '{words}' >{DROP_IN}/clock.conf"
    on_node(story.bed, node, "sh", "-c", script)
    restart_agent(story, node)


def restart_agent(story: Story, node: str) -> None:
    on_node(story.bed, node, "systemctl", "daemon-reload")
    on_node(story.bed, node, "systemctl", "restart", "steward-agent")


@pytest.mark.parametrize(
    ("node", "check", "rung"), [("n1", "disk", "replace"), ("n2", "mounts", "reboot"), ("n5", "memory", "replace")]
)
def test_a_machine_that_lost_what_jobs_need_is_taken_out_and_comes_back_well(
    story: Story, before: Mapping[str, str], hurt_at: float, node: str, check: str, rung: str
) -> None:
    case = story.wait_case(node, "closed", REPAIR_S, since=hurt_at)
    assert (case["check"], case["rung"], case["why"]["rule"]) == (check, rung, "node.degraded")
    assert (instance(story, node) != before[node]) == (rung == "replace")
    story.wait("it takes jobs again", lambda: story.node_state(node) == "IDLE")
    assert bad(story, node) == {}


def test_a_dead_munged_is_restarted_by_the_nodes_own_agent_and_no_job_and_no_node_is_touched(story: Story) -> None:
    job = story.submit(story.script("work.sh", "sleep 12; hostname"), "-w", "n6")
    story.wait_state(job, "RUNNING")
    began = time.time()
    on_node(story.bed, "n6", "systemctl", "stop", "munge")
    put_site_check(story.bed, "n6", "news", "#!/bin/sh\nexit 0\n")  # something that the agent has to prove
    story.wait("munged answers again", lambda: is_active(story, "n6", "munge"), MUNGE_S)
    story.wait("its agent is back", lambda: not story.silent_agents(), MUNGE_S)
    assert story.wait_end(job).exit_code == "0:0"
    after = story.submit(story.script("after.sh", "hostname"), "-w", "n6")
    assert story.wait_end(after).exit_code == "0:0"
    assert story.cases("n6", since=began) == []
    assert "munge dead" in on_node(story.bed, "n6", "cat", "/bed/log/steward-agent-n6.log")


def is_active(story: Story, node: str, unit: str) -> bool:
    return on_node(story.bed, node, "sh", "-c", f"systemctl is-active {unit} || true").strip() == "active"


def test_a_clock_that_jumps_is_told_and_drains_nothing(story: Story, hurt_at: float) -> None:
    story.wait("it is told", lambda: "clock" in bad(story, "n4"))
    assert f"{BEHIND_S:.0f}." in bad(story, "n4")["clock"]["text"]
    on_node(story.bed, "n4", "rm", f"{DROP_IN}/clock.conf")
    restart_agent(story, "n4")
    story.wait("it is good again", lambda: "clock" not in bad(story, "n4") and not story.silent_agents())
    assert [case for case in story.cases("n4", since=hurt_at) if case["marked"]] == []
    assert story.node_state("n4") == "IDLE"
