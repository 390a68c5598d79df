"""Slurm's own hooks ask the agent: real slurmctld and slurmds with HealthCheckProgram, Prolog and Epilog."""

import os
import re
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from steward_bed.bed import Bed
from steward_bed.faults import FaultKind
from steward_bed.local_setup import find_shim
from tests.e2e.conftest import brought_up
from tests.e2e.on_node import agent_of
from tests.e2e.story import XID_79, Story

HOOKS = Path(__file__).resolve().parents[2] / "spank" / "hooks"
CONF = "hooks.conf"
LOG = "hooks.log"
BAD = "bad fatal kernel_log.xid79"
LATE = "status=0 unknown: the agent did not answer in time"
TRIES = 5


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


def at_a_job(story: Story, hook: str, node: str, script: Path) -> tuple[int, str]:
    """A job on the node at which the hook had the agent's answer, and what it said. On a busy machine the agent may
    need longer than its 15 ms: such a job runs as on a sound node."""
    for _ in range(TRIES):
        job = story.submit(script, "-w", node)
        lines = partial(at_the_job, story, hook, node, job)
        story.wait(f"{hook} has run", lines, 60.0)
        if LATE not in lines()[0]:
            return job, lines()[0]
    raise AssertionError(f"the agent of {node} was late {TRIES} times: {said(story, hook, node)}")


def at_the_job(story: Story, hook: str, node: str, job: int) -> list[str]:
    return [line for line in said(story, hook, node) if f" job={job} " in line]


def break_gpu(story: Story, node: str) -> None:
    story.hurt(FaultKind.KERNEL_LOG, node, XID_79)
    story.wait("Slurm's health check hears it", partial(has_said, story, "steward-healthcheck", node, BAD), 45.0)


def test_the_hooks_of_a_sound_node_say_so_and_jobs_run(story: Story) -> None:
    script = story.script("job.sh", "true\n")
    for hook in ("steward-prolog", "steward-epilog"):
        job, line = at_a_job(story, hook, "n1", script)
        assert "status=0 fine" in line
        assert story.wait_end(job, 60.0).state == "COMPLETED"
    story.wait(
        "Slurm's health check says so", partial(has_said, story, "steward-healthcheck", "n1", "status=0 fine"), 45.0
    )


def test_a_bad_node_runs_its_job_unless_the_site_wants_it_refused(story: Story) -> None:
    break_gpu(story, "n2")
    script = story.script("job.sh", "echo $SLURM_JOB_ID >>ran\n")
    runs, line = at_a_job(story, "steward-prolog", "n2", script)
    assert f"status=0 {BAD}" in line
    assert story.wait_end(runs, 60.0).state == "COMPLETED"
    assert str(runs) in story.lines("ran")

    configure(story.bed, "PROLOG_REFUSE=fatal\n")
    refused, line = at_a_job(story, "steward-prolog", "n2", script)
    assert f"status=1 {BAD}" in line
    story.wait("Slurm drains it", lambda: "Prolog error" in story.node_field("n2", "Reason"), 60.0)
    story.wait_state(refused, "PENDING")
    assert str(refused) not in story.lines("ran")
    story.bed.run(["scancel", str(refused)])


def test_a_frozen_agent_delays_no_job(story: Story) -> None:
    configure(story.bed, "PROLOG_REFUSE=fatal\nEPILOG_REFUSE=degraded\n")
    agent = agent_of(story.bed, "n3").pid
    os.kill(agent, signal.SIGSTOP)
    try:
        began = time.monotonic()
        job = story.submit(story.script("job.sh", "true\n"), "-w", "n3")
        assert story.wait_end(job, 60.0).state == "COMPLETED"
        assert time.monotonic() - began < 30
    finally:
        os.kill(agent, signal.SIGCONT)
    for hook in ("steward-prolog", "steward-epilog"):
        (line,) = at_the_job(story, hook, "n3", job)
        assert LATE in line
        took = re.search(r" (\d+)us ", line)
        assert took is not None
        assert int(took[1]) < 500_000  # 20 ms, a shell, and a machine that does other things


def test_an_epilog_that_finds_the_node_at_fault_fails(story: Story) -> None:
    break_gpu(story, "n4")
    configure(story.bed, "EPILOG_REFUSE=degraded\n")
    _, line = at_a_job(story, "steward-epilog", "n4", story.script("job.sh", "true\n"))
    assert f"status=1 {BAD}" in line
    story.wait("Slurm drains it", lambda: "Epilog error" in story.node_field("n4", "Reason"), 60.0)
