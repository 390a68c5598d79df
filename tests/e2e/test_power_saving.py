"""Slurm's own power saving beside Steward: nodes that it suspends and resumes for jobs are nobody's fault.

Machines that are switched off and on keep their id, as those of a machine room do.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward_bed.bed import Bed
from steward_bed.faults import FaultKind
from steward_bed.layout import Layout
from steward_bed.local_setup import find_program
from tests.e2e.changed_conf import changed_conf
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.story import Story

ASLEEP = ("n2", "n3", "n4")
BOOT_S = 4
AGENT_LATER_S = 1
AGENTS_GRACE_S = 15.0
"""As on a real cluster: three agents that begin together on two busy cores need more than a test bed's 3 s."""
_PROGRAM = """#!{python}
import subprocess, sys, time, uuid
from pathlib import Path
from steward_bed.providers.local import LocalProvider
from steward_bed.providers.local_machine import power_off

machines = LocalProvider(Path("{root}"))
argv = ["{scontrol}", "show", "hostnames", sys.argv[1]]
names = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=True).stdout.split()
time.sleep({boot_s} if {is_resume} else 0)
for one in machines.instances().values():
    if one.node in names and {is_resume}:
        machines.reboot(one.id, uuid.uuid4().hex)
    elif one.node in names:
        power_off(machines.machine(one.node))
"""
_SLURM = """ResumeProgram={programs}/resume
SuspendProgram={programs}/suspend
SuspendTime=864000
SuspendTimeout=2
ResumeTimeout=60
ResumeRate=0
SuspendRate=0
SlurmctldParameters=power_save_interval=1,power_save_min_interval=0"""


def _write(programs: Path, text: str) -> None:
    for name in ("resume", "suspend"):
        program = programs / name
        program.write_text(text.replace("{is_resume}", str(name == "resume")))
        program.chmod(0o755)


def _boot_as_machines_do(layout: Layout) -> None:
    """Slurm waits for a new boot, and these machines share one uptime; an agent starts later than its slurmd."""
    plan = json.loads(layout.machines.read_text())
    slurmd, agent = plan["programs"]
    slurmd["argv"].append("-b")
    agent["argv"] = ["/bin/sh", "-c", f'sleep {AGENT_LATER_S}; exec "$@"', "sh", *agent["argv"]]
    layout.machines.write_text(json.dumps(plan))


@pytest.fixture
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Story]:
    _write(tmp_path, "#!/bin/true\n")
    conf, patient = _SLURM.format(programs=tmp_path), {"repair": {"agents_grace_s": AGENTS_GRACE_S}}
    for bed in brought_up(request, nodes=5, steward=True, slurm_conf=conf, settings=patient):
        layout = Layout(root=bed.spec.dir)
        text = _PROGRAM.replace("{python}", sys.executable).replace("{root}", str(layout.root))
        _write(tmp_path, text.replace("{boot_s}", str(BOOT_S)).replace("{scontrol}", find_program("scontrol")))
        _boot_as_machines_do(layout)
        with own_place(bed, request) as place:
            yield Story(bed, place)


def _suspend(story: Story) -> None:
    """What SuspendTime does, now."""
    story.bed.run(["scontrol", "update", f"nodename={','.join(ASLEEP)}", "state=power_down"])
    story.wait("they are off", lambda: all("POWERED_DOWN" in story.node_state(node) for node in ASLEEP), 30.0)
    story.wait("their agents are gone", lambda: set(ASLEEP) == set(story.silent_agents()))


def _machines(bed: Bed) -> dict[str, str]:
    return {status.name: status.instance for status in bed.status().nodes}


def test_nodes_that_sleep_and_are_woken_for_a_job_are_left_alone_and_a_dead_one_beside_them_is_not(
    saver: Story,
) -> None:
    before = _machines(saver.bed)
    _suspend(saver)
    time.sleep(3.0)  # longer than any detection takes
    hurt_at = saver.hurt(FaultKind.KILL_NODE, "n5")
    saver.wait_case("n5", "closed", 60.0, since=hurt_at)
    awake = saver.script("hello.sh", "srun sleep 1\n")
    job = saver.submit(awake, "--auto-resume=1", "-N3", "-n3", "-w", ",".join(ASLEEP))
    saver.wait("it boots them", lambda: "POWERING_UP" in saver.node_state("n2"))
    ended = saver.wait_end(job, 60.0)
    assert (ended.state, ended.restarts) == ("COMPLETED", 0), saver.tell()
    saver.wait("all agents are back", lambda: not saver.silent_agents())
    assert {case["node"] for case in saver.cases()} == {"n5"}
    assert saver.events("incident") == []
    after = _machines(saver.bed)
    assert {node for node in before if after[node] != before[node]} == {"n5"}


def test_a_machine_that_does_not_come_when_slurm_wakes_it_is_replaced_and_its_job_runs(
    saver: Story, tmp_path: Path
) -> None:
    before, began = _machines(saver.bed), time.time()
    _suspend(saver)
    with changed_conf(saver.bed, lambda conf: conf.replace("ResumeTimeout=60", "ResumeTimeout=8")):
        resume = (tmp_path / "resume").read_text()
        (tmp_path / "resume").write_text("#!/bin/true\n")
        job = saver.submit(saver.script("hello.sh", "srun sleep 1\n"), "--auto-resume=1", "-N1", "-w", "n2")
        saver.wait("Slurm gave it up", lambda: "ResumeTimeout reached" in saver.node_field("n2", "Reason"), 60.0)
        (tmp_path / "resume").write_text(resume)
        case = saver.wait_case("n2", "closed", 120.0, since=began)
    assert (case["check"], case["rung"]) == ("slurm.resume_timeout", "replace")
    assert {node for node in before if _machines(saver.bed)[node] != before[node]} == {"n2"}
    assert saver.wait_end(job, 60.0).state == "COMPLETED"
