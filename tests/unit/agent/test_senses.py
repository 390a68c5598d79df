"""When checks look, what stands, and what the head is told."""

import asyncio
import dataclasses

import pytest

from steward.adapters.wire.messages import report_of
from steward.agent import senses
from steward.checks.check import Facts, Judgement, Notes, Past, passed
from steward.model.health import Advice, Finding, Outcome, Severity
from steward.model.probe import Raw
from tests.builders.senses import Scene, a_check, run
from tests.fakes.until import FACT_S

NEVER_S = 86_400.0
"""Phases of checks are anywhere within their interval."""


def test_the_first_report_comes_when_every_check_has_a_result() -> None:
    async def story(scene: Scene) -> None:
        assert scene.senses.frames() == ()
        findings, checked = await scene.report()
        assert {check: one.outcome for check, one in findings.items()} == {"a": Outcome.PASSED, "b": Outcome.PASSED}
        assert checked is None
        assert len(scene.senses.frames()) == 1

    run(lambda: Scene(a_check("a"), a_check("b")), story)


def test_the_node_is_known_when_every_check_and_every_watch_has_told() -> None:
    async def story(scene: Scene) -> None:
        scene.watch.is_read = False
        assert not scene.senses.is_known
        await scene.report()
        assert not scene.senses.is_known, "the kernel log is not read yet"
        scene.watch.is_read = True
        assert scene.senses.is_known
        scene.probes.hang.set()
        again = asyncio.ensure_future(scene.senses.start_anew(FACT_S))
        await asyncio.sleep(0)
        assert not scene.senses.is_known, "what stood before something was mended does not count"
        again.cancel()

    run(lambda: Scene(a_check("a"), a_check("b")), story)


def test_a_bad_look_is_repeated_soon_and_then_told_as_a_failure() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        scene.probes.value = 1.0
        assert scene.watch.look_again is not None
        scene.watch.look_again()
        findings = await scene.report_with("disk", Outcome.FAILED)
        assert findings["disk"].advice is Advice.REBOOT

    run(lambda: Scene(a_check(), interval_s=NEVER_S), story)


def test_that_the_looks_of_a_failed_check_pass_again_is_told_before_it_counts_as_good() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        scene.probes.value = 1.0
        assert scene.watch.look_again is not None
        scene.watch.look_again()
        failed = (await scene.report_with("disk", Outcome.FAILED))["disk"]
        assert failed.passed_at > 0.0
        assert failed.good_since == 0.0
        scene.probes.value = 0.0
        scene.watch.look_again()
        told = (await scene.report_with("disk", Outcome.FAILED))["disk"]
        assert told.good_since >= failed.at

    run(lambda: Scene(a_check(), interval_s=NEVER_S, clear_after_s=NEVER_S), story)


def test_a_bad_first_look_is_not_left_until_the_next_round() -> None:
    async def story(scene: Scene) -> None:
        await scene.report_with("disk", Outcome.FAILED)

    def scene_of() -> Scene:
        scene = Scene(a_check(), interval_s=NEVER_S)
        scene.probes.value = 1.0
        return scene

    run(scene_of, story)


def test_nothing_is_told_while_nothing_changes() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        looked = scene.probes.looks
        while scene.probes.looks < looked + 5:
            await asyncio.sleep(0.01)
        assert scene.sent.empty()

    run(lambda: Scene(a_check(), interval_s=0.02), story)


def test_a_check_now_looks_anew_and_answers_its_request() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        scene.probes.value = 1.0
        scene.senses.check_now("r1", FACT_S)
        findings, checked = await scene.answer()
        assert checked == "r1"
        assert findings["disk"].outcome is Outcome.FAILED, "it looked until it was sure"

    run(lambda: Scene(a_check()), story)


def test_a_check_now_is_answered_while_a_check_hangs() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        scene.probes.hang.set()
        scene.senses.check_now("r1", 0.6)
        _, checked = await scene.answer()
        assert checked == "r1"

    run(lambda: Scene(a_check()), story)


def test_a_check_now_leaves_slow_checks_out_once_they_have_a_result() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        looks = scene.probes.looks
        scene.senses.check_now("r1", FACT_S)
        await scene.report()
        assert scene.probes.looks == looks

    run(lambda: Scene(a_check(is_quick=False)), story)


def test_a_check_now_before_the_first_look_does_not_answer_without_one() -> None:
    async def story() -> None:
        scene = Scene(a_check(), a_check("slow", is_quick=False))
        scene.senses.check_now("r1", FACT_S)
        findings, checked = await scene.answer()
        assert checked == "r1"
        assert {one.outcome for one in findings.values()} == {Outcome.PASSED}

    asyncio.run(story())


def test_a_check_now_takes_in_the_events_that_lie_there_already() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        event = Finding(check="kernel_log.xid79", outcome=Outcome.FAILED, severity=Severity.FATAL, event=True)
        scene.watch.waiting = (event,)
        scene.senses.check_now("r1", FACT_S)
        findings, _ = await scene.report()
        assert findings["kernel_log.xid79"].event

    run(lambda: Scene(a_check()), story)


