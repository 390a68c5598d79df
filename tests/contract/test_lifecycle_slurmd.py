"""The shipped step 90-slurmd against a real slurmctld."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.adapters.proc import all_processes
from steward.adapters.process import run
from tests.contract.cluster import Cluster
from tests.contract.conftest import Clusters

STEP = Path(__file__).resolve().parents[2] / "lifecycle-scripts/on_create.sh"
NODE = "worker-1"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def cluster(clusters: Clusters) -> Iterator[Cluster]:
    """A node that slurm.conf does not name is left out of Slurm again."""
    found = clusters.of(Path("/"))
    yield found
    for pid in slurmds():
        os.kill(pid, signal.SIGKILL)
    found.run("scontrol", "delete", f"nodename={NODE}", check=False)


def slurmds() -> list[int]:
    """Those of the node."""
    words = f"-N\0{NODE}\0".encode()
    return [seen.process.pid for seen in all_processes() if not seen.dead and words in cmdline(seen.process.pid)]


def cmdline(pid: int) -> bytes:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def run_step(cluster: Cluster, folder: Path) -> str:
    (folder / "resource_config.json").write_text(json.dumps({"SlurmConfig": {"PrimaryControllerIp": "127.0.0.1"}}))
    env = {
        **cluster.env,
        "ROOT": str(folder),
        "SAGEMAKER_RESOURCE_CONFIG_PATH": str(folder / "resource_config.json"),
        "STEWARD_NODE": NODE,
        "STEWARD_GROUP": "worker",
        "STEWARD_FEATURES": "worker",
        "STEWARD_ROLE": "Compute",
    }
    return run(["bash", str(STEP), "90-slurmd"], env=env, timeout_s=60).text


def test_the_node_registers_drained_with_its_groups_feature_and_once(cluster: Cluster, tmp_path: Path) -> None:
    run_step(cluster, tmp_path)
    cluster.wait("it registers", lambda: "DYNAMIC" in cluster.run("scontrol", "show", "node", NODE, check=False))
    shown = cluster.run("scontrol", "-o", "show", "node", NODE)
    assert "DRAIN" in shown
    assert "AvailableFeatures=worker " in shown
    running = slurmds()
    assert "runs already" in run_step(cluster, tmp_path)
    assert slurmds() == running
    assert len(running) == 1
