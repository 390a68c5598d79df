"""Three teams share two machines of four GPUs: HyperPod's own walk-through, made with the `aws` command."""

import getpass
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steward.model.arn import slurm_cluster_arns
from steward.model.desired import CapacityPolicy
from steward.testbed.accounting import sacctmgr
from steward.testbed.bed import Backend, Bed, BedSpec
from steward.testbed.local import LocalBed
from steward.testbed.wait import wait_until
from tests.builders.quota import G6
from tests.e2e.groups_bed import Access, give_access

G, G2, M = "onlygputeam", "onlygputeam2", "mixquotatype"
GRACE_S = 2
SOON_S = 30.0
HARDWARE = f"CPUs=48 RealMemory=196608 Gres=gpu:l4:4 Features={G6.name}"
SHARES: dict[str, list[dict[str, Any]]] = {
    G: [{"InstanceType": G6.name, "Accelerators": 2, "VCpu": 48}],
    G2: [{"InstanceType": G6.name, "Accelerators": 2}],
    M: [
        {"InstanceType": G6.name, "Accelerators": 2},
        {"InstanceType": "ml.p5.48xlarge", "Count": 3},
        {"InstanceType": "ml.c5.2xlarge", "VCpu": 2},
    ],
}
PERCENT = {G: 50, G2: 10, M: 10}


@dataclass(frozen=True, slots=True)
class Teams:
    """A bed with three teams, and how they are made and watched."""

    bed: Bed
    access: Access

    def aws(self, *words: str) -> Any:
        argv = [str(Path(sys.executable).with_name("aws")), "sagemaker", *words, "--output", "json"]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.bed.spec.dir), **self.access.env}
        done = subprocess.run(argv, env=env, capture_output=True, timeout=60, check=True)
        return json.loads(done.stdout or b"null")

    def create(self, team: str) -> None:
        sharing = {"Strategy": "LendAndBorrow", "BorrowLimit": PERCENT[team]}
        config = {"ComputeQuotaResources": SHARES[team], "ResourceSharingConfig": sharing}
        target = {"TeamName": team, "FairShareWeight": 10}
        arn = slurm_cluster_arns(None, CapacityPolicy(region="steward-1"))[0]
        words = ("--compute-quota-config", json.dumps(config), "--compute-quota-target", json.dumps(target))
        self.aws("create-compute-quota", "--name", team, "--cluster-arn", arn, *words)

    def statuses(self) -> set[str]:
        return {each["Status"] for each in self.aws("list-compute-quotas")["ComputeQuotaSummaries"]}

    def submit(self, team: str, gpus: int, cpus: int, gib: int) -> str:
        words = ["-A", team, f"--gres=gpu:l4:{gpus}", f"--cpus-per-task={cpus}", f"--mem={gib}G", "--requeue"]
        done = self.bed.run(["sbatch", "--parsable", "-N1", "-o", "/dev/null", *words, "--wrap", "sleep 1000"])
        return done.text.strip()

    def show(self, job: str, what: str) -> str:
        return self.bed.run(["squeue", "-h", "-j", job, "-o", what]).text.strip()

    def runs(self, job: str) -> bool:
        return self.show(job, "%T") == "RUNNING"

    def explained(self, job: str) -> str:
        return self.bed.run(["steward", "explain", job]).text


@pytest.fixture(scope="module")
def teams() -> Iterator[Teams]:
    spec = BedSpec(
        dir=Path(tempfile.mkdtemp(prefix="steward-e2e-", dir="/tmp")),
        backend=Backend.LOCAL,
        nodes=2,
        accounting=True,
        hardware=HARDWARE,
        settings={"checks.memory": {"mode": "off"}, "quota": {"grace_s": GRACE_S}},
    )
    bed = LocalBed(spec)
    try:
        bed.up(print)
        for team in SHARES:
            sacctmgr(bed, "add", "account", team, "Description=a team", "Organization=site")
            sacctmgr(bed, "add", "user", getpass.getuser(), f"Account={team}")
        found = Teams(bed, give_access(bed))
        for team in SHARES:
            found.create(team)
        wait_until("all quotas are in force", lambda: found.statuses() == {"Created"}, SOON_S)
        yield found
    finally:
        bed.down()


def test_the_walk_through_of_three_teams(teams: Teams) -> None:
    first = teams.submit(G, 2, 48, 96)
    wait_until("a job within its quota runs", lambda: teams.runs(first), SOON_S)
    assert teams.show(first, "%q") == f"stw-{G}-g"

    second = teams.submit(G, 1, 12, 48)
    wait_until("a job beyond it runs with a borrowed GPU", lambda: teams.runs(second), SOON_S)
    assert teams.show(second, "%q") == f"stw-{G}-b"

    third = teams.submit(G, 1, 12, 48)
    fourth = teams.submit(G2, 2, 24, 96)
    wait_until("an owner's job runs beside them", lambda: teams.runs(fourth), SOON_S)
    fifth = teams.submit(G2, 1, 12, 48)

    sixth = teams.submit(M, 2, 24, 96)
    wait_until("the next owner gets his own back", lambda: teams.runs(sixth), SOON_S)
    assert [job for job in (first, second, fourth) if not teams.runs(job)] == [second]
    assert [teams.runs(job) for job in (third, fifth)] == [False, False]
    assert f"gives way to job {sixth}" in teams.explained(second)
    assert "1 GPU of" in teams.explained(third)
