"""What a setup's programs say, while they go on saying it."""

import subprocess
from pathlib import Path

import pytest

from steward.lifecycle.output import MAX_NODE_LOG, SetupOutput, scripts_log
from tests.fakes.until import until

pytestmark = pytest.mark.timeout(300)

LAST_WORDS = 'until [ -s "$1" ]; do :; done; echo "the end" >> "$0"'
"""Said as soon as the first of what stands in the log ($0) has been passed on ($1)."""


def test_last_words_said_while_a_full_log_is_read_are_heard(tmp_path: Path) -> None:
    log, copy = tmp_path / "setup.log", tmp_path / "output"
    with SetupOutput(log, copy) as output:
        output.file.write(b"x\n" * (MAX_NODE_LOG // 2 + 1))
        with subprocess.Popen(["/bin/bash", "-c", LAST_WORDS, scripts_log(log), copy]) as program:
            output.follow()
        assert program.returncode == 0
        output.follow()
        assert output.last_lines[-1] == "the end"
    assert scripts_log(log).stat().st_size <= MAX_NODE_LOG
    assert log.stat().st_size <= MAX_NODE_LOG


def said_all(log: Path) -> bool:
    return scripts_log(log).read_text().endswith("line 4999\n")


@pytest.mark.parametrize("tee", ["main > >(tee -a LOG) 2>&1", "main 2>&1 | tee -a LOG"])
def test_what_a_script_tees_into_the_nodes_log_stands_once_everywhere(tmp_path: Path, tee: str) -> None:
    """Its lines come in pieces that end in the middle of a line, and each piece twice: to the log and to our pipe."""
    log, copy = tmp_path / "setup.log", tmp_path / "output"
    script = "main() { seq -f 'line %g' 0 4999; }; " + tee.replace("LOG", str(log))
    with SetupOutput(log, copy) as output:
        output.say("before")
        with subprocess.Popen(["/bin/bash", "-c", script], stdout=output.file, stderr=output.file):
            pass
        until("tee is done", lambda: log.read_text().count("line 4999\n") == 1 and said_all(log))
        output.follow()
        output.say("after")
        assert output.last_lines[-2:] == ("line 4998", "line 4999")
    expected = ["before", *(f"line {n}" for n in range(5000)), "after"]
    for told in (log, copy):
        lines = [line.rpartition("[Steward] ")[2] for line in told.read_text().splitlines()]
        assert lines == expected, told


def test_a_line_that_reaches_the_nodes_log_after_our_look_is_not_added_again(tmp_path: Path) -> None:
    """tee writes what it reads to its output first."""
    log = tmp_path / "setup.log"
    with SetupOutput(log, tmp_path / "output") as output, log.open("ab", buffering=0) as tee:
        output.file.write(b"one\ntw")
        output.follow()
        tee.write(b"one\ntw")
        output.follow()
        output.file.write(b"o\n")
        output.follow()
        tee.write(b"o\n")
        output.follow()
        output.follow()
        assert output.last_lines == ("one", "two")
    assert log.read_text() == "one\ntwo\n"


def test_a_line_that_a_script_prints_twice_stands_twice(tmp_path: Path) -> None:
    log = tmp_path / "setup.log"
    with SetupOutput(log, tmp_path / "output") as output:
        output.file.write(b"again\nagain\n")
        output.follow()
        output.follow()
        output.file.write(b"again\nand no end of line")
        output.say("over")
    assert [line.rpartition("[Steward] ")[2] for line in log.read_text().splitlines()] == [
        *["again"] * 3,
        "and no end of line",
        "over",
    ]


@pytest.mark.parametrize("before", [None, 0o644, 0o600])
def test_what_scripts_print_is_not_for_all_to_read(tmp_path: Path, before: int | None) -> None:
    logs = (tmp_path / "setup.log", scripts_log(tmp_path / "setup.log"))
    if before is not None:
        for log in logs:
            log.touch(before)
    with SetupOutput(logs[0], tmp_path / "output") as output:
        output.say("begins")
    for log in logs:
        assert log.stat().st_mode & 0o777 == (before or 0o640) & 0o640
