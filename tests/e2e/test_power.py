"""Groups of `State=CLOUD` nodes: Slurm's own ResumeProgram and SuspendProgram make and end the machines."""

import json
import shutil
import sys
from collections.abc import Iterator

import pytest

from steward_bed.bed import Bed
from steward_bed.faults import FaultKind
from steward_bed.layout import Layout
from steward_bed.local_controller import Controller
from steward_bed.local_setup import find_program
from tests.e2e.capacity import CLUSTER, PARTITION, Capacity, wish
from tests.e2e.conftest import brought_up
from tests.e2e.groups_bed import give_access

NODES = ("n1", "n2", "n3")
_PROGRAM = """#!{python}
import subprocess, sys, time, uuid
from pathlib import Path
from steward_bed.providers.local import LocalProvider
from steward.model.ids import NodeName
from steward.model.instance import Slot

if {is_resume}:
    time.sleep(1.0)  # Slurm takes a boot within the second in which it asked for one for the boot before
machines = LocalProvider(Path("{root}"))
argv = ["{scontrol}", "show", "hostnames", sys.argv[1]]
for name in subprocess.run(argv, capture_output=True, text=True, timeout=10, check=True).stdout.split():
    if {is_resume}:
        machines.launch(Slot(node=NodeName(name), group="workers", role="Compute"), uuid.uuid4().hex)
    else:
        for one in machines.instances().values():
            if one.node == name:
                machines.terminate(one.id)
"""
_SLURM = """ResumeProgram={root}/wrappers/resume
SuspendProgram={root}/wrappers/suspend
SuspendTime=864000
SuspendTimeout=2
ResumeTimeout=30
ResumeRate=0
SuspendRate=0
SlurmctldParameters=power_save_interval=1,power_save_min_interval=0
PrivateData=cloud
"""


def _make_cloud(bed: Bed) -> None:
    """The bed's nodes become `State=CLOUD`; what the local provider makes, Slurm's programs make now."""
    layout = Layout(root=bed.spec.dir)
    controller = Controller(layout)
    for name in ("resume", "suspend"):
        program = layout.wrappers / name
        text = _PROGRAM.format(
            python=sys.executable, scontrol=find_program("scontrol"), root=layout.root, is_resume=name == "resume"
        )
        program.write_text(text)
        program.chmod(0o755)
    controller.kill("stewardd")
    controller.kill("slurmctld")
    nodes = layout.slurm_conf.read_text().replace("State=UNKNOWN", "State=CLOUD")
    layout.slurm_conf.write_text(_SLURM.format(root=layout.root) + nodes)
    plan = json.loads(layout.machines.read_text())
    plan["programs"][0]["argv"].append("-b")  # these machines share one uptime, and Slurm waits for a new boot
    layout.machines.write_text(json.dumps(plan))
    shutil.rmtree(layout.controller / "slurmctld")  # the state of nodes that were none of a cloud
    (layout.controller / "slurmctld").mkdir()
    before, _, rest = layout.steward_toml.read_text().partition("[provider.local]\n")
    text = before + "[provider.power]\norder_s = 4.0\n[" + rest.partition("\n[")[2]
    text = text.replace('[capacity]\nprovider = "local"\n', "[capacity]\n")
    layout.steward_toml.write_text(text.replace('provider = "local"', 'provider = "power"'))
    controller.restart("slurmctld")
    controller.restart("stewardd")


@pytest.fixture
def cloud(request: pytest.FixtureRequest) -> Iterator[Capacity]:
    for bed in brought_up(request, nodes=len(NODES), steward=True, groups=True):
        _make_cloud(bed)
        yield Capacity(bed=bed, dir=bed.shared, access=give_access(bed))


def _wait_states(cloud: Capacity, state: str, count: int) -> None:
    cloud.wait(f"{count} nodes are {state}", lambda: [cloud.node_state(n) for n in NODES].count(state) == count, 40.0)


def _run_job(cloud: Capacity) -> str:
    job = cloud.submit(cloud.script("hello.sh", "srun hostname\n"), "-N2", "-n2", "-p", PARTITION)
    return cloud.wait_end(job).state


def test_a_group_of_cloud_nodes_is_made_repaired_made_smaller_and_deleted(cloud: Capacity) -> None:
    cloud.create(wish(2))
    cloud.wait_group("InService", 2)
    _wait_states(cloud, "IDLE+CLOUD", 2)
    assert _run_job(cloud) == "COMPLETED"
    before = cloud.instances()
    bad, lost = sorted(before)
    cloud.hurt(FaultKind.FAIL_CHECK, bad)
    cloud.hurt(FaultKind.KILL_NODE, lost)
    for node in (bad, lost):
        closed = cloud.wait_case(node, "closed", 60.0)
        assert closed["returned"], cloud.explain(node)
    _wait_states(cloud, "IDLE+CLOUD", 2)
    assert not set(cloud.instances().values()) & set(before.values())
    assert _run_job(cloud) == "COMPLETED"
    cloud.update(wish(1))
    cloud.wait_members(1)
    cloud.api.delete_cluster(ClusterName=CLUSTER)
    cloud.wait("no cluster is listed", lambda: not cloud.api.list_clusters()["ClusterSummaries"], 60.0)
    cloud.wait("every node is off", lambda: all("POWERED_DOWN" in cloud.node_state(node) for node in NODES), 30.0)
    cloud.wait("no machine is left", lambda: not cloud.bed.status().nodes)
