"""steward-slurm itself, under ASan and UBSan, on real Slurm: any question is answered or refused, and none ends it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from steward.adapters.slurm import record_form
from steward.adapters.slurm.record_form import GRES, JOB, NODE, PARTITION, RecordForm
from tests.contract.conftest import Clusters

READER = Path(__file__).parents[2] / "reader"
ASKED: tuple[tuple[str, str, RecordForm], ...] = (
    ("nodes -", "nodes", NODE), ("node n1 n9 n3", "node", NODE), ("node", "node", NODE), ("gres", "gres", GRES),
    ("jobs -", "jobs", JOB), ("job {job} 99999", "job", JOB), ("parts {job}", "parts", JOB), ("on n1 n2", "on", JOB),
    ("partitions", "partitions", PARTITION), ("nodes 7.7", "nodes", NODE), ("jobs 4000000000", "jobs", JOB),
    ("nodes x.y", "nodes", NODE), ("node n[1-3] ," + " n2" * 3000, "node", NODE),
)  # fmt: skip
REFUSED = (
    "",
    "x",
    "nodes",
    "jobs",
    "jobs 1 2",
    "job x",
    "parts",
    "partitions 1",
    "fits 1",
    "job 99999999999",
    "a " * 9000,
)


@pytest.fixture(scope="session")
def program() -> str:
    if shutil.which("cc") is None or not Path("/usr/include/slurm/slurm.h").is_file():
        pytest.skip("no compiler, or no headers of Slurm, here")
    subprocess.run(["make", "-s", "-C", str(READER), "asan"], check=True)
    return str(READER / "build/asan/steward-slurm")


def test_every_question_is_answered_in_its_form_and_a_bad_one_refused(program: str, clusters: Clusters) -> None:
    cluster = clusters.of(Path("/"))
    job = cluster.sbatch("-H", "--array=0-3%2", "-J", "a\tb\n\xff", "--comment", "x" * 1000)
    lines = [line.format(job=job) for line, _, _ in ASKED] + [f"fits {job} 0 - n1"]
    env = {**os.environ, **cluster.env, "ASAN_OPTIONS": "detect_leaks=0"}
    question = "".join(f"{line}\n" for line in [*lines, *REFUSED]).encode()
    done = subprocess.run([program], input=question, env=env, capture_output=True, check=True, timeout=300.0)

    rest = done.stdout
    for line, kind, form in ASKED:
        head = rest.partition(b"\n")[0]
        size = len(head) + 1 + int(head.split()[3])
        told = record_form.split_answer(rest[:size], kind, form)
        assert told is not None, line
        assert all(form.read(each) for each in told.lines or ()), line
        rest = rest[size:]
    assert rest.startswith(b"fits ")
    assert rest.partition(b"\n")[2] == b"no\n" * len(REFUSED)
