"""A file is replaced whole or stays as it was, and nothing else is left beside it."""

import io
import os
import time
from pathlib import Path

import pytest

from steward.adapters.fetch.folder import FetchBudget, store
from steward.adapters.files import naming_file, write_json, write_whole


def test_the_new_text_takes_the_place_of_the_old_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("old")
    write_whole(path, "new", mode=0o640, sync=True)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_what_nobody_said_is_for_all_is_for_its_owner_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_json(tmp_path / "opted-n1.json", [])
    finally:
        os.umask(before)
    assert (tmp_path / "opted-n1.json").stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_written_leaves_the_old_one_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "none" / "state", "new")


def test_a_full_disk_is_told_with_the_file_that_it_was_about() -> None:
    """An error of a write names none by itself."""
    full = Path("/dev/full")
    with pytest.raises(OSError, match=r"^\[Errno 28\] .*'/dev/full'$"), naming_file(full), full.open("w") as file:
        file.write("x")
    budget = FetchBudget(deadline=time.monotonic() + 60.0)
    with pytest.raises(OSError, match=r"^\[Errno 28\] .*'/dev/full'$"):
        store(Path("/dev"), "full", io.BytesIO(b"x"), budget)
