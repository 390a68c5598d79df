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
    assert folder == tmp_path / "jobs" / f"7-{os.geteuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folders.progress(JOB, os.geteuid()), folders.stacks(JOB, os.geteuid())) == (
        folder / "progress",
        folder / "stacks",
    )


def test_made_again_it_keeps_what_is_in_it(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path)
    folders.make(JOB, os.geteuid())
    folders.progress(JOB, os.geteuid()).write_text("12")
    folders.make(JOB, os.geteuid())
    assert folders.progress(JOB, os.geteuid()).read_text() == "12"


def test_two_steps_that_begin_together_get_the_same_folder(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path)
    with ThreadPoolExecutor(4) as threads:
        for job in map(JobId, range(1, 21)):
            made = set(threads.map(folders.make, [job] * 4, [65534] * 4))
            assert {folder.stat().st_uid for folder in made} == {65534}
            assert made == {folders.folder(job, 65534)}


def test_who_calls_a_job_that_is_to_come_his_does_not_get_its_folder(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path)
    his = folders.make(JOB, 65534)
    own = folders.make(JOB, os.geteuid())
    assert own != his
    assert [each.stat().st_uid for each in (his, own)] == [65534, os.geteuid()]
    folders.remove(JOB)
    assert list(tmp_path.iterdir()) == []


def test_what_an_agent_left_half_made_is_made_anew(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path)
    (tmp_path / "7-65534").mkdir()
    assert folders.make(JOB, 65534).stat().st_uid == 65534


def test_a_removal_follows_no_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    folders = JobFolders(tmp_path / "jobs")
    (folders.make(JOB, os.geteuid()) / "link").symlink_to(precious)
    folders.folder(JobId(8), 1).symlink_to(precious)
    for job in folders.all():
        folders.remove(job)
    assert folders.all() == frozenset()
    assert (precious / "file").read_text() == "mine"


def test_the_folders_of_other_jobs_stay(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path)
    for job in (7, 8, 9):
        folders.make(JobId(job), os.geteuid())
    (tmp_path / "other").mkdir()
    folders.remove(JobId(7))
    folders.remove(JobId(9))
    assert folders.all() == {8}
    assert (tmp_path / "other").is_dir()


def test_without_any_folder_there_are_no_jobs(tmp_path: Path) -> None:
    assert JobFolders(tmp_path / "none").all() == frozenset()
