"""The shim is built by one at a time, however many ask."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COMPILER = """#!/bin/sh
mkdir ../busy || touch ../overlap
sleep 0.02
rmdir ../busy
while [ "$1" != -o ]; do shift; done
touch "$2"
"""


def test_builds_that_are_asked_for_at_the_same_moment_do_not_meet(tmp_path: Path) -> None:
    sources = shutil.copytree(ROOT / "spank", tmp_path / "spank", ignore=shutil.ignore_patterns("build", "tests"))
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    command = ["make", "-s", "-C", str(sources), "all", f"CC={compiler}"]
    builds = [subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [build.communicate(timeout=120)[1] for build in builds]
    assert [build.returncode for build in builds] == [0, 0, 0], said
    assert (sources / "build" / "steward.so").exists()
    assert not (tmp_path / "overlap").exists()
