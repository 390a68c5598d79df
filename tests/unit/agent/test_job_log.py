"""Whose output is read, which part of it, and that nothing of it holds anything up."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest

from steward.adapters.offload import Threads
from steward.agent.looks import MAX_BYTES, JobLogs
from steward.agent.opted import OptedBook, Output
from steward.model.ask import OptedIn
from steward.model.ids import JobId
from steward.model.resume_mode import ResumeMode
from steward.ports import Retryable
from tests.fakes.until import FACT_S

J7 = JobId(7)


@dataclass(kw_only=True)
class FakeFiles:
    text: str = ""
    uid: int = -1
    refuses: bool = False
    hangs: dict[int, Event] = field(default_factory=dict)

    def tail(self, path: str, uid: int, *, max_bytes: int, timeout_s: float, start: int) -> str:
        if uid in self.hangs:
            self.hangs[uid].wait(FACT_S)
        if self.refuses:
            raise Retryable("no end within 0.5 s")
        self.uid = uid
        assert max_bytes <= MAX_BYTES
        return self.text[start if len(self.text) >= start else 0 :][-max_bytes:]


class Bench:
    def __init__(self, folder: Path) -> None:
        self.files = FakeFiles()
        self.book = OptedBook(folder / "opted.json")
        self.logs = JobLogs(self.book, lambda: Threads(1), self.files)
        self.run(0)

    def run(self, restart: int) -> None:
        """A run begins, and its shim says where its output is and what is in it."""
        self.book.add(OptedIn(job=J7, uid=1000, mode=ResumeMode.parse("1"), restart=restart, at=1.0))
        self.book.note_output(J7, 1000, restart, Output("/home/me/out", len(self.files.text)))

    def signs(self, job: JobId = J7) -> list[str]:
        async def ask() -> list[str]:
            return [sign.sign for sign in await self.logs(job, 1000)]

        return asyncio.run(ask())


def test_the_output_is_read_as_the_jobs_user(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.files.text = "KeyError: 'x'\n"
    assert bench.signs() == ["user.python"]
    assert bench.files.uid == 1000


def test_of_a_job_that_is_not_known_nothing_is_read(tmp_path: Path) -> None:
    assert Bench(tmp_path).signs(JobId(8)) == []


def test_what_former_runs_wrote_does_not_count(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.files.text = "KeyError: 'old'\nslurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 1 DUE TO NODE FAILURE ***\n"
    bench.run(1)
    assert bench.signs() == []
    bench.files.text += "Bus error\n"
    assert bench.signs() == ["crash.bus"]


def test_an_output_that_was_emptied_counts_whole(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.files.text = "x" * 1000
    bench.run(1)
    bench.files.text = "Bus error\n"
    assert bench.signs() == ["crash.bus"]


def test_an_output_that_does_not_answer_is_a_retryable_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.files.refuses = True
    with pytest.raises(Retryable):
        bench.signs()


def test_one_users_output_that_does_not_answer_hides_no_other_users(tmp_path: Path) -> None:
    bench, let_go = Bench(tmp_path), Event()
    bench.files.text, bench.files.hangs = "Bus error\n", {1001: let_go}
    bench.book.add(OptedIn(job=JobId(6), uid=1001, mode=ResumeMode.parse("1"), restart=0, at=1.0))
    bench.book.note_output(JobId(6), 1001, 0, Output("/fuse/out", 0))

    async def story() -> list[str]:
        hung = asyncio.gather(*(bench.logs(JobId(6), 1001) for _ in range(8)), return_exceptions=True)
        await asyncio.sleep(0.05)
        found = await bench.logs(J7, 1000)
        await hung
        return [sign.sign for sign in found]

    try:
        assert asyncio.run(story()) == ["crash.bus"]
    finally:
        let_go.set()
