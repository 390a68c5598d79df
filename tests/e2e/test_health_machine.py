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
from typing import Any

import pytest

from steward.adapters import proc
from steward.adapters.proc import ProcessKey
from steward.adapters.process import run
from steward_bed.faults import FaultKind
from tests.e2e.findings import telling
from tests.e2e.lost_memory import memory_lost
from tests.e2e.on_node import agent_of
from tests.e2e.story import Story
from tests.e2e.wrong_clock import BEHIND_S, wrong_clock
from tests.fakes.hung_mount import can_mount, hung_mount

REPAIR_S = 60.0
SHARED_TYPE = "juicefs"
"""A type of shared file systems that FUSE serves."""

pytestmark = pytest.mark.skipif(not can_mount(), reason="only root can mount, and /dev/fuse must be there")


@contextlib.contextmanager
def small_disk(path: str) -> Iterator[Path]:
    run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "bed", path], timeout_s=10)
    try:
        yield Path(path)
    finally:
        run(["umount", "-l", path], timeout_s=10)


def askers(story: Story) -> list[int]:
    """Children of any agent that ask file systems."""
    agents = [agent_of(story.bed, node) for node in story.bed.spec.node_names]
    return [seen.process.pid for agent in agents for seen in proc.descendants(agent) if name_of(seen.process) == "stat"]


def name_of(process: ProcessKey) -> str:
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


def test_a_full_disk_in_report_mode_is_told_of_every_node_and_drains_none(ward: Story) -> None:
    began = time.time()
    with small_disk(setting(ward, "checks.disk", "paths")) as disk:
        (disk / "log").write_bytes(bytes(1000 << 10))
        ward.wait("all tell it", lambda: len(telling(ward, "disk")) == 6)
        assert {one["severity"] for one in telling(ward, "disk").values()} == {"degraded"}
        (disk / "log").unlink()
        ward.wait("it is good again", lambda: not telling(ward, "disk"))
    assert ward.cases(since=began) == []
    assert all_idle(ward)


def test_a_file_system_that_all_nodes_see_turn_read_only_is_one_incident(ward: Story) -> None:
    """Three nodes make an incident, and nodes look at different moments: at most two may be out before it."""
    began = time.time()

    def opened() -> list[dict[str, Any]]:
        return [event for event in ward.events("incident.opened", since=began) if "mounts" in event["text"]]

    with small_disk(setting(ward, "checks.mounts", "writable")) as disk:
        run(["mount", "-o", "remount,ro", str(disk)], timeout_s=10)
        ward.wait("there is an incident", opened)
        ward.wait("all tell it", lambda: len(telling(ward, "mounts")) >= 4)
        run(["mount", "-o", "remount,rw", str(disk)], timeout_s=10)
        ward.wait("it is good again", lambda: not telling(ward, "mounts"))
        ward.wait("all are in service", lambda: all_idle(ward))
    assert len(opened()) == 1
    assert len({case["node"] for case in ward.cases(since=began) if case["marked"]}) <= 2


def test_a_file_server_that_hangs_is_the_clusters_and_disturbs_neither_agent_nor_job(ward: Story) -> None:
    began = time.time()
    job = ward.submit(ward.script("job.sh", f"while [ ! -e {ward.dir}/go ]; do date +%s >>beats; sleep 0.5; done\n"))
    ward.wait_state(job, "RUNNING")
    with hung_mount(ward.dir / "home", SHARED_TYPE):
        for node in ("n1", "n2"):  # file servers are looked at once a minute: a new agent looks at once
            ward.hurt(FaultKind.KILL_AGENT, node)
            ward.hurt(FaultKind.START_AGENT, node)
        ward.wait("it is told", lambda: {"n1", "n2"} <= telling(ward, "fs.shared").keys(), 40.0)
        told = telling(ward, "fs.shared")["n1"]
        assert (told["scope"], f"{ward.dir}/home: hung" in told["text"]) == ("cluster", True)
        ward.wait("it is an incident", lambda: ward.events("incident.opened", since=began))
        beats = len(ward.lines("beats"))
        assert ward.silent_agents() == []
        assert 0 < len(askers(ward)) <= len(ward.bed.spec.node_names)
        ward.wait("the job goes on", lambda: len(ward.lines("beats")) > beats + 2, 5.0)
    ward.wait("who hung is gone", lambda: not askers(ward), 10.0)
    (ward.dir / "go").touch()
    assert ward.wait_end(job).state == "COMPLETED"
    assert [case for case in ward.cases(since=began) if case["marked"]] == []
    for node in ("n1", "n2"):
        ward.hurt(FaultKind.KILL_AGENT, node)
        ward.hurt(FaultKind.START_AGENT, node)
    ward.wait("it is good again", lambda: not telling(ward, "fs.shared") and not ward.silent_agents(), 40.0)


def test_a_clock_that_jumps_is_told_and_drains_nothing(ward: Story) -> None:
    began = time.time()
    agent = agent_of(ward.bed, "n4")
    argv = Path(f"/proc/{agent.pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    pairs = Path(f"/proc/{agent.pid}/environ").read_bytes().decode().split("\0")[:-1]
    env = dict(pair.split("=", 1) for pair in pairs)
    ward.hurt(FaultKind.KILL_AGENT, "n4")
    with open(os.devnull, "wb") as null:
        wrong = subprocess.Popen(argv, env={**env, **wrong_clock(ward.dir)}, stdout=null, stderr=null)
    try:
        ward.wait("it is told", lambda: "n4" in telling(ward, "clock"))
        text = telling(ward, "clock")["n4"]["text"]
        assert f"the clock is {BEHIND_S:.0f}." in text or f"the clock is {BEHIND_S - 1:.0f}." in text
        assert "behind the head's" in text
    finally:
        wrong.kill()
        wrong.wait()
    ward.hurt(FaultKind.START_AGENT, "n4")
    ward.wait("it is good again", lambda: "n4" not in telling(ward, "clock") and not ward.silent_agents(), 20.0)
    assert [case for case in ward.cases("n4", since=began) if case["marked"]] == []
    assert ward.node_state("n4") == "IDLE"


def test_a_node_with_less_memory_than_slurm_gives_to_jobs_is_replaced(ward: Story) -> None:
    before, began = ward.instance("n5"), time.time()
    with memory_lost(ward.bed, "n5"):
        # memory is looked at once an hour, and by a new agent at once; a size counts with which slurmd registered
        ward.hurt(FaultKind.RESTART_SERVICES, "n5")
        ward.wait("it is out", lambda: "steward:memory" in ward.node_field("n5", "Reason"), 30.0)
    case = ward.wait_case("n5", "closed", REPAIR_S, since=began)
    assert (case["check"], case["rung"], case["why"]["rule"]) == ("memory", "replace", "node.degraded")
    assert ward.instance("n5") != before
    ward.wait("it takes jobs again", lambda: ward.node_state("n5") == "IDLE")
