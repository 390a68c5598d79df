"""A Slurm that was built into a folder of its own: its programs and headers are used, never others of the same name."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from steward.adapters.process import run
from steward.adapters.slurm import reservations
from tests.contract import installed

SPANK = Path(__file__).resolve().parents[3] / "spank"
HEADERS = Path("/usr/include/slurm")


def a_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def said(script: bytes, usual: Path) -> str:
    """By a script that has no search path of its own."""
    done = subprocess.run(["/bin/sh"], input=script, env={"PATH": str(usual)}, capture_output=True, check=True)
    return done.stdout.decode()


def test_a_deep_check_runs_by_the_srun_beside_its_sbatch(tmp_path: Path) -> None:
    sbatch = a_program(tmp_path / "own slurm/bin/sbatch", "")
    a_program(sbatch.with_name("srun"), 'echo own "$@"')
    a_program(tmp_path / "usual/srun", "echo usual")
    assert said(reservations.script(["check", "a b"], str(sbatch)), tmp_path / "usual").endswith("-- check a b\n")
    assert said(reservations.script(["check"], str(sbatch)), tmp_path / "usual").startswith("own ")


def test_where_a_node_has_its_slurm_elsewhere_it_is_looked_for(tmp_path: Path) -> None:
    a_program(tmp_path / "usual/srun", "echo usual")
    assert said(reservations.script(["check"], "/no/such/bin/sbatch"), tmp_path / "usual") == "usual\n"


def test_contract_tests_take_all_programs_from_where_slurmctld_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sbin/slurmctld", "sbin/slurmd", "bin/scontrol", "bin/sbatch"):
        a_program(tmp_path / name, "")
    monkeypatch.setenv("PATH", f"{tmp_path}/sbin:/usr/bin:/bin")
    assert installed.search_path().split(os.pathsep)[:2] == [f"{tmp_path}/sbin", f"{tmp_path}/bin"]
    assert not {"slurmctld", "slurmd", "scontrol", "sbatch"} & set(installed.missing())


@pytest.mark.skipif(
    not HEADERS.is_dir() or shutil.which("make") is None, reason="no headers of Slurm, or no make, here"
)
def test_the_shim_is_built_with_headers_of_which_a_compiler_would_warn(tmp_path: Path) -> None:
    own = tmp_path / "include/slurm"
    shutil.copytree(HEADERS, own)
    with (own / "spank.h").open("a") as file:
        file.write("\nvoid steward_test_old_style();\n")
    run(
        [
            "make",
            "-C",
            str(SPANK),
            f"BUILD={tmp_path}/build",
            f"SLURM_CFLAGS=-I{own.parent}",
            f"{tmp_path}/build/facts.o",
        ],
        timeout_s=120,
    )
    assert (tmp_path / "build/facts.o").exists()


@pytest.mark.skipif(
    not HEADERS.is_dir() or shutil.which("make") is None, reason="no headers of Slurm, or no make, here"
)
def test_the_reader_is_built_anew_for_another_slurm_or_with_other_words_and_only_then(tmp_path: Path) -> None:
    compiler = a_program(
        tmp_path / "cc",
        f'case "$*" in *-E*) exec cc "$@" ;; esac\necho built >> {tmp_path}/built\n'
        'while [ "$1" != -o ]; do shift; done; : > "$2"',
    )
    own = tmp_path / "include/slurm"
    shutil.copytree(HEADERS, own)

    def builds(*words: str) -> int:
        folder = f"BUILD={tmp_path}/build"
        run(["make", "-s", "-C", str(SPANK.parent / "reader"), "all", f"CC={compiler}", folder, *words], timeout_s=60.0)
        return len((tmp_path / "built").read_text().split())

    assert [builds(), builds()] == [1, 1]
    flags = f"SLURM_CFLAGS=-I{tmp_path}/include"
    assert [builds(flags), builds(flags)] == [2, 2]
    with (own / "slurm_version.h").open("a") as file:
        file.write("#undef SLURM_VERSION_NUMBER\n#define SLURM_VERSION_NUMBER 0x630000\n")
    assert [builds(flags), builds(flags)] == [3, 3]
