"""Every bench at its smallest size, as its user runs it: for tests that show that it runs to its end. Whether it meets
its goals is its own matter, on a machine with nothing beside it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

WITHOUT_SLURM: Mapping[str, str] = {
    "assess": "--years 2 --jobs 400 --nodes 32 --records 2000",
    "capacity": "--first 3 --most 13 --last 2 --boot-s 0.2 --command-ms 1 --call-ms 1",
    "hangs": "--faults 12 --phases 14",
    "heartbeats": "--agents 10 --seconds 1",
    "plans": "--nodes 2700 --jobs 700",
    "quota_day": "",
    "quotas": "--teams 20 --jobs 600",
}
WITH_ITS_OWN: Mapping[str, str] = {
    "fits": "--pairs 2",
    "hostile": "--minutes 0.1 --faults 1 --quiet-faults 1 --settle-s 1",
    "lost_many": "--lost 3 --sound 3 --settle-s 1",
    "prolog_kills": "--kills 2 --prolog-s 4",
    "reconnect": "--agents 20 --away-s 1 --watch-s 1",
    "slurm_answers": "--nodes 20 --jobs 10 --tries 1",
    "stops": "--stops 2 --seed 181 --settle-s 1",
    "takeover": "--runs 1 --idle-s 2",
}
ON_A_BED: Mapping[str, str] = {
    "elastic": "--rounds 1 --requeues 0",
    "quiet": "--settle-s 1 --seconds 1",
    "recovery": "--runs 1 --plain-runs 0",
    "scale": "--nodes 6 --jobs 10 --new-jobs 60 --runs 1 --settle-s 1 --quiet-s 1 --phases",
    "soak": "--faults 2 --every 1",
}
"""Those that can use a cluster that is up."""
ON_A_BED_WITH_QUOTAS: Mapping[str, str] = {"quota_reclaim": "--times 1"}
_LIMIT_S = 400.0


def runs_to_its_end(name: str, options: str, folder: Path) -> None:
    """Raise AssertionError, with what it said, where it breaks off or leaves no figures."""
    figures = folder / "figures.json"
    argv = [sys.executable, "-m", f"tests.bench.{name}", *options.split(), "--json", str(figures)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert json.loads(figures.read_text())
