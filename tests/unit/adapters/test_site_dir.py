"""Which files of a site's directory the agent runs."""

import os
from pathlib import Path

import pytest

from steward.adapters.node.site_dir import SiteDir, look


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    path = tmp_path / "checks.d"
    path.mkdir(mode=0o755)
    path.chmod(0o755)
    return path


def add(folder: Path, name: str, mode: int = 0o755) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def test_a_directory_that_does_not_exist_holds_no_checks(tmp_path: Path) -> None:
    assert look(tmp_path / "none") == SiteDir()


def test_executables_are_run_in_the_order_of_their_names_and_backups_are_not_looked_at(folder: Path) -> None:
    names = ("20-b", "10-a", ".hidden", "10-a~")
    for name in names:
        add(folder, name)
    assert look(folder) == SiteDir(programs=(folder / "10-a", folder / "20-b"))


@pytest.mark.parametrize(
    ("name", "mode", "why"),
    [
        ("plain", 0o644, "not executable"),
        ("open", 0o757, "can be written by others"),
        ("Upper", 0o755, "its name"),
    ],
)
def test_a_file_that_must_not_run_is_named_with_the_reason(folder: Path, name: str, mode: int, why: str) -> None:
    add(folder, name, mode)
    seen = look(folder)
    assert seen.programs == ()
    assert why in seen.refused[0]
    assert seen.refused[0].startswith(f"{name}: ")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_run(folder: Path) -> None:
    os.chown(add(folder, "theirs"), 4242, -1)
    assert "belongs to uid 4242" in look(folder).refused[0]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_that_another_group_may_write_is_not_run(folder: Path) -> None:
    os.chown(add(folder, "theirs", 0o775), 0, 4242)
    (folder / "theirs").chmod(0o775)
    assert "can be written by others" in look(folder).refused[0]


def test_nothing_is_run_from_a_directory_that_others_may_write(folder: Path) -> None:
    add(folder, "a")
    folder.chmod(0o777)
    seen = look(folder)
    assert seen.programs == ()
    assert "can be written by others" in seen.refused[0]


def test_a_link_into_a_directory_that_others_may_write_is_not_followed(folder: Path, tmp_path: Path) -> None:
    open_dir = tmp_path / "open"
    open_dir.mkdir()
    open_dir.chmod(0o777)
    (folder / "linked").symlink_to(add(open_dir, "target"))
    (folder / "dangling").symlink_to(tmp_path / "none")
    seen = look(folder)
    assert seen.programs == ()
    assert len(seen.refused) == 2


def test_a_link_to_a_safe_file_is_run_and_a_folder_is_not(folder: Path, tmp_path: Path) -> None:
    safe = tmp_path / "safe"
    safe.mkdir(mode=0o755)
    (folder / "linked").symlink_to(add(safe, "target"))
    (folder / "inner").mkdir()
    seen = look(folder)
    assert seen.programs == (folder / "linked",)
    assert seen.refused == ("inner: not a file",)
