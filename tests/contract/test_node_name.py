"""The agent finds Slurm's name of its node as slurmd does: by NodeHostname in slurm.conf."""

from pathlib import Path

import pytest

from steward.adapters.node.identity import node_name
from steward.ports import Permanent


def test_a_host_without_a_name_has_the_one_that_slurm_knows_it_by(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    lines = (
        "ClusterName=names",
        "SlurmctldHost=head",
        "NodeName=node7.pi.example.org NodeHostname=node7",
        "NodeName=blue1 NodeHostname=cn1.long.example.org",
        "NodeName=n1 NodeHostname=many Port=7001",
        "NodeName=n2 NodeHostname=many Port=7002",
        "NodeName=gpu[1-2]",
    )
    conf.write_text("\n".join(lines) + "\n")
    names = {
        "node7.pi.example.org": "node7.pi.example.org",
        "node7": "node7.pi.example.org",
        "cn1.long.example.org": "blue1",
        "gpu2.pi.example.org": "gpu2",
        "unknown.example.org": "unknown",
    }
    assert {host: node_name("", str(conf), host) for host in names} == names
    with pytest.raises(Permanent, match=r"several nodes on many: set agent\.node_name"):
        node_name("", str(conf), "many")
    assert node_name("n2", str(conf), "many") == "n2"
