"""Shims that wait at the agent's desk."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from steward.adapters.shimline import AskLine, ExitLine, LogLine, OptedLine
from steward.agent.desk import Desk
from steward.agent.exits import Exits
from steward.agent.opted import OptedBook
from steward.model.ask import Answer, AskKind, OptedIn
from steward.model.ids import AskId, JobId, NodeName
from steward.model.job_report import Lean, LogSign
from steward.model.resume_mode import ResumeMode
from tests.fakes.agent_parts import FakeHead, FakeSlurmLook
from tests.fakes.clock import FakeClock
from tests.fakes.wires import WHO

MODE = ResumeMode.parse("1")
ASK = AskLine(kind=AskKind.BATCH, job=JobId(12), step="batch", uid=1000, mode=MODE, attempt=1, restart=0, status=256)
OPTED = OptedLine(job=JobId(12), uid=1000, mode=MODE, restart=0)
NONE: frozenset[NodeName] = frozenset()
LOOK_S = 0.02


EXIT = ExitLine(job=JobId(12), step="0", restart=0, task=3, status=256)
LOG = LogLine(job=JobId(12), restart=0, out="/home/a/12.out")
SIGN = LogSign(sign="nccl.timeout", lean=Lean.CASCADE, strong=True, line="Watchdog caught", order=7)


@dataclass
class FakeBriefing:
    told: dict[str, str] = field(default_factory=dict)

    async def words(self, line: OptedLine) -> dict[str, str]:
        return self.told


@dataclass
class Scene:
    folder: Path
    head: FakeHead = field(default_factory=FakeHead)
    slurm: FakeSlurmLook = field(default_factory=FakeSlurmLook)
    clock: FakeClock = field(default_factory=FakeClock)
    briefing: FakeBriefing = field(default_factory=FakeBriefing)
    signs: tuple[LogSign, ...] | OSError | None = ()

    def __post_init__(self) -> None:
        self.opted = OptedBook(self.folder / "opted.json")
        self.desk = Desk(
            node=NodeName("n1"),
            incarnation=WHO,
            clock=self.clock,
            head=self.head,
            opted=self.opted,
            own_look=self.slurm,
            hold_head_absent_s=90.0,
            trusted=frozenset({0}),
            briefing=self.briefing,
            exits=Exits(NodeName("n1"), self.head, self.clock),
            signs=self.read_signs,
            own_look_every_s=LOOK_S,
        )

    async def read_signs(self, job: JobId) -> tuple[LogSign, ...]:
        if self.signs is None:
            await asyncio.sleep(60)
        if isinstance(self.signs, OSError):
            raise self.signs
        return self.signs or ()

    async def asks(self, line: AskLine = ASK, peer: int = 0) -> "asyncio.Task[bytes | None]":
        task = asyncio.ensure_future(self.desk.serve(line, peer))
        await asyncio.sleep(0.005)
        return task

    def last_id(self) -> AskId:
        return AskId([frame["id"] for frame in self.head.told if frame["t"] == "ask"][-1])


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(10):
            await story()

    asyncio.run(within())


def test_an_ask_goes_to_the_head_and_the_heads_word_to_the_shim(scene: Scene) -> None:
    async def story() -> None:
        shim = await scene.asks()
        (frame,) = scene.head.told
        assert (frame["t"], frame["job"], frame["uid"], frame["status"]) == ("ask", 12, 1000, 256)
        scene.desk.decide(frame["id"], Answer.REQUEUE, NONE)
        assert await shim == b"steward/1 requeue\n"
        assert scene.desk.frames() == ()

    run(story)


def test_ids_name_the_node_and_its_boot_and_never_come_twice(scene: Scene) -> None:
    async def story() -> None:
        tasks = [await scene.asks() for _ in range(3)]
        again = Scene(scene.folder, clock=FakeClock(at=scene.clock.at + 1))
        tasks.append(await again.asks())
        ids = [frame["id"] for frame in (*scene.head.told, *again.head.told)]
        assert len(set(ids)) == 4
        assert all(one.startswith("n1-b0000001-") for one in ids)
        for task in tasks:
            task.cancel()

    run(story)


def test_a_step_is_told_to_retry_without_the_nodes_that_are_bad(scene: Scene) -> None:
    async def story() -> None:
        shim = await scene.asks(replace(ASK, kind=AskKind.STEP, step="0"))
        scene.desk.decide(scene.last_id(), Answer.RETRY, frozenset({NodeName("n3")}))
        assert await shim == b"steward/1 retry exclude=n3\n"

    run(story)


def test_a_batch_script_is_never_told_to_retry(scene: Scene) -> None:
    async def story() -> None:
        shim = await scene.asks()
        scene.desk.decide(scene.last_id(), Answer.RETRY, NONE)
        assert await shim == b"steward/1 stop\n"

    run(story)


def test_a_shim_that_hangs_up_is_withdrawn_and_a_late_word_changes_nothing(scene: Scene) -> None:
    async def story() -> None:
        shim = await scene.asks()
        ask = scene.last_id()
        shim.cancel()
        await asyncio.gather(shim, return_exceptions=True)
        assert scene.head.told[-1] == {"t": "withdraw", "id": ask}
        scene.desk.decide(ask, Answer.REQUEUE, NONE)

    run(story)


def test_an_answered_ask_is_not_withdrawn(scene: Scene) -> None:
    async def story() -> None:
        shim = await scene.asks()
        scene.desk.decide(scene.last_id(), Answer.STOP, NONE)
        await shim
        assert scene.head.kinds() == ["ask"]

    run(story)


def test_a_new_connection_begins_with_every_ask_that_still_waits(scene: Scene) -> None:
    async def story() -> None:
        scene.head.away_since = scene.clock.at
        first, second = await scene.asks(), await scene.asks(replace(ASK, job=JobId(13)))
        assert scene.head.told == []
        frames = scene.desk.frames()
        assert [frame["job"] for frame in frames] == [12, 13]
        scene.head.away_since = None
        scene.desk.decide(AskId(frames[0]["id"]), Answer.STOP, NONE)
        assert await first == b"steward/1 stop\n"
        second.cancel()

    run(story)


def test_with_the_head_there_slurm_is_not_asked(scene: Scene) -> None:
    async def story() -> None:
        scene.slurm.over.add(12)
        shim = await scene.asks()
        await asyncio.sleep(5 * LOOK_S)
        assert not shim.done()
        assert scene.slurm.asked == 0
        shim.cancel()

    run(story)


def test_while_the_head_is_away_a_job_that_is_over_is_let_go(scene: Scene) -> None:
    async def story() -> None:
        scene.head.away_since = scene.clock.at
        shim = await scene.asks()
        await asyncio.sleep(3 * LOOK_S)
        assert not shim.done()
        scene.slurm.over.add(12)
        assert await shim == b"steward/1 stop\n"

    run(story)


def test_while_nobody_answers_a_job_is_held_for_its_time_and_then_let_go(scene: Scene) -> None:
    async def story() -> None:
        scene.head.away_since, scene.slurm.up = scene.clock.at - 1000, False
        shim = await scene.asks()
        scene.clock.at += 89.9
        await asyncio.sleep(3 * LOOK_S)
        assert not shim.done()
        scene.clock.at += 0.2
        assert await shim == b"steward/1 stop\n"

    run(story)


def test_a_user_may_speak_of_his_own_job_only(scene: Scene) -> None:
    async def story() -> None:
        assert await scene.desk.serve(OPTED, 1000) == b"steward/1 ok\n"
        assert await scene.desk.serve(OPTED, 1001) is None
        assert await scene.desk.serve(replace(ASK, uid=1001), 1001) is None, "the book says that it is another's"
        assert await scene.desk.serve(ASK, 1001) is None
        own = await scene.asks(ASK, 1000)
        assert not own.done()
        own.cancel()

    run(story)
    assert [job.uid for job in scene.opted.all()] == [1000]


def test_root_may_speak_of_any_job(scene: Scene) -> None:
    run(lambda: _opt_in(scene))
    assert scene.opted.of(JobId(12)) == OptedIn(job=JobId(12), uid=1000, mode=MODE, restart=0, at=1000.0)


async def _opt_in(scene: Scene) -> None:
    assert await scene.desk.serve(OPTED, 0) == b"steward/1 ok\n"


def test_the_head_hears_of_an_opted_job_once_not_with_each_of_its_steps(scene: Scene) -> None:
    async def story() -> None:
        for _ in range(3):
            await scene.desk.serve(OPTED, 0)
        await scene.desk.serve(replace(OPTED, restart=1), 0)

    run(story)
    assert [frame["opted"][0]["restart"] for frame in scene.head.told] == [0, 1]


def test_a_starting_job_is_told_what_is_known_for_it(scene: Scene) -> None:
    scene.briefing.told = {"resume_count": "2", "resume_reason": "node n3 failed: 50%"}

    async def story() -> None:
        answer = b"steward/1 ok resume_count=2 resume_reason=node%20n3%20failed:%2050%25\n"
        assert await scene.desk.serve(OPTED, 1000) == answer
        out = replace(OPTED, job=JobId(13), mode=ResumeMode.parse("0"))
        assert await scene.desk.serve(out, 1000) == b"steward/1 ok\n", "who opted out is told nothing"

    run(story)
    assert [frame["opted"][0]["mode"] for frame in scene.head.told] == ["1", "0"]


def test_a_failed_task_is_told_at_once_and_on_every_connection(scene: Scene) -> None:
    async def story() -> None:
        assert await scene.desk.serve(EXIT, 0) == b"steward/1 ok\n"

    run(story)
    (told,) = scene.head.told
    assert (told["t"], told["exits"][0]["task"], told["exits"][0]["ago"]) == ("exits", 3, 0.0)
    scene.clock.at += 5.0
    assert [frame["exits"][0]["ago"] for frame in scene.desk.frames()] == [5.0]


def test_the_last_failed_tasks_are_kept(scene: Scene) -> None:
    async def story() -> None:
        for task in range(70):
            await scene.desk.serve(replace(EXIT, task=task), 0)

    run(story)
    (frame,) = scene.desk.frames()
    assert [one["task"] for one in frame["exits"]] == list(range(6, 70))


def test_how_a_task_ended_is_not_the_users_to_say(scene: Scene) -> None:
    async def story() -> None:
        await scene.desk.serve(OPTED, 1000)
        assert await scene.desk.serve(EXIT, 1000) is None

    run(story)
    assert scene.desk.frames() == ()


def test_where_a_script_writes_to_is_its_users_to_say(scene: Scene) -> None:
    async def story() -> None:
        assert await scene.desk.serve(LOG, 1000) is None, "nobody knows of the job"
        await scene.desk.serve(OPTED, 1000)
        assert await scene.desk.serve(LOG, 1001) is None
        assert await scene.desk.serve(LOG, 1000) == b"steward/1 ok\n"

    run(story)
    assert scene.opted.out_of(JobId(12)) == "/home/a/12.out"


def test_an_ask_carries_what_the_jobs_output_shows_and_whether_it_can_run_again(scene: Scene) -> None:
    scene.signs = (SIGN,) * 20

    async def story() -> None:
        shim = await scene.asks(replace(ASK, kind=AskKind.STEP, replay=False))
        (frame,) = scene.head.told
        assert [one["sign"] for one in frame["signs"]] == ["nccl.timeout"] * 16
        assert frame["replay"] is False
        shim.cancel()

    run(story)


@pytest.mark.parametrize("signs", [None, OSError("gone")])
def test_output_that_cannot_be_read_in_time_holds_up_no_ask(scene: Scene, signs: OSError | None) -> None:
    scene.signs = signs

    async def story() -> None:
        shim = await scene.asks()
        async with asyncio.timeout(2):
            while not scene.head.told:
                await asyncio.sleep(0.01)
        assert scene.head.told[0]["signs"] == []
        shim.cancel()

    run(story)
