"""The site's own checks are listed beside everything else: a file system that hangs holds up nothing."""

import asyncio

import pytest

from steward.model.health import Outcome
from tests.builders.senses import Scene, a_check, run
from tests.fakes.until import FACT_S

LIST_S = 0.2


def hung_scene() -> Scene:
    scene = Scene(a_check(), interval_s=0.05, list_s=LIST_S)
    scene.gate.clear()
    return scene


def test_while_the_list_hangs_beats_go_on_and_the_built_in_checks_are_told() -> None:
    """A loop that lists itself would stand still until the gate opens, and tell of no trouble."""

    async def story(scene: Scene) -> None:
        findings = await scene.report_with("site", Outcome.UNKNOWN)
        assert findings["disk"].outcome is Outcome.PASSED
        assert "no answer within 0.2 s" in findings["site"].text
        assert findings["site"].outcome is Outcome.UNKNOWN

    run(hung_scene, story)


def test_while_the_list_hangs_the_last_one_is_kept_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story(scene: Scene) -> None:
        scene.site.append(a_check("site.own"))
        await scene.report_with("site.own", Outcome.PASSED)
        await scene.hang(LIST_S)
        scene.site.clear()
        await scene.report_with("site", Outcome.UNKNOWN)
        await asyncio.sleep(4 * LIST_S)
        assert scene.sent.empty()
        assert {one.check for one in scene.senses.findings()} == {"disk", "site.own", "site"}
        scene.go_on()
        while any(one.check.startswith("site") for one in scene.senses.findings()):
            await asyncio.sleep(0.01)

    run(lambda: Scene(a_check(), interval_s=0.05), story)
    assert caplog.text.count("site checks not listed") == 1


def test_a_check_now_does_not_wait_for_a_list_that_hangs() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        looks = scene.probes.looks
        scene.senses.check_now("r1", FACT_S)
        async with asyncio.timeout(FACT_S / 2):
            _, checked = await scene.answer()
        assert (checked, scene.probes.looks > looks) == ("r1", True)

    run(hung_scene, story)


def test_a_check_now_is_answered_although_the_first_list_hangs() -> None:
    async def story() -> None:
        scene = hung_scene()
        scene.senses.check_now("r1", 0.5)
        async with asyncio.timeout(FACT_S):
            findings, _ = await scene.answer()
        assert findings["disk"].outcome is Outcome.PASSED
        scene.gate.set()

    asyncio.run(story())


def test_a_check_now_before_the_first_list_takes_the_sites_checks_in() -> None:
    async def story() -> None:
        scene = Scene(a_check())
        scene.site.append(a_check("site.own"))
        scene.senses.check_now("r1", FACT_S)
        findings, _ = await scene.answer()
        assert {name: one.outcome for name, one in findings.items()} == {
            "disk": Outcome.PASSED,
            "site.own": Outcome.PASSED,
        }

    asyncio.run(story())
