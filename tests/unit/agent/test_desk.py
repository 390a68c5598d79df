"""Shims that wait at the agent's desk."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from steward.model.ask import Answer, AskKind, OptedIn
from steward.model.ids import AskId, JobId, NodeName
from steward.model.resume_mode import ResumeMode
from tests.fakes.clock import FakeClock
from tests.fakes.desk_bench import ASK, LOOK_S, MODE, NONE, OPTED, Scene, run
from tests.fakes.until import comes_true


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_an_ask_goes_to_the_head_and_the_heads_word_to_the_shim(scene: Scene) -> None:
    async def story() -> None:
        shim = await scene.asks()
        (frame,) = scene.head.told
        assert (frame["t"], frame["job"], frame["uid"], frame["status"]) == ("ask", 12, 1000, 256)
        scene.desk.decide(frame["id"], Answer.REQUEUE, NONE)
        assert await shim == b"steward/1 requeue\n"
        assert scene.desk.frames() == ()

    run(story)


def test_ids_name_the_node_and_its_boot_and_no_two_failures_have_the_same(scene: Scene) -> None:
    async def story() -> None:
        nameless = replace(ASK, kind=AskKind.STEP, step="unknown")
        lines = [ASK, ASK, replace(ASK, restart=1), replace(ASK, job=JobId(13)), replace(ASK, step="0"), nameless]
        tasks = [await scene.asks(line) for line in lines]
        again = Scene(scene.folder, clock=FakeClock(at=scene.clock.at + 1))
        tasks.append(await again.asks(nameless))
        ids = [frame["id"] for frame in (*scene.head.told, *again.head.told)]
        assert len(set(ids)) == 7
        assert all(one.startswith("n1-b0000001-") for one in ids)
        for task in tasks:
            task.cancel()

    run(story)


def test_a_shim_that_asks_again_after_a_restart_has_the_same_id(scene: Scene) -> None:
    async def story() -> None:
        step = replace(ASK, kind=AskKind.STEP, step="3")
        again = Scene(scene.folder, clock=FakeClock(at=scene.clock.at + 5))
        tasks = [await one.asks(line) for line in (ASK, step) for one in (scene, again)]
        assert [f["id"] for f in scene.head.told] == [f["id"] for f in again.head.told]
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
        assert await scene.desk.serve(ASK, 1001) is None
        await scene.desk.serve(OPTED, 0)
        assert await scene.desk.serve(replace(ASK, uid=1001), 1001) is None, "root said that it is another's"
        own = await scene.asks(ASK, 1000)
        assert not own.done()
        own.cancel()

    run(story)
    assert [job.uid for job in scene.opted.all()] == [1000]


def test_root_may_speak_of_any_job(scene: Scene) -> None:
    run(lambda: _opt_in(scene))
    assert scene.opted.claim_on(JobId(12)) == OptedIn(
        job=JobId(12), uid=1000, mode=MODE, restart=0, at=1000.0, has_script=True
    )


async def _opt_in(scene: Scene) -> None:
    assert await scene.desk.serve(OPTED, 0) == b"steward/1 ok\n"


def test_however_often_a_user_changes_his_word_the_head_hears_it_now_and_then_and_the_last_one(scene: Scene) -> None:
    def modes() -> list[str]:
        return [frame["opted"][0]["mode"] for frame in scene.head.told]

    async def story() -> None:
        for most in range(1, 301):
            await scene.desk.serve(replace(OPTED, uid=1001, mode=ResumeMode.parse(f"1,max={most}")), 1001)
        assert len(modes()) < 20
        await comes_true("the last is told", lambda: modes()[-1] == "1,max=300")

    run(story)


def test_what_slurmstepd_says_reaches_the_head_at_once_beside_a_users_flood(scene: Scene) -> None:
    async def story() -> None:
        for job in (20, 21):
            await scene.desk.serve(replace(OPTED, job=JobId(job)), 1000)
        await scene.desk.serve(OPTED, 0)

    run(story)
    assert [frame["opted"][0]["job"] for frame in scene.head.told] == [20, 12]


def test_the_head_hears_of_an_opted_job_once_not_with_each_of_its_steps(scene: Scene) -> None:
    async def story() -> None:
        for _ in range(3):
            await scene.desk.serve(OPTED, 0)
        await scene.desk.serve(replace(OPTED, restart=1), 0)

    run(story)
    assert [frame["opted"][0]["restart"] for frame in scene.head.told] == [0, 1]
