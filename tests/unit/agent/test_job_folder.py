"""The folder of a job on a node: its user's own, and never a way for him to have something else removed."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from steward.agent.job_folder import JobFolders
from steward.model.ids import JobId

JOB = JobId(7)


def test_a_job_gets_a_folder_of_its_own_that_only_its_user_may_enter(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path / "jobs")
    folder = folders.make(JOB, os.geteuid())
    assert folder == tmp_path / "jobs" / "7"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folders.progress(JOB), folders.stacks(JOB)) == (folder / "progress", folder / "stacks")


def test_made_again_it_keeps_what_is_in_it(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path)
    folders.make(JOB, os.geteuid())
    folders.progress(JOB).write_text("12")
    folders.make(JOB, os.geteuid())
    assert folders.progress(JOB).read_text() == "12"


def test_two_steps_that_begin_together_get_the_same_folder(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path)
    with ThreadPoolExecutor(4) as threads:
        for job in map(JobId, range(1, 21)):
            made = set(threads.map(folders.make, [job] * 4, [65534] * 4))
            assert {folder.stat().st_uid for folder in made} == {65534}
            assert made == {folders.folder(job)}


def test_one_of_another_users_former_job_is_emptied_and_changes_hands(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path)
    folders.make(JOB, 65534)
    folders.progress(JOB).write_text("12")
    folder = folders.make(JOB, os.geteuid())
    assert folder.stat().st_uid == os.geteuid()
    assert not folders.progress(JOB).exists()


def test_a_removal_follows_no_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    folders = JobFolders(tmp_path / "jobs")
    (folders.make(JOB, os.geteuid()) / "link").symlink_to(precious)
    folders.folder(JobId(8)).symlink_to(precious)
    folders.keep_only(())
    assert folders.all() == frozenset()
    assert (precious / "file").read_text() == "mine"


def test_only_the_folders_of_jobs_that_are_here_stay(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path)
    for job in (7, 8, 9):
        folders.make(JobId(job), os.geteuid())
    (tmp_path / "other").mkdir()
    folders.keep_only({JobId(8)})
    assert folders.all() == {8}
    assert (tmp_path / "other").is_dir()


def test_without_any_folder_there_are_no_jobs(tmp_path: Path) -> None:
    assert JobFolders(tmp_path / "none").all() == frozenset()
