"""What a setup's programs say, while they go on saying it."""

import subprocess
from pathlib import Path

import pytest

from steward.lifecycle.output import MAX_NODE_LOG, Output

pytestmark = pytest.mark.timeout(60)

LAST_WORDS = 'until [ -s "$1" ]; do :; done; echo "the end" >> "$0"'
"""Said as soon as the first of what stands in the log ($0) has been passed on ($1)."""


def test_last_words_said_while_a_full_log_is_read_are_heard(tmp_path: Path) -> None:
    log, copy = tmp_path / "setup.log", tmp_path / "output"
    with Output(log, copy) as output:
        output.file.write(b"x\n" * (MAX_NODE_LOG // 2 + 1))
        with subprocess.Popen(["/bin/bash", "-c", LAST_WORDS, log, copy]) as program:
            output.follow()
        assert program.returncode == 0
        output.follow()
        assert output.last_lines[-1] == "the end"
    assert log.stat().st_size <= MAX_NODE_LOG


@pytest.mark.parametrize("before", [None, 0o644, 0o600])
def test_what_scripts_print_is_not_for_all_to_read(tmp_path: Path, before: int | None) -> None:
    log = tmp_path / "setup.log"
    if before is not None:
        log.touch(before)
    with Output(log, tmp_path / "output") as output:
        output.say("begins")
    assert log.stat().st_mode & 0o777 == (before or 0o640) & 0o640
