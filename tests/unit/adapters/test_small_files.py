"""Small files are found by patterns as a shell finds them, and nothing that is no file is in the way."""

import glob
import os
from pathlib import Path

import pytest

from steward.adapters.node.small_files import MAX_BYTES, is_any_there, text_of, texts_of


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a0/x", "a0/y", "a1/x", "b0/x", ".hidden/x", "a0/deep/x"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "a1/link").symlink_to("../b0")
    (tmp_path / "a1/nowhere").symlink_to("../none")
    os.mkfifo(tmp_path / "a1/pipe")
    return tmp_path


@pytest.mark.parametrize(
    "pattern", ["*/x", "a*/*", "a[0-9]/x", "*/*/x", "a0/x", "none/*", "*/none", "a?/link/x", "x", "*/x/y", "*"]
)
def test_a_pattern_finds_what_a_shell_finds(tree: Path, pattern: str) -> None:
    files = [path for path in glob.glob(f"{tree}/{pattern}") if os.path.isfile(path)]
    found = {path: text for path, _, text in texts_of([f"{tree}/{pattern}"], 100) if "pipe" not in path}
    assert found == {path: Path(path).read_text() for path in files}


def test_they_come_sorted_with_their_patterns_and_no_more_than_asked(tree: Path) -> None:
    patterns = [f"{tree}/b*/x", f"{tree}/a*/x"]
    assert [(path, pattern) for path, pattern, _ in texts_of(patterns, 2)] == [
        (f"{tree}/a0/x", patterns[1]),
        (f"{tree}/a1/x", patterns[1]),
    ]


def test_a_pipe_holds_up_nobody(tree: Path) -> None:
    assert text_of(f"{tree}/a1/pipe") == ""


def test_a_long_file_is_cut_and_an_absent_one_is_none(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * (MAX_BYTES + 1))
    assert len(text_of(f"{tmp_path}/long") or "") == MAX_BYTES
    assert text_of(f"{tmp_path}/none") is None


def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop"):
        list(texts_of([f"{tmp_path}/l*"], 10))


def test_a_folder_without_what_is_needed_is_passed_over_for_every_pattern(tree: Path) -> None:
    patterns = [f"{tree}/*/x", f"{tree}/a*/y", f"{tree}/*/deep/x"]
    found = [path for path, _, _ in texts_of(patterns, 100, needs="y")]
    assert found == [f"{tree}/a0/deep/x", f"{tree}/a0/x", f"{tree}/a0/y"]
    assert not list(texts_of(patterns, 100, needs="none"))


def test_a_folder_may_be_asked_whether_anything_is_in_it(tree: Path) -> None:
    (tree / "empty").mkdir()
    assert is_any_there([f"{tree}/none/*", f"{tree}/a1/*"])
    assert not is_any_there([f"{tree}/none/*", f"{tree}/empty/*"])
