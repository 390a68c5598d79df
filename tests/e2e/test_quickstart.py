"""What the developers' quickstart says of a cluster on one's own machine, pasted as one block."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/quickstart-developer.md"
AT_THE_END = "trap 'steward-testbed down' EXIT"
"""A line after the first: nothing stays where a later line waits in vain."""


def block_of(step: str) -> list[str]:
    """The lines of shell that follow this step."""
    (found,) = re.findall(rf"^\*\*{re.escape(step)}.*?```sh\n(.*?)```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return str(found).splitlines()


@contextmanager
def pasted(lines: list[str], where: Path) -> Iterator["subprocess.Popen[str]"]:
    (where / ".venv").symlink_to(sys.prefix)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "STEWARD"))}
    text = "\n".join(lines)
    out = subprocess.PIPE
    with subprocess.Popen(["bash", "-c", text], cwd=where, env=env, stdout=out, stderr=out, text=True) as shell:
        try:
            yield shell
        finally:
            shell.terminate()


@pytest.mark.timeout(180)
def test_the_developers_quickstart_shows_a_job_that_comes_back_when_it_is_pasted_as_one_block(tmp_path: Path) -> None:
    up, *then = block_of("2. A cluster on your machine")
    with pasted([up, AT_THE_END, *then], tmp_path) as shell:
        told, errors = shell.communicate(timeout=150)

    assert shell.returncode == 0, errors
    assert re.search(r"^main\S* +up .* n\[1-6\]$", told, re.MULTILINE), told
    for sentence in ("ran again", "node.lost", "job.resumed"):
        assert sentence in told, f"{told}\n{errors}"
    place = re.search(r"(/tmp/steward-bed-\S+) is gone", errors)
    assert place, errors
    assert not Path(place[1]).exists()
