"""What one user says at the agent's socket changes nothing for another's job."""

import asyncio
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from steward.adapters.wire.job_messages import ask_of
from steward.adapters.wire.messages import MAX_OPTED
from steward.adapters.wire.shimline import AskLine, EndedLine, ExitLine, LogLine, OptedLine
from steward.agent.job_folder import JobFolders
from steward.model.ask import Answer, AskKind
from steward.model.ids import JobId, NodeName
from steward.model.resume_mode import ResumeMode
from tests.fakes.agent_parts import FakeSlurmLook
from tests.fakes.desk_bench import ASK, ENDED, EXIT, LOG, OPTED, Scene, run

OTHER = 1001
THEIR = OPTED.job
OFF = ResumeMode.parse("0")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        OPTED,
        replace(OPTED, uid=OTHER),
        replace(OPTED, uid=0),
        replace(OPTED, uid=OTHER, mode=OFF, restart=1),
        replace(OPTED, mode=OFF),
        ASK,
        replace(ASK, uid=OTHER),
        replace(ASK, uid=0),
        EXIT,
        LOG,
        replace(LOG, out="/home/b/other.out"),
        ENDED,
    ],
)
def test_of_anothers_job_nothing_is_taken(
    scene: Scene, line: OptedLine | AskLine | ExitLine | LogLine | EndedLine
) -> None:
    async def story() -> None:
        await scene.desk.serve(OPTED, 0)
        await scene.desk.serve(LOG, OPTED.uid)
        before = (scene.opted.all(), scene.opted.output_of(THEIR, OPTED.uid), list(scene.head.told))
        assert await scene.desk.serve(line, OTHER) is None
        assert (scene.opted.all(), scene.opted.output_of(THEIR, OPTED.uid), scene.head.told) == before
        assert scene.desk.frames() == ()
        assert (scene.ended_well, scene.answers) == ([], [])

    run(story)


def test_who_called_the_job_his_before_it_began_loses_it_to_its_owner(scene: Scene) -> None:
    async def story() -> None:
        await scene.desk.serve(replace(OPTED, uid=OTHER), OTHER)
        await scene.desk.serve(replace(LOG, out="/home/b/mine.out"), OTHER)
        await scene.desk.serve(OPTED, 0)
        assert await scene.desk.serve(LOG, OTHER) is None
        assert await scene.desk.serve(LOG, OPTED.uid) is not None

    run(story)
    known = scene.opted.claim_on(THEIR)
    assert known is not None
    assert known.uid == OPTED.uid
    assert scene.opted.output_of(THEIR, OPTED.uid).path == LOG.out


@pytest.mark.parametrize("is_up", [True, False], ids=["Slurm answers", "Slurm is away"])
def test_who_called_the_job_his_before_it_began_keeps_its_owner_from_nothing(scene: Scene, is_up: bool) -> None:
    """A script speaks as its user: until a step begins, nobody hears from root whose the job is."""
    scene.slurm.up, scene.slurm.here = is_up, {THEIR: OPTED.uid}

    async def story() -> None:
        await scene.desk.serve(replace(OPTED, uid=OTHER), OTHER)
        await scene.desk.serve(replace(LOG, out="/home/b/mine.out"), OTHER)
        assert await scene.desk.serve(OPTED, OPTED.uid) is not None
        assert await scene.desk.serve(LOG, OPTED.uid) is not None
        own = await scene.asks(ASK, ASK.uid)
        assert scene.head.told[-1]["t"] == "ask"
        assert not own.done()
        own.cancel()

    run(story)
    assert [one["uid"] for frame in scene.head.told if frame["t"] == "opted" for one in frame["opted"]] == [1001, 1000]
    assert OPTED.uid in [one.uid for one in scene.opted.all()]
    assert scene.opted.output_of(THEIR, OPTED.uid).path == LOG.out
    assert scene.read_for == [ASK.uid]


def test_slurm_says_whose_a_job_is_that_two_call_theirs(scene: Scene) -> None:
    scene.slurm.here = {THEIR: OPTED.uid}
    scene.briefing.told = {"progress_file": "/run/steward/jobs/12/progress"}

    async def story() -> None:
        await scene.desk.serve(replace(OPTED, uid=OTHER), OTHER)
        assert scene.slurm.asked == 0, "as long as nobody else says so"
        told = await scene.desk.serve(OPTED, OPTED.uid)
        assert told is not None
        assert b"progress_file" in told
        for line in (replace(OPTED, uid=OTHER), replace(ASK, uid=OTHER), LOG):
            assert await scene.desk.serve(line, OTHER) is None

    run(story)
    assert [one.uid for one in scene.opted.all()] == [OPTED.uid]


@dataclass
class HeldSlurm(FakeSlurmLook):
    """Says what is here when it is let go."""

    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def on(self, node: NodeName) -> dict[JobId, int]:
        here = await super().on(node)
        await self.go.wait()
        return here


