"""What the head hears of jobs on a node: changes only, with times, and nothing that a former run left behind."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest

from steward.adapters.node.job_look import ProgressLook, ReportedProgress, Stamp
from steward.adapters.offload import Threads
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import MAX_JOBS, progress_of
from steward.agent import job_watch
from steward.agent.job_watch import JobWatch
from steward.agent.opted import OptedBook
from steward.model.ask import OptedIn
from steward.model.ids import JobId, NodeName
from steward.model.job_report import Progress
from steward.model.resume_mode import ResumeMode
from steward.ports import Retryable
from tests.fakes.until import FACT_S, comes_true

N1, J7 = NodeName("n1"), JobId(7)
T0 = 10_000.0


@dataclass(kw_only=True)
class FakeEyes:
    now: float = T0
    says: dict[JobId, ReportedProgress] = field(default_factory=dict)
    running: set[JobId] = field(default_factory=set)
    newest_of: dict[str, float | Retryable] = field(default_factory=dict)
    hangs: dict[str, Event] = field(default_factory=dict)
    """Paths and users' numbers, of which nothing can be read; a look at them ends when they are let go."""
    read: set[str] = field(default_factory=set)
    """Paths and users' numbers that were read."""
    looks: int = 0
    room: bool = True
    _order: dict[ReportedProgress, int] = field(default_factory=dict)

    def told(self, opted: OptedIn, before: Stamp | None) -> ProgressLook:
        self.looks += 1
        found = self.says.get(opted.job)
        if found is None:
            return ProgressLook(stamp=None)
        stamp = (1, self._order.setdefault(found, len(self._order)))
        return ProgressLook(stamp=stamp, told=None if stamp == before else found)

    def has_room(self) -> bool:
        return self.room

    def newest(self, path: str, uid: int) -> float | None:
        self._look_at(path)
        found = self.newest_of.get(path)
        if isinstance(found, Retryable):
            raise found
        return found

    def here(self, users: Mapping[JobId, int]) -> frozenset[JobId]:
        for uid in {str(uid) for uid in users.values()}:
            self._look_at(uid)
        return frozenset(self.running & users.keys())

    def _look_at(self, what: str) -> None:
        if what in self.hangs:
            self.hangs[what].wait(FACT_S)
            raise Retryable(f"{what}: it hangs")
        self.read.add(what)


class Bench:
    """A watch, driven turn by turn; `heard` is what the head knows."""

    def __init__(self, folder: Path) -> None:
        self.eyes = FakeEyes()
        self.book = OptedBook(folder / "opted.json")
        self.frames: list[Frame] = []
        self.watch = JobWatch(
            node=N1, opted=self.book, eyes=self.eyes, head=self, clock=self, threads=lambda: Threads(1)
        )

    def now(self) -> float:
        return self.eyes.now

    def post(self, frame: Frame) -> None:
        self.frames.append(frame)

    def opt_in(self, mode: str = "1", *, restart: int = 0, at: float | None = None) -> None:
        at = self.eyes.now if at is None else at
        self.book.add(OptedIn(job=J7, uid=1000, mode=ResumeMode.parse(mode), restart=restart, at=at))

    def step(
        self,
        step: int,
        *,
        at: float | None = None,
        checkpoint: str = "",
        saved: int | None = None,
        first: int | None = None,
    ) -> None:
        at = self.eyes.now if at is None else at
        self.eyes.says[J7] = ReportedProgress(
            changed=at, step=step, first=first, checkpoint=checkpoint, checkpoint_step=saved
        )

    def turn(self, seconds: float = 0.0) -> None:
        self.eyes.now += seconds
        asyncio.run(self.watch.turn())

    @property
    def heard(self) -> Progress:
        (found,) = progress_of(self.frames[-1], N1, self.eyes.now)
        return found


