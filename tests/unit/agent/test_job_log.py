"""Whose output is read, which part of it, and that nothing of it holds anything up."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import pytest

from steward.adapters.offload import Threads
from steward.adapters.wire.shimline import AskLine, EndedLine, Written
from steward.agent.looks import MAX_BYTES, JobLogs
from steward.agent.opted import OptedBook, Output
from steward.agent.output_reach import MAX_FAILED
from steward.model.ask import Answer, AskKind, OptedIn
from steward.model.ids import JobId
from steward.model.resume_mode import ResumeMode
from steward.ports import Retryable
from tests.fakes.clock import FakeClock
from tests.fakes.until import FACT_S

J7 = JobId(7)
INODE = 4711
SCRIPT = AskLine(
    kind=AskKind.BATCH,
    job=J7,
    step="batch",
    uid=1000,
    mode=ResumeMode.parse("any:3"),
    attempt=1,
    restart=0,
    status=7 << 8,
)
IMPORT, KEY, BUS = "ImportError: no x\n", "KeyError: 'x'\n", "Bus error\n"
CANCELLED = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-30T12:00:00 ***\n"
LATER_S = 60.0


@dataclass(kw_only=True)
class FakeFiles:
    text: str = ""
    uid: int = -1
    refuses: bool = False
    hangs: dict[int, Event] = field(default_factory=dict)

    def tail(
        self, path: str, uid: int, *, max_bytes: int, timeout_s: float, start: int, starts: Mapping[int, int]
    ) -> str:
        if uid in self.hangs:
            self.hangs[uid].wait(FACT_S)
        if self.refuses:
            raise Retryable("no end within 0.5 s")
        self.uid = uid
        assert max_bytes <= MAX_BYTES
        start = starts.get(INODE, start)
        return self.text[start if len(self.text) >= start else 0 :][-max_bytes:]


class Bench:
    def __init__(self, folder: Path) -> None:
        self.files = FakeFiles()
        self.book = OptedBook(folder / "opted.json")
        self.clock = FakeClock()
        self.logs = JobLogs(self.book, self.clock, lambda: Threads(1), self.files)
        self.run(0)

    def run(self, restart: int) -> None:
        """A run begins, and its shim says where its output is and what is in it."""
        self.book.add(OptedIn(job=J7, uid=1000, mode=ResumeMode.parse("1"), restart=restart, at=1.0))
        self.book.note_output(J7, 1000, restart, Output("/home/me/out", len(self.files.text)))

    def signs(self, line: AskLine = SCRIPT) -> list[str]:
        async def ask() -> list[str]:
            return [sign.sign for sign in await self.logs.signs(line)]

        return asyncio.run(ask())

    def begin(self, step: int = 0) -> AskLine:
        """A step begins: what it asks when it fails."""
        written = self._written(len(self.files.text))
        return replace(SCRIPT, kind=AskKind.STEP, step=str(step), status=5 << 8, written=written)

    def fail(self, step: AskLine, text: str, answer: Answer = Answer.STOP) -> list[str]:
        """The step writes this and fails; the signs that it is judged by."""
        self.files.text += text
        ended = replace(step, written=self._written(step.written[0].begin))
        signs = self.signs(ended)
        self.logs.note_answer(ended, answer)
        return signs

    def end(self, step: AskLine, text: str) -> None:
        """The step writes this and ends well."""
        self.files.text += text
        written = self._written(step.written[0].begin)
        self.logs.note_success(EndedLine(job=J7, step=step.step, restart=step.restart, written=written), 1000)

    def _written(self, begin: int) -> tuple[Written, ...]:
        return (Written(inode=INODE, begin=begin, end=len(self.files.text)),)


def test_the_output_is_read_as_the_jobs_user(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.files.text = "KeyError: 'x'\n"
    assert bench.signs() == ["user.python"]
    assert bench.files.uid == 1000


def test_of_a_job_that_is_not_known_nothing_is_read(tmp_path: Path) -> None:
    assert Bench(tmp_path).signs(replace(SCRIPT, job=JobId(8))) == []


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
        theirs = replace(SCRIPT, job=JobId(6), uid=1001)
        hung = asyncio.gather(*(bench.logs.signs(theirs) for _ in range(8)), return_exceptions=True)
        await asyncio.sleep(0.05)
        found = await bench.logs.signs(SCRIPT)
        await hung
        return [sign.sign for sign in found]

    try:
        assert asyncio.run(story()) == ["crash.bus"]
    finally:
        let_go.set()


def test_a_step_is_judged_by_what_it_wrote_itself(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert bench.fail(bench.begin(0), CANCELLED + IMPORT) == ["slurm.cancelled"]
    assert bench.fail(bench.begin(1), BUS) == ["crash.bus"]


def test_a_step_whose_files_are_not_known_is_judged_by_the_whole_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.files.text = IMPORT
    assert bench.signs(replace(bench.begin(), written=())) == ["user.python"]


def test_an_error_that_a_script_handled_says_nothing_of_what_fails_later(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.fail(bench.begin(), IMPORT)
    bench.clock.at += LATER_S
    assert bench.signs() == []
    bench.files.text += BUS
    assert bench.signs() == ["crash.bus"]


def test_nor_does_one_of_a_step_that_ended_well_or_ran_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.end(bench.begin(0), IMPORT)
    assert bench.signs() == []
    step = bench.begin(1)
    bench.fail(step, KEY, Answer.RETRY)
    bench.end(step, "")
    assert bench.signs() == []


def test_a_script_that_ends_because_of_a_step_is_judged_by_what_that_step_wrote(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.fail(bench.begin(0), BUS)
    bench.clock.at += LATER_S
    bench.fail(bench.begin(1), IMPORT)
    assert bench.signs() == ["user.python"]


def test_a_step_after_which_the_script_begins_another_is_handled_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.fail(replace(bench.begin(0), status=3 << 8), IMPORT)
    bench.end(bench.begin(1), "ok\n")
    assert bench.signs() == []


def test_also_where_the_script_tidies_up_before_it_ends_with_the_steps_code(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.fail(replace(bench.begin(0), status=3 << 8), IMPORT)
    bench.end(bench.begin(1), "tidied up\n")
    bench.clock.at += LATER_S
    assert bench.signs() == []
    assert bench.signs(replace(SCRIPT, status=3 << 8)) == ["user.python"]


def test_of_two_steps_side_by_side_that_both_failed_all_counts(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    first, second = bench.begin(0), bench.begin(1)
    bench.fail(first, IMPORT)
    bench.fail(second, BUS)
    assert bench.signs() == ["user.python", "crash.bus"]


def test_steps_of_an_earlier_run_say_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.end(bench.begin(), "x" * 1000)
    bench.files.text = ""
    bench.run(1)
    bench.files.text = IMPORT + "x" * 2000
    assert bench.signs(replace(SCRIPT, restart=1)) == ["user.python"]


def test_what_is_kept_of_steps_is_bounded(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for step in range(4 * MAX_FAILED):
        bench.fail(bench.begin(step), IMPORT)
        bench.clock.at += LATER_S
    assert bench.signs() == []
