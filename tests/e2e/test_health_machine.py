"""What a machine's own faults lead to where all nodes are on one machine (the local bed): a disk, a file system and a
file server that fail are seen by every node at once. test_docker_health.py has those of one machine alone.

Root only: it mounts. The clock and the memory are those of one node.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.adapters import proc
from steward.adapters.proc import Process
from steward.adapters.process import run
from steward.adapters.providers.local import LocalProvider
from steward.model.ids import NodeName
from steward.testbed.bed import Bed
from steward.testbed.faults import FaultKind
from steward.testbed.reset import reset
from tests.e2e.conftest import own_place
from tests.e2e.findings import telling
from tests.e2e.lost_memory import memory_lost
from tests.e2e.story import Story
from tests.e2e.wrong_clock import BEHIND_S, wrong_clock
from tests.fakes.hung_mount import can_mount, hung_mount

REPAIR_S = 60.0
SHARED_TYPE = "juicefs"
"""A type of shared file systems that FUSE serves."""

pytestmark = pytest.mark.skipif(not can_mount(), reason="only root can mount, and /dev/fuse must be there")


@pytest.fixture(scope="module")
def story(health_bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    reset(health_bed)
    with own_place(health_bed, request) as place:
        yield Story(health_bed, place)


@contextlib.contextmanager
def small_disk(path: str) -> Iterator[Path]:
    run(["mount", "-t", "tmpfs", "-o", "size=1m", "bed", path], timeout_s=10)
    try:
        yield Path(path)
    finally:
        run(["umount", "-l", path], timeout_s=10)


def agent_of(story: Story, node: str) -> Process:
    machine = LocalProvider(story.bed.spec.dir).machine(NodeName(node))
    assert machine is not None
    agent = machine.program("agent")
    assert agent is not None
    return agent


def askers(story: Story) -> list[int]:
    """Children of any agent that ask file systems."""
    agents = [agent_of(story, node) for node in story.bed.spec.node_names]
    return [seen.process.pid for agent in agents for seen in proc.descendants(agent) if name_of(seen.process) == "stat"]


def name_of(process: Process) -> str:
    try:
        return Path(f"/proc/{process.pid}/comm").read_text().strip()
    except OSError:  # it has ended
        return ""


def all_idle(story: Story) -> bool:
    return all(story.node_state(node) == "IDLE" for node in story.bed.spec.node_names)


def setting(story: Story, section: str, key: str) -> str:
    value = story.bed.spec.settings[section][key]
    assert isinstance(value, list)
    return str(value[0])


def test_a_full_disk_in_report_mode_is_told_of_every_node_and_drains_none(story: Story) -> None:
    began = time.time()
    with small_disk(setting(story, "checks.disk", "paths")) as disk:
        (disk / "log").write_bytes(bytes(1000 << 10))
        story.wait("all tell it", lambda: len(telling(story, "disk")) == 6)
        assert {one["severity"] for one in telling(story, "disk").values()} == {"degraded"}
        (disk / "log").unlink()
        story.wait("it is good again", lambda: not telling(story, "disk"))
    assert story.cases(since=began) == []
    assert all_idle(story)


def test_a_file_system_that_all_nodes_see_turn_read_only_is_one_incident(story: Story) -> None:
    """Three nodes make an incident, and nodes look at different moments: at most two may be out before it."""
    began = time.time()
    with small_disk(setting(story, "checks.mounts", "writable")) as disk:
        run(["mount", "-o", "remount,ro", str(disk)], timeout_s=10)
        story.wait("there is an incident", lambda: story.events("incident.opened", since=began))
        story.wait("all tell it", lambda: len(telling(story, "mounts")) >= 4)
        run(["mount", "-o", "remount,rw", str(disk)], timeout_s=10)
        story.wait("it is good again", lambda: not telling(story, "mounts"))
        story.wait("all are in service", lambda: all_idle(story))
    assert len(story.events("incident.opened", since=began)) == 1
    assert len({case["node"] for case in story.cases(since=began) if case["marked"]}) <= 2


def test_a_file_server_that_hangs_is_the_clusters_and_disturbs_neither_agent_nor_job(story: Story) -> None:
    began = time.time()
    job = story.submit(story.script("job.sh", f"while [ ! -e {story.dir}/go ]; do date +%s >>beats; sleep 0.5; done\n"))
    story.wait_state(job, "RUNNING")
    with hung_mount(story.dir / "home", SHARED_TYPE):
        for node in ("n1", "n2"):  # file servers are looked at once a minute: a new agent looks at once
            story.hurt(FaultKind.KILL_AGENT, node)
            story.hurt(FaultKind.START_AGENT, node)
        story.wait("it is told", lambda: {"n1", "n2"} <= telling(story, "fs.shared").keys(), 40.0)
        told = telling(story, "fs.shared")["n1"]
        assert (told["scope"], f"{story.dir}/home: hung" in told["text"]) == ("cluster", True)
        story.wait("it is an incident", lambda: story.events("incident.opened", since=began))
        beats = len(story.lines("beats"))
        assert story.silent_agents() == []
        assert 0 < len(askers(story)) <= len(story.bed.spec.node_names)
        story.wait("the job goes on", lambda: len(story.lines("beats")) > beats + 2, 5.0)
    story.wait("who hung is gone", lambda: not askers(story), 10.0)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    assert [case for case in story.cases(since=began) if case["marked"]] == []
    for node in ("n1", "n2"):
        story.hurt(FaultKind.KILL_AGENT, node)
        story.hurt(FaultKind.START_AGENT, node)
    story.wait("it is good again", lambda: not telling(story, "fs.shared") and not story.silent_agents(), 40.0)


def test_a_clock_that_jumps_is_told_and_drains_nothing(story: Story) -> None:
    began = time.time()
    agent = agent_of(story, "n4")
    argv = Path(f"/proc/{agent.pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    pairs = Path(f"/proc/{agent.pid}/environ").read_bytes().decode().split("\0")[:-1]
    env = dict(pair.split("=", 1) for pair in pairs)
    story.hurt(FaultKind.KILL_AGENT, "n4")
    with open(os.devnull, "wb") as null:
        wrong = subprocess.Popen(argv, env={**env, **wrong_clock(story.dir)}, stdout=null, stderr=null)
    try:
        story.wait("it is told", lambda: "n4" in telling(story, "clock"))
        text = telling(story, "clock")["n4"]["text"]
        assert f"the clock is {BEHIND_S:.0f}." in text or f"the clock is {BEHIND_S - 1:.0f}." in text
        assert "behind the head's" in text
    finally:
        wrong.kill()
        wrong.wait()
    story.hurt(FaultKind.START_AGENT, "n4")
    story.wait("it is good again", lambda: "n4" not in telling(story, "clock") and not story.silent_agents(), 20.0)
    assert [case for case in story.cases("n4", since=began) if case["marked"]] == []
    assert story.node_state("n4") == "IDLE"


def test_a_node_with_less_memory_than_slurm_gives_to_jobs_is_replaced(story: Story) -> None:
    before, began = story.instance("n5"), time.time()
    with memory_lost(story.bed, "n5"):
        story.hurt(FaultKind.KILL_AGENT, "n5")  # memory is looked at once an hour, and by a new agent at once
        story.hurt(FaultKind.START_AGENT, "n5")
        story.wait("it is out", lambda: "steward:memory" in story.node_field("n5", "Reason"), 30.0)
    case = story.wait_case("n5", "closed", REPAIR_S, since=began)
    assert (case["check"], case["rung"], case["why"]["rule"]) == ("memory", "replace", "node.degraded")
    assert story.instance("n5") != before
    story.wait("it takes jobs again", lambda: story.node_state("n5") == "IDLE")
