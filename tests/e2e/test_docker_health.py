"""What the faults of one machine alone lead to: every container has its own disks, file systems and clock.

Each node breaks in its own way at the same moment. A file server that hangs is in test_health_machine.py (the local
bed): containers get no FUSE. Without munged an agent can prove nothing that it says: nobody can ask it to restart
munged, so it does that itself, long before Slurm gives the node up after SlurmdTimeout (300 s).
"""

import re
import time
from collections.abc import Mapping

import pytest

from tests.e2e.findings import bad, instance
from tests.e2e.health_bed import OWN
from tests.e2e.lost_memory import memory_lost
from tests.e2e.on_node import on_node, put_site_check
from tests.e2e.story import Story
from tests.e2e.wrong_clock import BEHIND_S

REPAIR_S = 90.0
MUNGE_S = 25.0
CLOCK = "$(/opt/steward/bin/python3 -I -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')/wrong_clock.pth"


@pytest.fixture(scope="module")
def hurt_at(ward: Story, before: Mapping[str, str]) -> float:
    """n1's disk is full, n2's file system read-only, n4's clock wrong, n5 has lost memory."""
    began = time.time()
    small_disk(ward, "n1", OWN.full)
    on_node(ward.bed, "n1", "sh", "-c", f"head -c 1000k /dev/zero >{OWN.full}/log")
    small_disk(ward, "n2", OWN.writable)
    on_node(ward.bed, "n2", "mount", "-o", "remount,ro", OWN.writable)
    set_clock(ward, "n4")
    with memory_lost(ward.bed, "n5"):
        # memory is looked at by a new agent at once; a size counts with which slurmd registered
        on_node(ward.bed, "n5", "systemctl", "restart", "slurmd", "steward-agent")
        ward.wait("n5 is out", lambda: "steward:memory" in ward.node_field("n5", "Reason"), 30.0)
    return began


def small_disk(story: Story, node: str, path: str) -> None:
    on_node(story.bed, node, "mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "bed", path)


def set_clock(story: Story, node: str) -> None:
    """Of the agent alone, by a file that its Python reads at the start: the packages' programs hear no PYTHONPATH."""
    once = 'time.real = getattr(time, "real", time.time)'  # the file may be read twice
    text = f"import time; {once}; time.time = lambda real=time.real: real() - {BEHIND_S}"
    on_node(story.bed, node, "sh", "-c", f"echo '{text}' >{CLOCK}")
    restart_agent(story, node)


def restart_agent(story: Story, node: str) -> None:
    on_node(story.bed, node, "systemctl", "daemon-reload")
    on_node(story.bed, node, "systemctl", "restart", "steward-agent")


@pytest.mark.parametrize(
    ("node", "check", "rung"), [("n1", "disk", "replace"), ("n2", "mounts", "reboot"), ("n5", "memory", "replace")]
)
def test_a_machine_that_lost_what_jobs_need_is_taken_out_and_comes_back_well(
    ward: Story, before: Mapping[str, str], hurt_at: float, node: str, check: str, rung: str
) -> None:
    case = ward.wait_case(node, "closed", REPAIR_S, since=hurt_at)
    assert (case["check"], case["rung"], case["why"]["rule"]) == (check, rung, "node.degraded")
    assert (instance(ward, node) != before[node]) == (rung == "replace")
    ward.wait("it takes jobs again", lambda: ward.node_state(node) == "IDLE")
    assert bad(ward, node) == {}


def test_a_dead_munged_is_restarted_by_the_nodes_own_agent_and_no_job_and_no_node_is_touched(ward: Story) -> None:
    job = ward.submit(ward.script("work.sh", "sleep 12; hostname"), "-w", "n6")
    ward.wait_state(job, "RUNNING")
    began = time.time()
    on_node(ward.bed, "n6", "systemctl", "stop", "munge")
    put_site_check(ward.bed, "n6", "news", "#!/bin/sh\nexit 0\n")  # something that the agent has to prove
    ward.wait("munged answers again", lambda: is_active(ward, "n6", "munge"), MUNGE_S)
    ward.wait("its agent is back", lambda: not ward.silent_agents(), MUNGE_S)
    assert ward.wait_end(job).exit_code == "0:0"
    after = ward.submit(ward.script("after.sh", "hostname"), "-w", "n6")
    assert ward.wait_end(after).exit_code == "0:0"
    assert ward.cases("n6", since=began) == []
    assert "munge dead" in on_node(ward.bed, "n6", "cat", "/bed/log/steward-agent-n6.log")


def is_active(story: Story, node: str, unit: str) -> bool:
    return on_node(story.bed, node, "sh", "-c", f"systemctl is-active {unit} || true").strip() == "active"


def test_a_clock_that_jumps_is_told_and_drains_nothing(ward: Story, hurt_at: float) -> None:
    ward.wait("it is told", lambda: "clock" in bad(ward, "n4"))
    found = re.search(r"([\d.]+) s behind", text := bad(ward, "n4")["clock"]["text"])
    assert found is not None, text
    assert float(found[1]) == pytest.approx(BEHIND_S, abs=1.0)
    on_node(ward.bed, "n4", "sh", "-c", f"rm {CLOCK}")
    restart_agent(ward, "n4")
    ward.wait("it is good again", lambda: "clock" not in bad(ward, "n4") and not ward.silent_agents())
    assert [case for case in ward.cases("n4", since=hurt_at) if case["marked"]] == []
    assert ward.node_state("n4") == "IDLE"
