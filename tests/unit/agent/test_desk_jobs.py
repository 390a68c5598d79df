"""What is told to starting jobs at the agent's desk, and what is told there of their tasks."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from steward.agent.desk import LATER_ROOM_S, ROOM_S
from steward.model.ask import Answer, AskKind
from steward.model.ids import JobId
from steward.model.resume_mode import ResumeMode
from tests.fakes.desk_bench import ASK, ENDED, EXIT, LOG, NONE, OPTED, SIGN, Scene, run
from tests.fakes.until import comes_true


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_starting_job_is_told_what_is_known_for_it(scene: Scene) -> None:
    scene.briefing.told = {"resume_count": "2", "resume_reason": "node n3 failed: 50%"}

    async def story() -> None:
        answer = b"steward/1 ok resume_count=2 resume_reason=node%20n3%20failed:%2050%25\n"
        assert await scene.desk.serve(OPTED, 0) == answer
        out = replace(OPTED, job=JobId(13), mode=ResumeMode.parse("0"))
        assert await scene.desk.serve(out, 0) == b"steward/1 ok\n", "who opted out is told nothing"

    run(story)
    assert [frame["opted"][0]["mode"] for frame in scene.head.told] == ["1", "0"]


def test_a_base_is_told_its_runs_address_and_one_that_hangs_up_before_begins_without(scene: Scene) -> None:
    base = replace(OPTED, elastic="4")

    async def story() -> None:
        hung_up = asyncio.ensure_future(scene.desk.serve(base, 1000))
        await comes_true("its run begins", lambda: scene.runs.begun)
        hung_up.cancel()
        await asyncio.gather(hung_up, return_exceptions=True)
        assert scene.runs.given_up == [12]
        scene.runs.resolved.set()
        assert b"elastic_address=10.0.0.1:4000" in (await scene.desk.serve(base, 1000) or b"")
        assert scene.runs.given_up == [12]

    run(story)


def test_a_step_is_made_room_for_at_slurms_word_alone(scene: Scene) -> None:
    step = replace(OPTED, step=3)
    later = replace(step, restart=1)
    off = replace(step, mode=ResumeMode.parse("0"))

    async def story() -> None:
        for line, peer in ((OPTED, 0), (step, 1000), (off, 0), (step, 0), (later, 0)):
            assert await scene.desk.serve(line, peer) is not None

    run(story)
    assert scene.room_for == [(JobId(12), 3, 1000, ROOM_S), (JobId(12), 3, 1000, LATER_ROOM_S)]


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
    assert scene.opted.output_of(JobId(12), 1000).path == "/home/a/12.out"


def test_that_a_step_ended_is_noted_as_its_user_says_and_as_it_was_answered(scene: Scene) -> None:
    step = replace(ASK, kind=AskKind.STEP, step="1")

    async def story() -> None:
        await scene.desk.serve(OPTED, 1000)
        assert await scene.desk.serve(ENDED, 1000) == b"steward/1 ok\n"
        shim = await scene.asks(step, peer=1000)
        assert scene.answers == []
        scene.desk.decide(scene.last_id(), Answer.RETRY, NONE)
        await shim
        left = await scene.asks(step, peer=1000)
        left.cancel()
        await asyncio.wait((left,))

    run(story)
    assert scene.ended_well == [(ENDED, 1000)]
    assert scene.answers == [(step, Answer.RETRY), (step, Answer.STOP)]


@pytest.mark.parametrize(("up", "restart"), [(True, 3), (False, 0)])
def test_the_run_of_a_script_that_never_began_is_asked_of_slurm(scene: Scene, up: bool, restart: int) -> None:
    """Slurm tells it in the script's environment alone."""
    scene.slurm.restarted, scene.slurm.up = {JobId(12): 3}, up

    async def story() -> None:
        shims = [await scene.asks(line) for line in (replace(ASK, script_unbegun=True), ASK)]
        assert [frame["restart"] for frame in scene.head.told] == [restart, 0]
        for shim in shims:
            shim.cancel()

    run(story)


def test_an_ask_carries_what_the_jobs_output_shows_and_whether_it_can_run_again(scene: Scene) -> None:
    scene.in_output = (SIGN,) * 20

    async def story() -> None:
        shim = await scene.asks(replace(ASK, kind=AskKind.STEP, replay=False))
        (frame,) = scene.head.told
        assert [one["sign"] for one in frame["signs"]] == ["nccl.timeout"] * 16
        assert frame["replay"] is False
        shim.cancel()

    run(story)


@pytest.mark.parametrize("signs", [None, OSError("gone")])
def test_output_that_cannot_be_read_in_time_holds_up_no_ask(scene: Scene, signs: OSError | None) -> None:
    scene.in_output = signs

    async def story() -> None:
        shim = await scene.asks()
        assert scene.head.told[0]["signs"] == []
        assert scene.head.told[0].get("is_reading", False) is (signs is None)
        shim.cancel()

    run(story)


def test_output_that_takes_long_to_read_follows_the_ask(scene: Scene) -> None:
    """On a busy node the child that reads is late: what it finds counts all the same."""
    scene.in_output, scene.is_readable = (SIGN,), asyncio.Event()

    async def story() -> None:
        assert scene.is_readable is not None
        shim = await scene.asks()
        scene.is_readable.set()
        await comes_true("the signs follow", lambda: len(scene.head.told) == 2)
        first, whole = scene.head.told
        assert (first["signs"], first["is_reading"]) == ([], True)
        assert ([one["sign"] for one in whole["signs"]], "is_reading" in whole) == ([SIGN.sign], False)
        assert scene.desk.frames() == (whole,)
        assert whole["id"] == first["id"]
        scene.desk.decide(whole["id"], Answer.STOP, NONE)
        assert await shim == b"steward/1 stop\n"

    run(story)


def test_output_that_is_read_after_the_shim_has_its_answer_is_not_told(scene: Scene) -> None:
    scene.in_output, scene.is_readable = (SIGN,), asyncio.Event()

    async def story() -> None:
        assert scene.is_readable is not None
        shim = await scene.asks()
        scene.desk.decide(scene.last_id(), Answer.STOP, NONE)
        assert await shim == b"steward/1 stop\n"
        scene.is_readable.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(scene.head.told) == 1

    run(story)