def test_an_event_is_told_at_once_even_before_the_first_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(senses, "FIRST_REPORT_S", NEVER_S)

    async def story(scene: Scene) -> None:
        while scene.watch.changed is None:
            await asyncio.sleep(0.005)
        scene.watch.told = (
            Finding(check="kernel_log.xid79", outcome=Outcome.FAILED, severity=Severity.FATAL, event=True),
        )
        scene.watch.changed()
        findings, _ = await scene.report()
        assert findings["kernel_log.xid79"].is_bad
        assert findings["disk"].outcome is Outcome.UNKNOWN, "its look still hangs"

    def scene_of() -> Scene:
        scene = Scene(a_check())
        scene.probes.hang.set()
        return scene

    run(scene_of, story)


def test_lost_kernel_lines_make_every_check_look_again() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        looks = scene.probes.looks
        assert scene.watch.look_again is not None
        scene.watch.look_again()
        while scene.probes.looks == looks:
            await asyncio.sleep(0.005)

    run(lambda: Scene(a_check()), story)


def test_a_check_that_crashes_or_hangs_says_unknown_and_the_others_go_on() -> None:
    async def story(scene: Scene) -> None:
        scene.probes.value = -1.0
        findings = await scene.report_with("disk", Outcome.UNKNOWN)
        assert "ZeroDivisionError" in findings["disk"].text
        assert findings["disk"].severity is Severity.INFO

    def scene_of() -> Scene:
        scene = Scene(a_check(), interval_s=0.05)
        scene.probes.value = -1.0
        return scene

    run(scene_of, story)

    async def hanging(scene: Scene) -> None:
        findings = await scene.report_with("disk", Outcome.UNKNOWN)
        assert "no answer within 0.1 s" in findings["disk"].text

    def hung() -> Scene:
        scene = Scene(a_check(timeout_s=0.1), interval_s=0.05)
        scene.probes.hang.set()
        return scene

    run(hung, hanging)


def test_site_checks_come_and_go_and_one_that_cannot_run_is_told() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        scene.site.append(a_check("site.new"))
        await scene.report_with("site.new", Outcome.PASSED)
        scene.site.pop()
        scene.refused = (Finding(check="site", outcome=Outcome.UNKNOWN, text="not run: x"),)
        while True:
            findings, _ = await scene.report()
            if "site" in findings:
                assert "site.new" not in findings
                return

    run(lambda: Scene(a_check()), story)


def test_why_a_new_check_cannot_tell_is_told_after_its_first_look() -> None:
    """The report before that look has the same word for it, unknown."""

    async def story(scene: Scene) -> None:
        await scene.report()
        scene.probes.value = -1.0
        scene.site.append(a_check("site.new"))
        while True:
            findings, _ = await scene.report()
            if "ZeroDivisionError" in findings["site.new"].text:
                return

    run(lambda: Scene(a_check()), story)


def test_a_check_is_told_at_its_next_look_what_it_noted_and_after_a_restart_too() -> None:
    def note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
        return {"looks": (*past.notes.get("looks", ()), float(len(past.notes)))}

    def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
        return passed(f"{len(past.notes['looks'])} looks")

    async def story(scene: Scene) -> None:
        for expected in ("1 looks", "2 looks"):
            track = scene._track(check)  # as a restarted agent makes it
            await track.look()
            assert track.standing.told is not None
            assert track.standing.told.text == expected

    check = dataclasses.replace(a_check("noted"), judge=judge, note=note)
    run(lambda: Scene(a_check()), story)


def test_checks_of_one_rhythm_look_at_the_same_time() -> None:
    async def story(scene: Scene) -> None:
        tracks = [scene._track(a_check(name, every_s=60.0)) for name in ("a", "b")]
        await tracks[0].look()
        await asyncio.sleep(0.05)
        await tracks[1].look()
        now = asyncio.get_running_loop().time()
        assert tracks[0].due == pytest.approx(tracks[1].due) or abs(tracks[0].due - tracks[1].due) == pytest.approx(60)
        assert all(29 < track.due - now < 91 for track in tracks)

    run(lambda: Scene(a_check()), story)


def test_after_a_repair_a_check_that_was_bad_looks_anew_until_it_is_sure() -> None:
    """Otherwise it would stay bad for as long as it takes to trust a recovery."""

    async def story(scene: Scene) -> None:
        scene.probes.value = 1.0
        await scene.report_with("disk", Outcome.FAILED)
        scene.probes.value = 0.0
        await scene.senses.start_anew(FACT_S)
        findings = await scene.report_with("disk", Outcome.PASSED)
        assert not findings["disk"].is_bad

    async def still_bad(scene: Scene) -> None:
        scene.probes.value = 1.0
        await scene.report_with("disk", Outcome.FAILED)
        await scene.senses.start_anew(FACT_S)
        assert {finding.check for finding in scene.senses.findings() if finding.is_bad} == {"disk"}

    run(lambda: Scene(a_check()), story)
    run(lambda: Scene(a_check()), still_bad)


def test_a_changed_site_check_is_told_although_it_finds_the_same() -> None:
    async def story(scene: Scene) -> None:
        assert report_of(await scene.sent.get()).versions == {"site.own": "0badcafe"}
        scene.versions = {"site.own": "feedf00d"}
        while report_of(await scene.sent.get()).versions != {"site.own": "feedf00d"}:
            pass

    run(lambda: Scene(a_check(), interval_s=0.1), story)
