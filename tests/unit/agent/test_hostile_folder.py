"""A user's worst in the folder of his job, and in folders that ought to be root's: root does nothing for him."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steward.adapters.files import make_own, remove_tree
from steward.adapters.node import job_look
from steward.adapters.offload import Threads
from steward.adapters.wire.shimline import OptedLine
from steward.agent.briefing import Briefing, ResumeFactsCache
from steward.agent.job_folder import PROGRESS, STACKS, JobFolders
from steward.model.ids import JobId
from steward.model.resume_mode import ResumeMode
from tests.fakes.agent_parts import FakeHead
from tests.fakes.hung_mount import HungMount, can_mount
from tests.fakes.until import FACT_S

JOB, USER = JobId(7), 65534
DEEP = 3000


@pytest.fixture
def folders(tmp_path: Path) -> JobFolders:
    if os.geteuid() != 0:
        pytest.skip("only root has something that users want")
    return JobFolders(tmp_path / "jobs")


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "secret"
    file.write_text('{"step": 12}\n')
    yield file
    assert file.read_text() == '{"step": 12}\n', "neither removed nor written to"
    assert file.stat().st_uid == os.geteuid()
    assert file.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("put", [os.link, os.symlink])
def test_of_anothers_file_that_is_linked_into_the_folder_nothing_is_told(
    folders: JobFolders, secret: Path, put: Callable[[Path, Path], None]
) -> None:
    folder = folders.make(JOB, USER)
    for name in (PROGRESS, STACKS):
        put(secret, folder / name)
    assert job_look.look(folder, PROGRESS, USER, None).told is None
    assert job_look.text_of(folder, STACKS, USER, 1024) == ""
    folders.remove(JOB)
    assert folders.all() == frozenset()


def test_a_folder_that_its_user_put_a_link_in_the_place_of_is_neither_read_nor_given_away(
    folders: JobFolders, secret: Path
) -> None:
    folders.make(JobId(8), USER)
    folders.folder(JOB, USER).symlink_to(secret.parent)
    assert job_look.look(folders.folder(JOB, USER), secret.name, os.geteuid(), None).told is None
    made = folders.make(JOB, USER)
    assert not made.is_symlink()
    assert (made.stat().st_uid, secret.parent.stat().st_uid) == (USER, os.geteuid())


def test_a_folder_is_removed_however_deep_and_whatever_is_in_it(folders: JobFolders, secret: Path) -> None:
    folder = folders.make(JOB, USER)
    os.mkfifo(folder / "pipe")
    os.symlink(secret.parent, folder / "link")
    os.link(secret, folder / "hard")
    place = os.open(folder, os.O_PATH)
    for _ in range(DEEP):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_PATH, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    folders.remove(JOB)
    assert folders.all() == frozenset()


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_no_folder_is_made_where_others_may_write(folders: JobFolders, mode: int) -> None:
    folders.root.mkdir()
    folders.root.chmod(mode)
    with pytest.raises(PermissionError, match="chmod go-w"):
        folders.make(JOB, USER)
    assert folders.all() == frozenset()


def test_a_folder_that_a_user_made_before_us_is_not_used(folders: JobFolders) -> None:
    folders.root.mkdir()
    os.chown(folders.root, USER, -1)
    with pytest.raises(PermissionError, match=f"uid {USER}"):
        folders.make(JOB, USER)


@pytest.mark.parametrize("what", ["link", "file", "pipe"])
def test_what_is_no_folder_is_not_used(tmp_path: Path, what: str) -> None:
    place, real = tmp_path / "place", tmp_path / "real"
    real.mkdir()
    match what:
        case "link":
            place.symlink_to(real)
        case "file":
            place.write_text("")
        case _:
            os.mkfifo(place)
    with pytest.raises((NotADirectoryError, FileExistsError)):
        make_own(place)
    assert list(real.iterdir()) == []


def test_a_removal_takes_a_link_and_not_what_it_points_to(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    (real / "file").write_text("")
    link.symlink_to(real)
    remove_tree(link)
    remove_tree(tmp_path / "nothing")
    assert not link.is_symlink()
    assert (real / "file").exists()


def remove_all(folders: JobFolders) -> None:
    for job in folders.all():
        folders.remove(job)


@pytest.mark.skipif(not can_mount(), reason="needs root and /dev/fuse")
def test_a_mount_that_hangs_over_a_users_folder_holds_up_nobody(tmp_path: Path) -> None:
    """Also not its own user, who is told of his folder, and loses it once he has let go of it."""
    folders = JobFolders(tmp_path / "jobs")
    with HungMount(folders.make(JOB, USER)):
        briefing = Briefing(folders, ResumeFactsCache(FakeHead()), Threads(1), folder_s=FACT_S)
        for job, uid in ((JOB, USER), (JobId(8), USER), (JobId(8), os.geteuid()), (JOB, os.geteuid())):
            line = OptedLine(job=job, uid=uid, mode=ResumeMode.parse("1"), restart=0)
            assert "progress_file" in asyncio.run(briefing.words(line)), (job, uid)
        assert folders.of_user(USER) == {JOB, 8}
        assert job_look.look(folders.folder(JOB, USER), PROGRESS, USER, None).told is None
        remove_all(folders)
        assert folders.all() == {JOB}
    remove_all(folders)
    assert folders.all() == frozenset()


@pytest.mark.skipif(not can_mount(), reason="needs root and /dev/fuse")
def test_a_mount_that_hangs_inside_a_users_folder_does_not_keep_the_folders_of_others(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path / "jobs of all")
    inside = folders.make(JOB, USER) / "a b"
    inside.mkdir()
    folders.make(JobId(8), os.geteuid())
    with HungMount(inside):
        began = time.monotonic()
        remove_all(folders)
        assert time.monotonic() - began < 10.0
        assert folders.all() == {JOB}
    remove_all(folders)
    assert folders.all() == frozenset()
