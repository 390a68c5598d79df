"""Slurm's own reasons as Slurm itself comes to write them: what Steward does then, whom it names, how it ends.

Those that cannot be brought about on one machine are written as slurmctld would write them (test_slurm_reasons.py).
"""

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from steward.adapters import proc
from steward.model.ids import NodeName
from steward_bed.bed import Bed
from steward_bed.faults import FaultKind
from steward_bed.layout import Layout
from steward_bed.providers import local_machine
from steward_bed.providers.local import LocalProvider
from tests.e2e.changed_conf import changed_conf
from tests.e2e.story import Story
from tests.fakes.hung_mount import HungMount, can_mount

REPAIR_S = 120.0
NODE = "n5"


def out_for(story: Story, reason: str, since: float, node: str = NODE) -> None:
    """Wait until Steward has told that Slurm took the node out for that reason (the reason itself may soon be ours)."""

    def is_told() -> bool:
        told = story.events("node.slurm_reason", since=since)
        return any(event["node"] == node and f"Slurm says '{reason}" in event["text"] for event in told)

    story.wait(f"Slurm says {reason}", is_told, 90.0)


def serves(story: Story, node: str = NODE, within_s: float = 60.0) -> None:
    story.wait(f"{node} takes jobs again", lambda: story.node_state(node) == "IDLE", within_s)
    # and the head has seen it so
    story.wait("its checks passed", lambda: "HealthCheck:Passed" in story.node_field(node, "ActiveFeatures"))


def machine(bed: Bed, node: str) -> local_machine.Machine:
    found = LocalProvider(bed.spec.dir).machine(NodeName(node))
    assert found is not None
    return found


def restart_slurmd(story: Story, node: str = NODE) -> None:
    story.hurt(FaultKind.RESTART_SERVICES, node)


@pytest.fixture
def epilog(story: Story) -> Iterator[Story]:
    """Slurm's Epilog fails on the nodes that a file names."""
    script = story.script("epilog.sh", f'! grep -qx "$SLURMD_NODENAME" {story.dir}/bad 2>/dev/null\n')
    with changed_conf(story.bed, lambda conf: f"{conf}\nEpilog={script}\n"):
        yield story


def test_a_node_whose_epilog_failed_is_given_back_when_it_passes(epilog: Story) -> None:
    before, began = epilog.instance(NODE), time.time()
    (epilog.dir / "bad").write_text(f"{NODE}\n")
    job = epilog.submit(epilog.script("job.sh", "true"), "-N1", "-w", NODE)
    out_for(epilog, "Epilog error", began)
    (epilog.dir / "bad").unlink()
    case = epilog.wait_case(NODE, "closed", REPAIR_S, since=began)
    assert (case["check"], case["rung"]) == ("slurm.epilog_error", "none")
    serves(epilog)
    assert epilog.instance(NODE) == before
    assert epilog.job(job).state == "COMPLETED"


def test_an_epilog_that_fails_everywhere_is_one_incident_and_touches_no_machine(epilog: Story) -> None:
    nodes = sorted(epilog.bed.spec.node_names)
    before, began = {node: epilog.instance(node) for node in nodes}, time.time()
    (epilog.dir / "bad").write_text("".join(f"{node}\n" for node in nodes))
    epilog.submit(epilog.script("job.sh", "true"), "-N6", "--exclusive")
    for node in nodes:
        out_for(epilog, "Epilog error", began, node)
    epilog.wait("it is one incident", lambda: epilog.events("incident", since=began))
    (epilog.dir / "bad").unlink()
    for node in nodes:
        epilog.wait_case(node, "closed", 240.0, since=began)
        serves(epilog, node)
    assert {node: epilog.instance(node) for node in nodes} == before
    assert {case["rung"] for case in epilog.cases(since=began)} <= {"none"}


@contextmanager
def nodes_said_to_be(story: Story, change: Callable[[str], str]) -> Iterator[None]:
    """Slurm runs by other lines about nodes for a while; it takes such only when slurmctld restarts."""
    conf = story.bed.spec.dir / "etc" / "slurm.conf"
    before = conf.read_text()
    conf.write_text(change(before))
    assert conf.read_text() != before
    try:
        _restart_all(story)
        yield
    finally:
        conf.write_text(before)
        _restart_all(story)


def _restart_all(story: Story) -> None:
    story.hurt(FaultKind.RESTART_SLURMCTLD)
    for node in story.bed.spec.node_names:
        restart_slurmd(story, node)


@pytest.fixture
def honest(story: Story) -> Iterator[Story]:
    """Slurm compares what nodes have with what slurm.conf says of them."""

    def change(conf: str) -> str:
        conf = conf.replace("SlurmdParameters=config_overrides", "")
        return re.sub(r"(?m)^(NodeName=.*?) CPUs=\d+ RealMemory=\d+ ", r"\1 CPUs=1 RealMemory=1000 ", conf)

    with nodes_said_to_be(story, change):
        serves(story)
        yield story


