"""One look is one look, however many ask for it: a transient takes no healthy node out, and no answer is older than its
question."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable

from steward.adapters.node.probe import KEEP_S
from steward.agent.track import Track
from steward.checks.check import Check, Facts, Judgement, Notes, Past, failed, passed
from steward.model.health import Advice, Outcome, Severity
from steward.model.probe import Raw
from tests.builders.senses import Scene, a_check, run
from tests.fakes.until import FACT_S

CONFIRM_S = 1.0
BUDGET_S = LONG_S = FACT_S
"""No test takes so long by itself, however busy the machine is."""


class Loop(asyncio.SelectorEventLoop):
    """Its clock can be put forward."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


class Still(asyncio.SelectorEventLoop):
    """Its clock stands."""

    def time(self) -> float:
        return 1000.0


def pass_time(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Loop)
    loop.ahead_s += seconds


def shared_scene() -> Scene:
    """With looks that are shared as the agent's real ones are."""
    return Scene(a_check(confirm_s=CONFIRM_S), is_shared=True)


def run_track(
    story: Callable[[Scene, Track], Awaitable[None]],
    check: Check,
    *,
    is_shared: bool = False,
    loop: Callable[[], asyncio.AbstractEventLoop] = Loop,
) -> None:
    async def within() -> None:
        async with asyncio.timeout(2 * FACT_S):
            scene = Scene(check, is_shared=is_shared, now=asyncio.get_running_loop().time)
            await story(scene, scene._track(check))

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(within())


def outcome(track: Track) -> Outcome:
    return track.finding.outcome


async def bad_once(scene: Scene) -> None:
    """The next look finds a fault that is gone after it."""
    await asyncio.sleep(KEEP_S + 0.05)
    looks, scene.probes.value = scene.probes.looks, 1.0
    while scene.probes.looks == looks:
        await asyncio.sleep(0.001)
    scene.probes.value = 0.0


def test_a_transient_that_many_ask_about_at_once_is_no_fault() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        transient = asyncio.ensure_future(bad_once(scene))
        await asyncio.sleep(KEEP_S + 0.1)
        for number in range(4):
            scene.senses.check_now(f"r{number}", BUDGET_S)
        await transient
        for _ in range(4):
            findings, _ = await scene.answer()
            assert findings["disk"].outcome is Outcome.PASSED

    run(shared_scene, story)


def test_a_fault_that_lasts_stands_after_a_look_that_is_truly_another_one() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        await asyncio.sleep(KEEP_S + 0.05)
        scene.probes.value, began = 1.0, scene.clock.now()
        scene.senses.check_now("r1", BUDGET_S)
        scene.senses.check_now("r2", BUDGET_S)
        for _ in range(2):
            findings, _ = await scene.answer()
            assert findings["disk"].outcome is Outcome.FAILED
            assert scene.clock.now() - began > CONFIRM_S

    run(shared_scene, story)


def test_a_check_now_is_not_answered_with_what_was_seen_before_it() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        scene.probes.value = 1.0
        scene.senses.check_now("r1", BUDGET_S)
        findings, _ = await scene.answer()
        assert "1 bad of 2 looks" in findings["disk"].text

    run(lambda: Scene(a_check(confirm_s=2 * BUDGET_S), is_shared=True), story)


def test_bad_looks_closer_than_the_time_to_confirm_are_one() -> None:
    async def story(scene: Scene, track: Track) -> None:
        scene.probes.value = 1.0
        for _ in range(5):
            await track.look()
        assert outcome(track) is Outcome.UNKNOWN
        assert "1 bad of 1 looks" in track.finding.text
        pass_time(LONG_S)
        await track.look()
        assert outcome(track) is Outcome.FAILED

    run_track(story, a_check(confirm_s=LONG_S))


def test_a_good_look_between_two_bad_ones_makes_them_neither_two_nor_good() -> None:
    async def story(scene: Scene, track: Track) -> None:
        for value in (1.0, 0.0, 1.0):
            scene.probes.value = value
            await track.look()
        assert outcome(track) is Outcome.UNKNOWN
        assert "1 bad of 2 looks" in track.finding.text

    run_track(story, a_check(confirm_s=LONG_S))


def test_bad_looks_that_follow_closely_for_long_are_a_fault() -> None:
    async def story(scene: Scene, track: Track) -> None:
        scene.probes.value = 1.0
        began = asyncio.get_running_loop().time()
        while outcome(track) is not Outcome.FAILED:
            await track.look()
            await asyncio.sleep(0.02)
        assert asyncio.get_running_loop().time() - began > 0.3

    run_track(story, a_check(confirm_s=0.3))


def test_what_was_seen_before_a_repair_says_nothing_of_after_it() -> None:
    async def story(scene: Scene, track: Track) -> None:
        scene.probes.value = 1.0
        await track.look()
        track.start_anew()
        scene.probes.value = 0.0
        await track.look_until_sure(asyncio.get_running_loop().time() + FACT_S)
        assert outcome(track) is Outcome.PASSED
        await asyncio.sleep(KEEP_S + 0.05)
        scene.probes.value = 1.0
        await track.look()
        assert "1 bad of 2 looks" in track.finding.text

    run_track(story, a_check(confirm_s=CONFIRM_S), is_shared=True)


def test_a_look_that_is_under_way_when_something_was_repaired_does_not_count() -> None:
    async def story(scene: Scene, track: Track) -> None:
        scene.probes.value = 1.0
        await a_look_during(scene, track, track.start_anew)
        assert track.standing.told is None
        scene.probes.value = 0.0
        await track.look()
        assert outcome(track) is Outcome.PASSED

    run_track(story, a_check())


def test_who_wants_another_look_while_one_is_under_way_gets_one() -> None:
    async def story(scene: Scene, track: Track) -> None:
        await a_look_during(scene, track, track.look_soon)
        assert outcome(track) is Outcome.PASSED
        assert track.due <= asyncio.get_running_loop().time()

    run_track(story, a_check(every_s=60.0))


async def a_look_during(scene: Scene, track: Track, what: Callable[[], None]) -> None:
    scene.probes.hang.set()
    look = asyncio.ensure_future(track.look())
    while not scene.probes.looks:
        await asyncio.sleep(0.001)
    what()
    scene.probes.released.set()
    await look


def test_what_is_seen_twice_is_noted_once_and_soon_looked_at_anew() -> None:
    def note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
        return {"misses": (*past.notes.get("misses", ()), past.now)}

    def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
        misses = len(past.notes["misses"])
        return failed("hangs", Severity.FATAL, Advice.REBOOT) if misses >= 3 else passed(f"{misses} misses")

    async def story(scene: Scene, track: Track) -> None:
        for _ in range(5):
            await track.look()
        assert track.standing.told == passed("1 misses")
        track.look_soon()
        await track.look()
        assert track.due == asyncio.get_running_loop().time() + KEEP_S

    check = dataclasses.replace(a_check(every_s=60.0), judge=judge, note=note)
    run_track(story, check, is_shared=True, loop=Still)
