"""Lines of a user's output that match his patterns: only new ones, within bounds that he cannot break."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steward.adapters.node import as_user
from steward.adapters.node.as_user import FileEnd, Matched
from steward.adapters.node.log_matches import matches
from steward.adapters.node.step_walk import output_of
from steward.adapters.process import Failed
from tests.fakes.until import FACT_S

NOBODY = 65534


def seen(path: Path, pattern: str, inode: int = 0, at: int | None = None) -> dict[str, object]:
    (found,) = matches({"patterns": [pattern], "files": [{"path": str(path), "inode": inode, "at": at}]})["files"]
    assert isinstance(found, dict)
    return found


def test_only_whole_lines_that_came_since_the_last_look_count(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("step 1\n")
    first = seen(out, "step")
    assert first["hits"] == [[0, []]]
    with out.open("a") as file:
        file.write("[rank0] step 2\r\rno\nstep 3\nste")
    second = seen(out, r"step ([0-9]+)", out.stat().st_ino, first["at"])  # type: ignore[arg-type]
    assert second["hits"] == [[2, [2.0, 3.0]]]
    with out.open("a") as file:
        file.write("p 4\n")
    third = seen(out, r"step ([0-9]+)", out.stat().st_ino, second["at"])  # type: ignore[arg-type]
    assert third["hits"] == [[1, [4.0]]]


def test_a_file_that_was_emptied_or_replaced_is_read_from_its_beginning(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("step\n")
    assert seen(out, "step", out.stat().st_ino, 900)["hits"] == [[1, []]]
    assert seen(out, "step", out.stat().st_ino + 1, 5)["hits"] == [[1, []]]


def test_numbers_that_are_none_are_left_out(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("x=nan\nx=inf\nx=1e3\nx=slow\nx=\n")
    assert seen(out, "x=(.*)", out.stat().st_ino, 0)["hits"] == [[5, [1000.0]]]


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path / "none", tmp_path):
        found = matches({"patterns": ["x"], "files": [{"path": str(path), "inode": 0, "at": 0}]})
        assert found["files"] == [None]


@pytest.mark.parametrize("pattern", ["(", "(?P<", "*", "(" * 400])
def test_a_pattern_that_is_none_is_said(pattern: str) -> None:
    assert list(matches({"patterns": ["ok", pattern], "files": []})["bad"]) == [1]


def as_nobody(path: Path, pattern: str) -> Matched:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    end = FileEnd(path=str(path), inode=path.stat().st_ino, at=0)
    return as_user.matches([end], [pattern], NOBODY, timeout_s=FACT_S)


def test_it_is_done_with_the_users_own_rights(shared_file: Path) -> None:
    (found,) = as_nobody(shared_file, "step").files
    assert found is not None
    assert (found.counts, found.end.at) == ((1,), 5)
    shared_file.chmod(0o600)
    assert as_nobody(shared_file, "step").files == (None,)


def test_a_pattern_without_end_is_killed(shared_file: Path) -> None:
    shared_file.write_text("a" * 60 + "!\n")
    with pytest.raises(Failed):
        as_nobody(shared_file, r"^(a+)+$")


@pytest.fixture
def shared_file(tmp_path: Path) -> Path:
    """A file that anybody can read, and its owner only after a chmod."""
    for folder in (tmp_path, *tmp_path.parents):
        if not (mode := folder.stat().st_mode) & 0o001:
            folder.chmod(mode | 0o055)
    path = tmp_path / "out"
    path.write_text("step\n")
    path.chmod(0o644)
    return path


def test_a_process_writes_to_a_file_or_to_none(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("w") as file:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=file)
    try:
        assert output_of(child.pid) == (str(out), f"/proc/{child.pid}/fd/1")
    finally:
        child.communicate(b"\n")
    with subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE) as piped:
        assert output_of(piped.pid) is None
        piped.kill()
    assert output_of(2**22) is None
