"""The book of opted-in jobs."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from steward.adapters.wire.messages import MAX_OPTED
from steward.agent.job_folder import JobFolders
from steward.agent.opted import CROWDED, OptedBook, Output, keep_tidy
from steward.model.ask import OptedIn
from steward.model.ids import JobId, NodeName
from steward.model.resume_mode import ResumeMode
from tests.fakes.agent_parts import FakeSlurmLook
from tests.fakes.clock import FakeClock
from tests.fakes.until import comes_true


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


def test_jobs_of_another_boot_are_not_known_where_the_folder_of_state_outlives_a_boot(path: Path) -> None:
    book = OptedBook(path, "boot-1")
    book.add(opted(7))
    book.close()
    assert jobs(OptedBook(path, "boot-1")) == [7]
    assert jobs(OptedBook(path, "boot-2")) == []


def test_that_the_script_began_here_is_news_and_stays_known_for_the_run(path: Path) -> None:
    book, script, step = OptedBook(path), replace(opted(7), has_script=True), replace(opted(7), has_steps=True)
    assert [book.add(one) for one in (step, script, script, step)] == [True, True, False, False]
    book.close()
    assert OptedBook(path).all() == (replace(step, has_script=True),)
    book.add(replace(opted(7), restart=1))
    assert not book.all()[0].has_script


def test_what_a_script_said_of_sizes_stays_whatever_its_steps_say(path: Path) -> None:
    book, script = OptedBook(path), replace(opted(7), elastic="8:2")
    book.add(script)
    book.add(opted(7))
    book.add(replace(opted(7), mode=ResumeMode.parse("any:2")))
    assert book.all() == (replace(script, mode=ResumeMode.parse("any:2")),)
    book.add(replace(opted(7), restart=1))
    assert book.all()[0].elastic == ""


def test_the_first_step_of_a_run_is_news_and_stays_known(path: Path) -> None:
    book, step = OptedBook(path), replace(opted(7), has_steps=True)
    assert [book.add(one) for one in (opted(7), step, step, opted(7))] == [True, True, False, False]
    book.close()
    assert OptedBook(path).all() == (step,)
    book.add(replace(opted(7), restart=1))
    assert not book.all()[0].has_steps


def test_that_no_srun_waits_for_a_step_is_news_and_stays_known_for_the_run(path: Path) -> None:
    book, step = OptedBook(path), replace(opted(7), has_steps=True, has_detached=True)
    waited = replace(step, has_detached=False)
    assert [book.add(one) for one in (opted(7), waited, step, waited)] == [True, True, True, False]
    assert book.all() == (step,)
    book.add(replace(opted(7), restart=1))
    assert not book.all()[0].has_detached


def test_what_earlier_attempts_left_is_news_and_stays_known_for_the_run(path: Path) -> None:
    book, left = OptedBook(path), replace(opted(7), left="12 redis-server")
    assert [book.add(one) for one in (opted(7), left, left, opted(7))] == [True, True, False, False]
    assert book.all() == (left,)
    book.add(replace(opted(7), restart=1))
    assert not book.all()[0].left


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
    book.prune({JobId(2): 1000}, now=1000.0)
    assert jobs(book) == [2, 3]
    assert jobs(OptedBook(path)) == [2, 3]


def test_a_book_that_cannot_be_saved_still_knows_its_jobs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    book = OptedBook(tmp_path / "file" / "opted.json")
    assert book.add(opted(1))
    assert jobs(book) == [1]


def tidied(
    book: OptedBook,
    slurm: FakeSlurmLook,
    folders: Path = Path("/nowhere"),
    *,
    until: Callable[[], bool] | None = None,
) -> None:
    """Tidy until that holds; for a moment, where nothing may happen."""

    async def story() -> None:
        clock = FakeClock(at=10_000.0)
        tidying = asyncio.ensure_future(
            keep_tidy(book, JobFolders(folders), slurm, NodeName("n1"), clock, every_s=0.01)
        )
        if until is None:
            await asyncio.sleep(0.1)
        else:
            await comes_true("it is tidy", until)
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
    away = FakeSlurmLook(up=False)
    tidied(book, away, until=lambda: away.asked > 1)
    assert len(jobs(book)) == CROWDED + 1
    tidied(book, FakeSlurmLook(here={JobId(5): 1000}), until=lambda: jobs(book) == [5])


def test_a_job_that_has_left_the_node_leaves_no_folder(path: Path, tmp_path: Path) -> None:
    book, folders = OptedBook(path), JobFolders(tmp_path / "jobs")
    for job in (1, 2):
        book.add(opted(job))
        folders.make(JobId(job), os.geteuid())
    slurm = FakeSlurmLook(here={JobId(2): 1000})
    tidied(book, slurm, tmp_path / "jobs", until=lambda: slurm.asked > 1)
    assert jobs(book) == [2]
    assert folders.all() == {2}


def test_where_a_script_writes_to_is_known_again_after_a_restart(path: Path) -> None:
    book = OptedBook(path)
    book.add(opted(7))
    book.note_output(JobId(7), 1000, 0, Output("/home/a/é.out", 12))
    assert OptedBook(path).output_of(JobId(7), 1000) == Output("/home/a/é.out", 12)
    assert OptedBook(path).output_of(JobId(8), 1000) == Output()


def test_where_another_run_wrote_to_is_of_no_interest(path: Path) -> None:
    book = OptedBook(path)
    book.add(opted(7))
    book.note_output(JobId(7), 1000, 3, Output("/home/a/other.out"))
    assert book.output_of(JobId(7), 1000) == Output()
    book.note_output(JobId(7), 1000, 0, Output("/home/a/first.out"))
    book.add(replace(opted(7), restart=1))
    assert book.output_of(JobId(7), 1000) == Output()


def test_whose_job_it_is_for_sure_is_known_again_after_a_restart(path: Path) -> None:
    book = OptedBook(path)
    book.add(replace(opted(7), uid=1001))
    book.add(opted(7))
    assert not OptedBook(path).is_owned_by_another(JobId(7), 1001), "each says so himself"
    book.add(opted(7), sure=True)
    again = OptedBook(path)
    assert again.all() == (opted(7),)
    assert again.is_owned_by_another(JobId(7), 1001)


def test_what_slurm_says_of_whose_a_job_is_ends_a_dispute_and_what_it_does_not_know_stays(path: Path) -> None:
    book = OptedBook(path)
    for job in (7, 8):
        book.add(replace(opted(job), uid=1001))
        book.add(opted(job, at=1.0))
    assert book.is_disputed(JobId(7))
    book.confirm_owners({JobId(7): 1000, JobId(9): 1001})
    assert [one.uid for one in book.all() if one.job == 7] == [1000]
    assert [one.uid for one in book.all() if one.job == 8] == [1001, 1000]
    assert (book.is_disputed(JobId(7)), book.is_disputed(JobId(8))) == (False, True)


def test_of_a_job_that_several_call_theirs_one_word_counts_and_it_is_the_surest(path: Path) -> None:
    book = OptedBook(path)
    book.add(replace(opted(7), uid=1001))
    book.add(opted(7, at=1.0))
    assert [one.uid for one in book.claims_that_count()] == [1001]
    book.add(opted(7, at=2.0), sure=True)
    assert [one.uid for one in book.claims_that_count()] == [1000]


def test_a_young_word_of_another_than_slurm_says_is_forgotten(path: Path) -> None:
    book = OptedBook(path)
    book.add(replace(opted(7), uid=1001, at=999.0))
    book.prune({JobId(7): 1000}, now=1000.0)
    assert book.all() == ()


def test_an_agent_that_stops_writes_what_is_not_written_yet(path: Path) -> None:
    async def story() -> None:
        book = OptedBook(path)
        tidy = asyncio.ensure_future(
            keep_tidy(book, JobFolders(path.parent), FakeSlurmLook(), NodeName("n1"), FakeClock())
        )
        await asyncio.sleep(0)
        for job in range(1, 20):
            book.add(opted(job))
        tidy.cancel()
        await asyncio.gather(tidy, return_exceptions=True)

    asyncio.run(story())
    assert jobs(OptedBook(path)) == list(range(1, 20))


def test_words_in_haste_are_not_each_written(path: Path) -> None:
    async def story() -> None:
        book = OptedBook(path)
        for job in range(1, 20):
            book.add(opted(job))
        assert jobs(OptedBook(path)) == [1]
        book.close()

    asyncio.run(story())
    assert jobs(OptedBook(path)) == list(range(1, 20))