def test_a_node_with_fewer_gpus_than_slurm_gives_to_jobs_is_rebooted(honest: Story) -> None:
    before, began = honest.instance(NODE), time.time()
    gres = honest.bed.spec.dir / "etc" / "gres.conf"
    whole = gres.read_text()
    try:
        gres.write_text(whole.replace("[0-7]", "[0-3]"))
        restart_slurmd(honest)
        out_for(honest, "gres/gpu count reported lower than configured", began)
    finally:
        gres.write_text(whole)
    case = honest.wait_case(NODE, "closed", REPAIR_S, since=began)
    assert (case["check"], case["rung"]) == ("slurm.gres_lower", "reboot")
    serves(honest)
    assert honest.instance(NODE) == before


MORE = {
    "n1": (r" CPUs=1 ", " CPUs=1024 ", "Low socket*core*thread count"),
    "n2": (r" RealMemory=1000 ", " RealMemory=99999999 ", "Low RealMemory"),
}
"""What slurm.conf says of a node for a while, and what Slurm says then: no machine here has so much."""


def test_what_slurm_conf_newly_asks_of_machines_is_told_and_touches_none(honest: Story) -> None:
    before, began = {node: honest.instance(node) for node in MORE}, time.time()

    def ask_for_more(conf: str) -> str:
        for node, (had, has, _) in MORE.items():
            conf = re.sub(rf"(?m)^(NodeName={node} .*?){had}", rf"\1{has}", conf)
        return conf

    def is_told(node: str, reason: str) -> bool:
        told = [event["text"] for event in honest.events("node.slurm_reason", since=began) if event["node"] == node]
        return any(reason in text and "a person must look" in text for text in told)

    with nodes_said_to_be(honest, ask_for_more):
        for node, (_, _, reason) in MORE.items():
            honest.wait(f"Slurm says {reason}, and it is told", partial(is_told, node, reason), 60.0)
        assert [case for node in MORE for case in honest.cases(node, since=began)] == []
    for node in MORE:
        serves(honest, node, REPAIR_S)
    assert {node: honest.instance(node) for node in MORE} == before


@pytest.mark.skipif(not can_mount(), reason="needs root and /dev/fuse")
def test_a_node_with_a_process_that_cannot_be_killed_is_given_back_when_it_is_gone(
    story: Story, tmp_path: Path
) -> None:
    before, began = story.instance(NODE), time.time()
    with changed_conf(story.bed, lambda conf: f"{conf}\nUnkillableStepTimeout=5\nKillWait=2\n"):
        with HungMount(tmp_path):
            job = story.submit(story.script("job.sh", f"srun cat {tmp_path}/file\n"), "-N1", "-w", NODE)
            story.wait_state(job, "RUNNING")
            time.sleep(2.0)
            story.bed.run(["scancel", str(job)])
            out_for(story, "Kill task failed", began)
        case = story.wait_case(NODE, "closed", REPAIR_S, since=began)
        assert (case["check"], case["rung"]) == ("slurm.kill_task_failed", "none")
        serves(story)
    assert story.instance(NODE) == before


def test_a_node_with_a_full_spool_is_given_back_when_there_is_space(story: Story) -> None:
    before, began = story.instance(NODE), time.time()
    spool = Layout(root=story.bed.spec.dir).node(NODE) / "spool"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(spool)], check=True)
    try:
        subprocess.run(["sh", "-c", f"cat /dev/zero >{spool}/full"], check=False, stderr=subprocess.DEVNULL)
        story.submit(story.script("job.sh", "sleep 1\n"), "-N1", "-w", NODE)
        out_for(story, "SlurmdSpoolDir is full", began)
    finally:
        subprocess.run(["umount", "-l", str(spool)], check=True)
    case = story.wait_case(NODE, "closed", REPAIR_S, since=began)
    assert (case["check"], case["rung"]) == ("slurm.spool_full", "none")
    serves(story)
    assert story.instance(NODE) == before


def test_a_slurmd_that_does_not_come_back_is_judged_by_the_agent(story: Story) -> None:
    """This bed's agents may restart no service: the next rung is due."""
    began = time.time()
    with changed_conf(story.bed, lambda conf: f"{conf}\nSlurmdTimeout=8\n"):
        slurmd = machine(story.bed, NODE).program("slurmd")
        assert slurmd is not None
        proc.send(slurmd, signal.SIGKILL)
        story.wait("Slurm says so", lambda: "Not responding" in story.node_field(NODE, "Reason"), 60.0)
        case = story.wait_case(NODE, "closed", REPAIR_S * 2, since=began)
        serves(story)
    assert (case["check"], case["rung"]) == ("slurmd", "reboot")
