"""Nodes whose names differ in the middle, as those of AWS do, are taken out, excluded and kept on real Slurm."""

from pathlib import Path

import pytest

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.include import IncludeFile
from steward.adapters.slurm.library import Library
from steward.model.ids import JobId, NodeName
from steward.model.mark import Mark
from steward.model.reservation import keep_name
from steward.policy.groups.gate import PartitionShape, partitions_text
from tests.contract.cluster import PARTITIONS, Cluster
from tests.contract.conftest import Clusters, wrappers
from tests.contract.slurm_worlds import a_nudge

NAMES = ("ip-10-0-1-5", "ip-10-0-2-5", "gpu1-ib", "gpu2-ib")
NODES = frozenset(map(NodeName, NAMES))
MARK = Mark(check="xid", action="drain", id="c1")
HOUR_S = 3600.0


@pytest.fixture
def cluster(slurm_root: Path, clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    if slurm_root != Path("/"):
        monkeypatch.setenv("PATH", f"{wrappers(tmp_path, slurm_root)}:/usr/sbin:/usr/bin:/sbin:/bin")
    return clusters.of(slurm_root, NAMES)


@pytest.fixture
def port(cluster: Cluster) -> CommandLineSlurm:
    include = IncludeFile(cluster.path(PARTITIONS), str(cluster.path("slurm.conf")))
    return CommandLineSlurm(conf=cluster.env["SLURM_CONF"], include=include)


def test_they_are_drained_and_given_back(port: CommandLineSlurm) -> None:
    port.drain(dict.fromkeys(NODES, MARK))
    assert all(port.nodes()[name].mark == MARK for name in NODES)
    port.give_back(NODES, MARK)

    assert not any(port.nodes()[name].is_drain for name in NODES)


def test_a_job_is_kept_off_them(port: CommandLineSlurm, cluster: Cluster) -> None:
    job = JobId(cluster.sbatch("--hold"))
    port.nudge([a_nudge(job, NODES)])

    assert port.jobs()[job].excluded == NODES


def test_they_are_kept_for_a_job(port: CommandLineSlurm) -> None:
    name = keep_name(JobId(7))
    port.keep_nodes(name, NODES, HOUR_S)

    assert port.reservations()[name].nodes == NODES


def test_a_deep_check_gets_them(port: CommandLineSlurm) -> None:
    name = "steward-deep-d1-0"
    port.reserve(name, NODES, HOUR_S)
    port.submit_deep(name, NODES, ("sleep", "300"), seconds=HOUR_S, output="/dev/null")

    assert port.reservations()[name].nodes == NODES
    assert [job.partition for job in port.jobs().values() if not job.is_over] == [name]


def test_a_partition_of_ours_has_them(port: CommandLineSlurm) -> None:
    port.write_partitions(partitions_text([PartitionShape(name="dev", open=True, members={"workers": NODES})]))

    assert port.partitions()["dev"].nodes == NODES


@pytest.mark.parametrize("road", ["commands", "library"])
def test_texts_of_a_job_in_any_script_are_read_as_they_were_written(cluster: Cluster, road: str) -> None:
    conf = cluster.env["SLURM_CONF"]
    port = CommandLineSlurm(conf=conf, library=Library(conf=conf) if road == "library" else None)
    texts = {"name": "学習-é-🚀", "account": "équipe-зрение", "comment": "größe=大, 🚀", "admin_comment": "ünïcode"}
    of_user = (f"--job-name={texts['name']}", f"--account={texts['account']}", f"--comment={texts['comment']}")
    job = JobId(cluster.sbatch("--hold", *of_user))
    cluster.run("scontrol", "update", f"jobid={job}", f"admincomment={texts['admin_comment']}")

    for found in (port.jobs(), port.jobs([job])):
        assert {field: getattr(found[job], field) for field in texts} == texts