def test_without_an_opted_in_job_nothing_is_looked_at(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.turn()
    bench.opt_in("0")
    bench.turn()
    assert (bench.eyes.looks, bench.frames) == (0, [])


def test_a_step_is_told_once_with_its_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.opt_in()
    bench.step(1, at=T0 - 0.5)
    bench.turn()
    bench.turn(2.0)
    assert len(bench.frames) == 1
    (told,) = progress_of(bench.frames[0], N1, T0)
    assert (told.job, told.step, told.stepped, told.first_step, told.pace_s) == (J7, 1, T0 - 0.5, T0 - 0.5, None)


def test_the_number_of_the_first_step_is_the_jobs_own_word_or_the_first_that_is_seen(tmp_path: Path) -> None:
    """Seen again where the steps go back: a retry begins in the same allocation."""
    bench = Bench(tmp_path)
    bench.opt_in()
    firsts = list[int | None]()
    for step in (7, 9, 3, 4):
        bench.step(step)
        bench.turn(2.5)
        firsts.append(bench.heard.first)
    bench.step(5, first=1)
    bench.turn(2.5)
    assert (*firsts, bench.heard.first) == (7, 7, 3, 3, 1)


def test_who_calls_many_jobs_his_hides_the_progress_of_no_other_user(tmp_path: Path) -> None:
    """His files tell of a step for each job that is to come: a job that tells nothing would seem to hang."""
    bench = Bench(tmp_path)
    bench.opt_in()
    bench.step(1)
    for job in map(JobId, range(100, 100 + 2 * MAX_JOBS)):
        bench.book.add(OptedIn(job=job, uid=1666, mode=ResumeMode.parse("1"), restart=0, at=T0))
        bench.eyes.says[job] = ReportedProgress(changed=T0, step=1)
    bench.turn()
    told = {one.job for one in progress_of(bench.frames[-1], N1, T0)}
    assert J7 in told
    assert len(told) == MAX_JOBS


def test_quick_steps_are_told_together_and_a_new_checkpoint_at_once(tmp_path: Path) -> None:
    """A node may die the second after its job has saved: what it did not tell is lost."""
    bench = Bench(tmp_path)
    bench.opt_in()
    for step in range(1, 5):
        bench.step(step)
        bench.turn(0.5)
    assert len(bench.frames) == 1
    bench.step(5, checkpoint="/ckpt/5", saved=5)
    bench.turn(0.1)
    assert (len(bench.frames), bench.heard.checkpoint_step) == (2, 5)
    bench.step(6, checkpoint="/ckpt/5", saved=5)
    bench.turn(0.5)
    assert bench.heard.step == 5
    bench.turn(1.5)
    assert (len(bench.frames), bench.heard.step) == (3, 6)
    bench.step(7, checkpoint="/ckpt/5", saved=5)
    bench.turn(-3600.0)  # the clock is set back
    assert bench.heard.step == 7


def test_the_pace_is_the_longest_pause_of_late(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.opt_in()
    for step, pause in enumerate([2.0, 2.0, 30.0, 2.0, 2.0, 2.0, 2.0]):
        bench.eyes.now += pause
        bench.step(step)
        bench.turn()
    assert bench.heard.pace_s is not None
    assert 29.0 < bench.heard.pace_s <= 30.0
    assert bench.heard.first_step == T0 + 2.0


def test_a_file_that_is_touched_without_a_new_step_is_no_progress(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.opt_in()
    bench.step(5)
    bench.turn()
    bench.eyes.now += 60.0
    bench.step(5)
    bench.turn()
    assert len(bench.frames) == 1


def test_a_step_of_the_future_was_made_now(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.opt_in()
    bench.step(5, at=T0 + 1e6)
    bench.turn()
    assert bench.heard.stepped is not None
    assert abs(bench.heard.stepped - T0) < 0.01


def test_what_a_former_run_told_is_not_told_of_this_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.opt_in()
    bench.step(5)
    bench.turn()
    bench.eyes.now += 100.0
    bench.opt_in(restart=1)
    bench.eyes.running.add(J7)
    bench.turn()
    assert (bench.heard.restart, bench.heard.step) == (1, None)
    bench.step(3, at=bench.eyes.now)
    bench.turn()
    assert (bench.heard.restart, bench.heard.step) == (1, 3)


def test_after_its_own_restart_the_agent_does_not_take_any_step_for_the_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.opt_in(at=T0 - 500.0)
    bench.step(50)
    bench.turn()
    assert (bench.heard.step, bench.heard.first_step) == (50, None)


def test_a_job_that_has_no_room_to_tell_anything_does_not_seem_to_stand_still(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.opt_in()
    bench.step(1, checkpoint="/ckpt/1", saved=1)
    bench.turn()
    bench.eyes.room = False
    bench.turn(2.0)
    bench.eyes.room = True
    bench.turn(2.0)
    assert (bench.heard.step, bench.heard.stepped, bench.heard.checkpoint) == (None, None, "/ckpt/1")
    bench.turn(900.0)
    bench.step(2)
    bench.turn()
    assert (bench.heard.step, bench.heard.first_step) == (2, T0)
    assert bench.heard.stepped == pytest.approx(T0 + 904.0, abs=0.01)


def test_a_rank_that_knows_no_checkpoint_does_not_make_it_forgotten(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.opt_in()
    bench.step(10, checkpoint="/c/10", saved=10)
    bench.turn()
    bench.eyes.now += 2.0
    bench.step(11)
    bench.turn()
    heard = bench.heard
    assert (heard.step, heard.checkpoint, heard.checkpoint_step, heard.checkpointed) == (11, "/c/10", 10, T0)


def test_a_declared_path_tells_of_checkpoints(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.opt_in("1,checkpoint=/ckpt")
    bench.eyes.running.add(J7)
    bench.eyes.newest_of["/ckpt"] = T0 - 50.0
    bench.turn()
    assert bench.heard.checkpointed is None
    bench.eyes.newest_of["/ckpt"] = T0 + 5.0
    bench.turn(10.0)
    assert bench.heard.checkpoint == "/ckpt"
    assert bench.heard.checkpointed == T0 + 5.0


def test_a_path_that_does_not_answer_costs_only_what_it_would_tell(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.opt_in("1,checkpoint=/ckpt")
    bench.eyes.running.add(J7)
    bench.eyes.newest_of["/ckpt"] = Retryable("no end within 3 s")
    bench.step(1)
    bench.turn()
    assert bench.heard.step == 1


def test_a_new_head_hears_everything_and_that_there_is_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert bench.watch.frames() == ({"t": "progress", "jobs": []},)
    bench.opt_in()
    bench.step(4)
    bench.turn()
    (frame,) = bench.watch.frames()
    assert progress_of(frame, N1, T0)[0].step == 4


def test_one_users_folder_that_does_not_answer_hides_no_other_users_checkpoints(tmp_path: Path) -> None:
    bench, let_go = Bench(tmp_path), Event()
    bench.eyes.hangs = {"/fuse/x": let_go}
    for job, uid, path in ((6, 1001, "/fuse/x"), (7, 1000, "/lustre/b")):
        mode = ResumeMode.parse(f"1,checkpoint={path}")
        bench.book.add(OptedIn(job=JobId(job), uid=uid, mode=mode, restart=0, at=T0))
        bench.eyes.running.add(JobId(job))
        bench.eyes.newest_of[path] = T0 + 5

    turns(bench, 2, "/lustre/b", let_go)
    told = {one.job: one.checkpointed for one in progress_of(bench.frames[-1], N1, bench.eyes.now)}
    assert told[JobId(7)] is not None
    assert told[JobId(6)] is None


def turns(bench: Bench, number: int, what: str, let_go: Event) -> None:
    """Let the watch look so often; what hangs is let go when `what` was read beside it."""

    async def look() -> None:
        for _ in range(number):
            bench.eyes.now += 15
            await bench.watch.turn()

    async def story() -> None:
        looking = asyncio.ensure_future(look())
        await comes_true(f"{what} is read", lambda: what in bench.eyes.read)
        let_go.set()
        await looking

    try:
        asyncio.run(story())
    finally:
        let_go.set()


def counted(bench: Bench, story: Callable[[], Awaitable[None]]) -> None:
    """Run the watch as the agent does, in quick time, beside the story."""

    async def within() -> None:
        watching = asyncio.ensure_future(bench.watch.run())
        try:
            await story()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(within())


def test_while_no_job_is_here_nothing_is_looked_at_until_one_is_spoken_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a job that is over the book knows for a while; its next step is spoken of again."""
    monkeypatch.setattr(job_watch, "EVERY_S", {"told": 0.01, "here": 0.01, "checkpoint": 0.01})
    monkeypatch.setattr(job_watch, "YOUNG_S", 1.0)  # longer than a busy machine stands still
    bench = Bench(tmp_path)

    async def story() -> None:
        bench.opt_in()
        bench.eyes.running.add(J7)
        await comes_true("its report is read", lambda: bench.eyes.looks > 3)
        await asyncio.sleep(0.2)
        assert bench.watch.is_awake
        bench.eyes.running.clear()
        await comes_true("it is over", lambda: not bench.watch.is_awake)
        await asyncio.sleep(0.05)
        before = bench.eyes.looks
        await asyncio.sleep(0.2)
        assert bench.eyes.looks == before
        bench.opt_in()
        await comes_true("the next step's report is read", lambda: bench.eyes.looks > before)

    counted(bench, story)


def test_processes_that_nobody_spoke_of_are_found_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_watch, "YOUNG_S", 0.0)
    monkeypatch.setattr(job_watch, "ASLEEP_EVERY_S", 0.1)
    bench = Bench(tmp_path)

    async def story() -> None:
        bench.opt_in()
        await asyncio.sleep(0.05)
        assert not bench.watch.is_awake
        before = bench.eyes.looks
        bench.eyes.running.add(J7)
        await comes_true("they are found, and its report is read", lambda: bench.eyes.looks > before)
        assert bench.watch.is_awake

    counted(bench, story)


def test_one_users_processes_that_cannot_be_read_hide_no_other_users_jobs(tmp_path: Path) -> None:
    """A page of their memory may be a file that nobody serves."""
    bench, let_go = Bench(tmp_path), Event()
    bench.eyes.hangs = {"1001": let_go}
    for job, uid in ((6, 1001), (7, 1000)):
        bench.book.add(OptedIn(job=JobId(job), uid=uid, mode=ResumeMode.parse("1"), restart=0, at=T0))
        bench.eyes.running.add(JobId(job))
    turns(bench, 1, "1000", let_go)
    assert {one.job for one in progress_of(bench.frames[-1], N1, bench.eyes.now)} == {7}
