"""The book of opted-in jobs."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from steward.adapters.messages import MAX_OPTED
from steward.agent.job_folder import JobFolders
from steward.agent.opted import CROWDED, OptedBook
from steward.agent.tidy import keep_tidy
from steward.model.ask import OptedIn
from steward.model.ids import JobId, NodeName
from steward.model.resume_mode import ResumeMode
from tests.fakes.agent_parts import FakeSlurmLook
from tests.fakes.clock import FakeClock


def opted(job: int, at: float = 0.0) -> OptedIn:
    return OptedIn(job=JobId(job), uid=1000, mode=ResumeMode.parse("1"), restart=0, at=at)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "opted.json"


def jobs(book: OptedBook) -> list[int]:
    return sorted(one.job for one in book.all())


def test_jobs_are_known_again_after_a_restart(path: Path) -> None:
    OptedBook(path).add(opted(7, at=5.0))
    assert OptedBook(path).all() == (opted(7, at=5.0),)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '[{"job":"x"}]', '[{"job":-1,"uid":0}]'])
def test_a_spoiled_file_is_an_empty_book(path: Path, content: str) -> None:
    path.write_text(content)
    assert OptedBook(path).all() == ()


def test_the_book_is_bounded_and_the_oldest_go_first(path: Path) -> None:
    book = OptedBook(path)
    for number in range(MAX_OPTED + 10):
        book.add(opted(number + 1, at=float(number)))
    assert jobs(book) == list(range(11, MAX_OPTED + 11))


def test_pruning_keeps_what_slurm_shows_and_what_is_young(path: Path) -> None:
    book = OptedBook(path)
    for job, at in ((1, 0.0), (2, 0.0), (3, 950.0)):
        book.add(opted(job, at))
    book.prune(frozenset({JobId(2)}), now=1000.0)
    assert jobs(book) == [2, 3]
    assert jobs(OptedBook(path)) == [2, 3]


def test_a_book_that_cannot_be_saved_still_knows_its_jobs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    book = OptedBook(tmp_path / "file" / "opted.json")
    assert book.add(opted(1))
    assert jobs(book) == [1]


def tidied(book: OptedBook, slurm: FakeSlurmLook, folders: Path = Path("/nowhere")) -> None:
    async def story() -> None:
        clock = FakeClock(at=10_000.0)
        tidying = asyncio.ensure_future(
            keep_tidy(book, JobFolders(folders), slurm, NodeName("n1"), clock, every_s=0.01)
        )
        await asyncio.sleep(0.1)
        tidying.cancel()

    asyncio.run(story())


def test_slurm_is_asked_only_when_the_book_is_crowded(path: Path) -> None:
    book, slurm = OptedBook(path), FakeSlurmLook()
    book.add(opted(1))
    tidied(book, slurm)
    assert slurm.asked == 0
    assert jobs(book) == [1]


def test_a_crowded_book_is_thinned_out_and_not_without_slurms_word(path: Path) -> None:
    book = OptedBook(path)
    for number in range(CROWDED + 1):
        book.add(opted(number + 1))
    tidied(book, FakeSlurmLook(up=False))
    assert len(jobs(book)) == CROWDED + 1
    tidied(book, FakeSlurmLook(here=frozenset({JobId(5)})))
    assert jobs(book) == [5]


def test_a_job_that_has_left_the_node_leaves_no_folder(path: Path, tmp_path: Path) -> None:
    book, folders = OptedBook(path), JobFolders(tmp_path / "jobs")
    for job in (1, 2):
        book.add(opted(job))
        folders.make(JobId(job), os.geteuid())
    tidied(book, FakeSlurmLook(here=frozenset({JobId(2)})), tmp_path / "jobs")
    assert jobs(book) == [2]
    assert folders.all() == {2}


def test_where_a_script_writes_to_is_known_again_after_a_restart(path: Path) -> None:
    book = OptedBook(path)
    book.add(opted(7))
    book.note_out(JobId(7), 0, "/home/a/é.out")
    assert OptedBook(path).out_of(JobId(7)) == "/home/a/é.out"
    assert OptedBook(path).out_of(JobId(8)) == ""


def test_where_another_run_wrote_to_is_of_no_interest(path: Path) -> None:
    book = OptedBook(path)
    book.add(opted(7))
    book.note_out(JobId(7), 3, "/home/a/other.out")
    assert book.out_of(JobId(7)) == ""
    book.note_out(JobId(7), 0, "/home/a/first.out")
    book.add(replace(opted(7), restart=1))
    assert book.out_of(JobId(7)) == ""
