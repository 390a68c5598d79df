"""Slurm's own hooks ask the agent: real slurmctld and slurmds with HealthCheckProgram, Prolog and Epilog."""

import os
import re
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from steward.adapters import proc
from steward.adapters.providers.local import LocalProvider
from steward.model.ids import NodeName
from steward.testbed.bed import Bed
from steward.testbed.faults import FaultKind
from steward.testbed.shim import find_shim
from tests.e2e.conftest import brought_up
from tests.e2e.story import XID_79, Story

HOOKS = Path(__file__).resolve().parents[2] / "spank" / "hooks"
CONF = "hooks.conf"
LOG = "hooks.log"
BAD = "bad fatal kernel_log.xid79"


@pytest.fixture(scope="module")
def hooked(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """A cluster of n1..n4 whose slurm.conf names the hooks, and whose head only reports: Slurm acts by itself."""
    for bed in brought_up(request, nodes=4, steward=True, settings={"repair": {"mode": "report"}}):
        lines = ["HealthCheckInterval=1", "SchedulerParameters=nohold_on_prolog_fail"]
        lines += [f"{key}={wrapped(bed, name)}" for key, name in KEYS.items()]
        configure(bed, "")
        with Path(bed.env["SLURM_CONF"]).open("a") as conf:
            conf.write("".join(f"{line}\n" for line in lines))
        bed.run(["scontrol", "reconfigure"])
        yield bed


KEYS = {"HealthCheckProgram": "steward-healthcheck", "Prolog": "steward-prolog", "Epilog": "steward-epilog"}


def wrapped(bed: Bed, hook: str) -> Path:
    """The hook with the bed's own paths, which notes what it said, how long it took and how it ended."""
    path = bed.shared / hook
    path.write_text(
        f"""#!/bin/bash
export STEWARD_HOOKS_CONF={bed.shared}/{CONF}
begin=$EPOCHREALTIME
said=$({HOOKS}/{hook} 2>&1)
status=$?
echo "{hook} $SLURMD_NODENAME job=$SLURM_JOB_ID $(( ${{EPOCHREALTIME/./}} - ${{begin/./}} ))us status=$status $said" \\
    >>{bed.shared}/{LOG}
exit $status
"""
    )
    path.chmod(0o755)
    return path


def configure(bed: Bed, more: str) -> None:
    socket = Path(bed.env["SLURM_CONF"]).parents[1] / "run" / "agent-%n.sock"
    verdict = find_shim().with_name("steward-verdict")
    (bed.shared / CONF).write_text(f"STEWARD_VERDICT={verdict}\nSTEWARD_SOCKET={socket}\n{more}")


@pytest.fixture
def story(hooked: Bed, tmp_path: Path) -> Story:
    configure(hooked, "")
    place = hooked.shared / tmp_path.name
    place.mkdir(mode=0o777)
    return Story(hooked, place)


def said(story: Story, hook: str, node: str) -> list[str]:
    log = story.bed.shared / LOG
    return [line for line in log.read_text().splitlines() if line.startswith(f"{hook} {node} ")] if log.exists() else []


def has_said(story: Story, hook: str, node: str, what: str) -> bool:
    return any(what in line for line in said(story, hook, node))


def break_gpu(story: Story, node: str) -> None:
    story.hurt(FaultKind.KERNEL_LOG, node, XID_79)
    story.wait("Slurm's health check hears it", partial(has_said, story, "steward-healthcheck", node, BAD), 45.0)


def test_the_hooks_of_a_sound_node_say_so_and_jobs_run(story: Story) -> None:
    job = story.submit(story.script("job.sh", "true\n"), "-w", "n1")
    assert story.wait_end(job, 60.0).state == "COMPLETED"
    for hook in KEYS.values():
        story.wait(f"{hook} says so", partial(has_said, story, hook, "n1", "status=0 fine"), 45.0)


def test_a_bad_node_runs_its_job_unless_the_site_wants_it_refused(story: Story) -> None:
    break_gpu(story, "n2")
    script = story.script("job.sh", "echo $SLURMD_NODENAME >>ran\n")
    job = story.submit(script, "-w", "n2")
    assert story.wait_end(job, 60.0).state == "COMPLETED"
    assert has_said(story, "steward-prolog", "n2", f"status=0 {BAD}")

    configure(story.bed, "PROLOG_REFUSE=fatal\n")
    again = story.submit(script, "-w", "n2")
    story.wait("Slurm drains it", lambda: "Prolog error" in story.node_field("n2", "Reason"), 60.0)
    assert has_said(story, "steward-prolog", "n2", f"status=1 {BAD}")
    story.wait_state(again, "PENDING")
    assert story.lines("ran") == ["n2"]
    story.bed.run(["scancel", str(again)])


def test_a_frozen_agent_delays_no_job(story: Story) -> None:
    configure(story.bed, "PROLOG_REFUSE=fatal\nEPILOG_REFUSE=degraded\n")
    agent = agent_of(story.bed, "n3")
    os.kill(agent, signal.SIGSTOP)
    try:
        began = time.monotonic()
        job = story.submit(story.script("job.sh", "true\n"), "-w", "n3")
        assert story.wait_end(job, 60.0).state == "COMPLETED"
        assert time.monotonic() - began < 30
    finally:
        os.kill(agent, signal.SIGCONT)
    for hook in ("steward-prolog", "steward-epilog"):
        (line,) = [line for line in said(story, hook, "n3") if f"job={job} " in line]
        assert "status=0 unknown: the agent did not answer in time" in line
        took = re.search(r" (\d+)us ", line)
        assert took is not None
        assert int(took[1]) < 500_000  # 20 ms, a shell, and a machine that does other things


def test_an_epilog_that_finds_the_node_at_fault_fails(story: Story) -> None:
    configure(story.bed, "EPILOG_REFUSE=degraded\n")
    job = story.submit(story.script("job.sh", "sleep 3\n"), "-w", "n4")
    story.wait_state(job, "RUNNING")
    break_gpu(story, "n4")
    story.wait("Slurm drains it", lambda: "Epilog error" in story.node_field("n4", "Reason"), 60.0)
    (line,) = [line for line in said(story, "steward-epilog", "n4") if f"job={job} " in line]
    assert f"status=1 {BAD}" in line


def agent_of(bed: Bed, node: str) -> int:
    machine = LocalProvider(bed.spec.dir).machine(NodeName(node))
    assert machine is not None
    pids = [seen.process.pid for seen in proc.descendants(machine.init)]
    (agent,) = [pid for pid in pids if b"steward.agent\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return agent
