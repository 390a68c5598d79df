"""Each example is submitted from its own folder with the line that stands in its script, and nothing more."""

import os
from pathlib import Path

import pytest

from steward.adapters.process import run
from tests.fakes.until import FACT_S

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SCRIPTS = sorted([*EXAMPLES.glob("*/train.sbatch"), *EXAMPLES.glob("*/train.sh")])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.name)
def test_a_script_finds_its_program_in_the_folder_that_it_was_submitted_from(script: Path, tmp_path: Path) -> None:
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    srun.chmod(0o755)
    (tmp_path / "digits.npz").touch()
    given = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_SUBMIT_DIR": str(script.parent)}
    env = given | {"STEWARD_ELASTIC_RUN": "1"}
    said = run(
        ["env", "-u", "TRAIN_DIR", "bash", str(script), str(tmp_path), "--steps", "5"], timeout_s=2 * FACT_S, env=env
    )
    assert said.text.splitlines()[-4:] == [str(script.parent / "train.py"), str(tmp_path), "--steps", "5"]
