"""When something at a job's checkpoint path changed last: what is in a folder counts, not the folder."""

import os
from pathlib import Path

import pytest

from steward.adapters.node import as_user
from steward.adapters.process import Failed

LATE = 4000.0
"""Later than anything in the folders here."""


def saved(path: Path, at: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("weights")
    os.utime(path, (at, at))
    return path


def made(folder: Path, at: float = LATE) -> Path:
    """The folder itself was touched last of all."""
    folder.mkdir(exist_ok=True)
    os.utime(folder, (at, at))
    return folder


def newest(path: Path) -> float | None:
    return as_user.newest(str(path), os.geteuid())


@pytest.mark.parametrize("name", ["ckpt", ".ckpt"])
@pytest.mark.parametrize("newer", ["a.pt", "m.pt", "z.pt"])
def test_the_newest_entry_of_a_folder_counts_wherever_it_stands_in_it(tmp_path: Path, name: str, newer: str) -> None:
    for each in ("a.pt", "m.pt", "z.pt"):
        saved(tmp_path / name / each, 3000.0 if each == newer else 1000.0)
    assert newest(made(tmp_path / name)) == 3000.0


@pytest.mark.parametrize("name", ["ckpt", ".ckpt"])
def test_the_only_checkpoint_of_a_folder_counts(tmp_path: Path, name: str) -> None:
    saved(tmp_path / name / "step-1.pt", 1000.0)
    assert newest(made(tmp_path / name)) == 1000.0


def test_a_checkpoint_that_is_a_folder_counts(tmp_path: Path) -> None:
    made(tmp_path / "step-1", 1000.0)
    assert newest(made(tmp_path)) == 1000.0


@pytest.mark.parametrize("name", ["latest.pt", ".latest.pt"])
def test_a_path_may_be_a_file_hidden_or_not(tmp_path: Path, name: str) -> None:
    assert newest(saved(tmp_path / name, 1000.0)) == 1000.0


@pytest.mark.parametrize("name", ["ckpt", ".ckpt"])
def test_an_empty_folder_is_no_checkpoint_however_often_it_is_made(tmp_path: Path, name: str) -> None:
    assert newest(made(tmp_path / name)) is None


@pytest.mark.parametrize("name", ["ckpt", ".ckpt"])
def test_what_is_still_being_written_under_a_hidden_name_is_no_checkpoint(tmp_path: Path, name: str) -> None:
    saved(tmp_path / name / ".step-2.pt.tmp", 3000.0)
    assert newest(made(tmp_path / name)) is None
    saved(tmp_path / name / "step-1.pt", 1000.0)
    assert newest(made(tmp_path / name)) == 1000.0


def test_a_link_to_a_folder_or_file_is_what_it_leads_to(tmp_path: Path) -> None:
    file = saved(tmp_path / "run-7" / "step-1.pt", 1000.0)
    for name, target in (("folder", made(file.parent)), ("file", file)):
        (tmp_path / name).symlink_to(target)
        assert newest(tmp_path / name) == 1000.0


def test_a_link_that_leads_nowhere_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(tmp_path / "gone")
    assert newest(tmp_path / "latest") is None


def test_a_name_of_several_lines_is_one_entry_and_no_time(tmp_path: Path) -> None:
    saved(tmp_path / "ckpt" / "\n1 f 9000.0 x", 1000.0)
    assert newest(made(tmp_path / "ckpt")) == 1000.0


def test_a_path_that_is_not_there_cannot_be_looked_at(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="No such file"):
        newest(tmp_path / "none")