def test_while_slurm_does_not_say_whose_it_is_the_first_keeps_the_jobs_folder(tmp_path: Path) -> None:
    """It would be emptied in turn for the one and the other."""
    slurm = HeldSlurm(here={THEIR: OPTED.uid})
    scene = Scene(tmp_path, slurm=slurm)
    scene.briefing.told = {"progress_file": "/run/steward/jobs/12/progress"}

    async def story() -> None:
        await scene.desk.serve(OPTED, OPTED.uid)
        for _ in range(6):
            assert await scene.desk.serve(replace(OPTED, uid=OTHER), OTHER) == b"steward/1 ok\n"
        assert slurm.asked == 1
        slurm.go.set()
        while scene.opted.is_disputed(THEIR):
            await asyncio.sleep(0.01)

    run(story)
    assert [one.uid for one in scene.opted.all()] == [OPTED.uid]


def test_slurm_is_not_asked_at_the_pace_of_who_disputes(scene: Scene) -> None:
    async def story() -> None:
        began = asyncio.get_running_loop().time()
        for number in range(20):
            for uid in (OTHER, OPTED.uid):
                await scene.desk.serve(replace(OPTED, uid=uid, restart=number), uid)
        assert 1 <= scene.slurm.asked <= 1 + (asyncio.get_running_loop().time() - began)

    run(story)


def test_who_calls_very_many_jobs_his_has_none_forgotten_of_one_who_has_more(scene: Scene) -> None:
    async def story() -> None:
        for number in range(200):
            await scene.desk.serve(replace(OPTED, job=JobId(1 + number)), 0)
        for number in range(MAX_OPTED):
            scene.clock.at += 1.0
            await scene.desk.serve(replace(OPTED, job=JobId(1000 + number), uid=OTHER), OTHER)

    run(story)
    assert len([one for one in scene.opted.all() if one.uid == OPTED.uid]) == 200


def test_a_user_who_tells_of_very_many_jobs_has_no_others_job_forgotten(scene: Scene) -> None:
    async def story() -> None:
        await scene.desk.serve(OPTED, 0)
        for number in range(MAX_OPTED + 50):
            scene.clock.at += 1.0
            await scene.desk.serve(replace(OPTED, job=JobId(1000 + number), uid=OTHER), OTHER)

    run(story)
    assert len(scene.opted.all()) == MAX_OPTED
    assert scene.opted.claim_on(THEIR) is not None


def test_an_ask_that_waits_is_its_owners_alone(scene: Scene) -> None:
    async def story() -> None:
        own = await scene.asks(ASK, ASK.uid)
        told = list(scene.head.told)
        await scene.desk.serve(OPTED, 0)
        assert await scene.desk.serve(replace(ASK, uid=OTHER), OTHER) is None
        assert [frame for frame in scene.head.told if frame["t"] == "ask"] == told
        assert not own.done()
        own.cancel()
        await asyncio.gather(own, return_exceptions=True)

    run(story)


def test_who_asks_about_anothers_failure_first_does_not_take_its_answer(scene: Scene) -> None:
    """The head's word on an ask is remembered under its id: his is refused, its owner's must be another one."""

    async def story() -> None:
        his = await scene.asks(replace(ASK, uid=OTHER), OTHER)
        scene.desk.decide(scene.last_id(), Answer.STOP, frozenset())
        await his
        own = await scene.asks(ASK, ASK.uid)
        first, second = [frame["id"] for frame in scene.head.told if frame["t"] == "ask"]
        assert first != second
        own.cancel()
        await asyncio.gather(own, return_exceptions=True)

    run(story)


def test_no_words_of_a_user_make_a_frame_that_the_head_refuses(tmp_path: Path) -> None:
    """It would hang up on the whole node."""
    scene = Scene(tmp_path, node=NodeName("n" * 64))
    uid = 2**32 - 1
    line = replace(ASK, kind=AskKind.STEP, step="s" * 32, uid=uid, job=JobId(uid), restart=10**6, attempt=10**6)

    async def story() -> None:
        own = await scene.asks(line, uid)
        (frame,) = scene.head.told
        assert ask_of(frame, scene.node).step == line.step
        own.cancel()
        await asyncio.gather(own, return_exceptions=True)

    run(story)


def test_folders_are_counted_for_each_user_alone(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path)
    folders.make(JobId(1), os.geteuid())
    folders.make(JobId(2), 65534)
    assert folders.of_user(65534) == {2}
    assert folders.of_user(os.geteuid()) == {1}


def test_only_folders_of_jobs_are_counted(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path / "jobs")
    assert folders.of_user(os.geteuid()) == frozenset()
    folders.make(JobId(1), os.geteuid())
    for name in ("x", "\N{ARABIC-INDIC DIGIT FOUR}", "-5", "5-", f"5-{os.geteuid()}-1", f"5-{os.geteuid()}\n"):
        (folders.root / name).mkdir()
    assert folders.of_user(os.geteuid()) == {1}
    assert folders.all() == {1}
