"""What a training script imports on every site: a module of one page in a folder on PYTHONPATH, and nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import steward.job

FOLDER = Path(steward.job.__file__).parent / "on_path"
PROGRAM = """
import sys, steward_job as job
assert "steward" not in sys.modules
job.progress(7)
job.checkpoint_saved("/ckpt/step-7", 7)
print(job.latest_checkpoint(sys.argv[1]), sorted(job.__all__))
"""


def run(program: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """In a Python that has no package but the standard library."""
    argv = [sys.executable, "-S", "-c", program, *words]
    kept = {"PATH": os.environ["PATH"], **env}
    return subprocess.run(argv, env=kept, capture_output=True, text=True, timeout=30, check=False)


def test_the_three_lines_work_without_an_installed_package(tmp_path: Path) -> None:
    told, kept = tmp_path / "progress", tmp_path / "ckpt"
    (kept / "step-5").mkdir(parents=True)
    (kept / "step-5" / "COMPLETE").touch()
    done = run(PROGRAM, str(kept), PYTHONPATH=str(FOLDER), STEWARD_PROGRESS_FILE=str(told))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(kept / "step-5"))
    assert str(sorted(steward.job.__all__)) in done.stdout
    assert json.loads(told.read_text().splitlines()[-1])["checkpoint_step"] == 7


def test_where_it_is_missing_the_script_goes_on() -> None:
    program = "try:\n import steward_job as job\nexcept ImportError:\n job = None\nprint(job)"
    assert run(program).stdout == "None\n"


def test_a_copy_that_cannot_be_read_is_an_import_error(tmp_path: Path) -> None:
    """Also a Python that is too old for it: the script sees one kind of error."""
    (tmp_path / "job" / "on_path").mkdir(parents=True)
    (tmp_path / "job" / "on_path" / "steward_job.py").write_text((FOLDER / "steward_job.py").read_text())
    (tmp_path / "job" / "talk.py").write_text("match = = 1")
    done = run(
        "try:\n import steward_job\nexcept ImportError:\n print('no')", PYTHONPATH=str(tmp_path / "job" / "on_path")
    )
    assert done.stdout == "no\n"
