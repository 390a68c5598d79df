"""What stewardd wrote into Slurm goes with it: `python -m steward.head.leave`, which its package's removal runs."""

import subprocess
import sys
from pathlib import Path

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.model.ids import NodeName
from steward.policy.traits import HEALTH
from tests.contract.conftest import Clusters

N1, N2 = NodeName("n1"), NodeName("n2")


def test_the_features_of_steward_go_and_those_of_the_site_stay(clusters: Clusters, tmp_path: Path) -> None:
    cluster = clusters.of(Path("/"))
    conf = cluster.env["SLURM_CONF"]
    slurm = CommandLineSlurm(conf=conf)
    before = {name: (node.features, node.active_features) for name, node in slurm.nodes().items()}
    slurm.set_feature([N1], HEALTH, "Passed")
    slurm.set_feature([N2], HEALTH, "Failed")
    assert any(each.startswith(HEALTH) for each in slurm.nodes()[N1].active_features)
    settings = tmp_path / "steward.toml"
    settings.write_text(f'[cluster]\nslurm_conf = "{conf}"\n[agent]\nhead = "head1:6861"\n')
    argv = [sys.executable, "-m", "steward.head.leave"]
    subprocess.run(argv, env={**cluster.env, "STEWARD_CONFIG": str(settings)}, check=True, timeout=60)
    assert {name: (node.features, node.active_features) for name, node in slurm.nodes().items()} == before


def test_slurm_that_does_not_answer_is_told_with_what_ends_the_features(tmp_path: Path) -> None:
    settings = tmp_path / "steward.toml"
    settings.write_text(f'[cluster]\nslurm_conf = "{tmp_path}/none.conf"\n[agent]\nhead = "head1:6861"\n')
    argv = [sys.executable, "-m", "steward.head.leave"]
    env = {"PATH": "/usr/bin:/bin", "STEWARD_CONFIG": str(settings)}
    done = subprocess.run(argv, env=env, check=False, timeout=60, capture_output=True, text=True)
    assert done.returncode == 1
    assert "until `scontrol reconfigure`" in done.stderr
    assert done.stderr.count("\n") == 1
