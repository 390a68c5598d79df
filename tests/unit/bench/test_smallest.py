"""Every bench without a cluster of its own runs to its end at its smallest size; whether it meets its goals is its own
matter, on a machine with nothing beside it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.until import FACT_S

BENCHES = {
    "capacity": "--first 3 --most 13 --last 2 --boot-s 0.2 --command-ms 1 --call-ms 1",
    "assess": "--years 2 --jobs 400 --nodes 32 --records 2000",
    "heartbeats": "--agents 10 --seconds 1",
    "plans": "--nodes 2700 --jobs 700",
    "quota_day": "",
    "quotas": "--teams 20 --jobs 600",
}


@pytest.mark.long
@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_runs_to_its_end(name: str, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    argv = [sys.executable, "-m", f"tests.bench.{name}", *BENCHES[name].split(), "--json", str(figures)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=6 * FACT_S)
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert json.loads(figures.read_text())
