"""`steward rehearse`: scripts with each fault in their resume, on real Slurm."""

import json
import shutil
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import resume_bugs
from tests.e2e.story import Story

FOUND = {
    "none": (True, ""),
    "begins at zero": (False, "from_start"),
    "loads the oldest": (False, "older_save"),
    "does not save": (False, "no_save"),
    "writes in place": (False, "broken_save"),
    "hangs": (False, "hangs"),
    "ignores SIGTERM": (True, "ignores_term"),
    "fails by itself": (False, "fails"),
    "folder is there": (False, "already_there"),
}
"""By the script's fault: whether it can be resumed, and the finding that says what is wrong."""
_FIRST = ("none", "begins at zero")


def rehearsed(story: Story, bug: str) -> Any:
    """What `steward rehearse` says of the script, in a folder of its own."""
    folder = story.dir / bug.replace(" ", "-")
    folder.mkdir()
    assert resume_bugs.__file__ is not None
    shutil.copy(resume_bugs.__file__, folder / "train.py")
    script = folder / "train.sh"
    script.write_text("#!/bin/bash\n#SBATCH --open-mode=append\nsrun /usr/bin/python3 train.py\n")
    options = ["-D", str(folder), "-n1", f"--output={folder}/%j.txt", f"--export=ALL,BUG={bug}"]
    argv = ["steward", "rehearse", "--minutes", "2", "--json", *options, str(script)]
    done = story.bed.run(argv, timeout_s=280.0, check=False)
    return json.loads(done.text) if done.text else done.error_text


@pytest.mark.timeout(360)
@pytest.mark.parametrize("bugs", [_FIRST, pytest.param(FOUND.keys() - _FIRST, marks=pytest.mark.long)], ids=len)
def test_each_fault_in_a_resume_is_named_and_nothing_is_left(story: Story, bugs: Collection[str]) -> None:
    began = time.time()
    with ThreadPoolExecutor(len(bugs)) as at_once:
        said = dict(zip(bugs, at_once.map(lambda bug: rehearsed(story, bug), bugs), strict=True))
    for bug in bugs:
        verdict, name = FOUND[bug]
        names = [each["name"] for each in said[bug]["findings"] if each["weight"] not in ("good", "unknown")]
        assert (bug, said[bug]["can_be_resumed"], names) == (bug, verdict, [name] if name else []), said[bug]
    story.wait("no job is left", lambda: not story.bed.run(["squeue", "-h"]).text.strip(), 40.0)
    assert not [case for case in story.cases(since=began) if case["marked"]]
    assert all(Path(file).exists() for bug in bugs for file in said[bug]["files"])
