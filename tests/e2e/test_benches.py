"""Benches with a real cluster of their own run to their end at their smallest size; their goals are for a machine with
nothing beside it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = {
    "prolog_kills": "--kills 4 --prolog-s 8",
    "quiet": "--settle-s 1 --seconds 1",
    "reconnect": "--agents 20 --away-s 1 --watch-s 1",
    "recovery": "--runs 1 --plain-runs 0",
    "slurm_answers": "--nodes 20 --jobs 10",
    "soak": "--faults 2 --every 1",
}
_LIMIT_S = 400.0


@pytest.mark.long
@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_on_real_slurm_runs_to_its_end(name: str, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    argv = [sys.executable, "-m", f"tests.bench.{name}", *BENCHES[name].split(), "--json", str(figures)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert json.loads(figures.read_text())
