"""When checks look, what stands, and what the head is told."""

import asyncio
import dataclasses
import tempfile
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from steward.adapters.clock import SystemClock
from steward.adapters.messages import report_of
from steward.adapters.wire import Frame
from steward.agent.check_memory import CheckMemory
from steward.agent.senses import Senses
from steward.agent.track import Track
from steward.checks.check import Check, Facts, Verdict, failed, passed
from steward.checks.limits import Limits
from steward.checks.past import Notes, Past
from steward.checks.samples import Rule
from steward.model.health import Advice, Finding, Incarnation, Outcome, Severity
from steward.model.ids import BootId, InstanceId, NodeName
from steward.model.probe import HeadClock, Probe, Raw

FACTS = Facts(node=NodeName("n1"), limits=Limits())


def a_check(check_id: str = "disk", **more: Any) -> Check:
    """Judges the number that the probe brings: from 1 on it is bad; "crash" crashes."""

    def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
        skew = raws[0].skew_s
        if skew is not None and skew < 0:
            raise ZeroDivisionError("a bug")
        return failed("bad", Severity.DEGRADED, Advice.REBOOT) if skew else passed("fine")

    parts: dict[str, Any] = {"probes": lambda facts: (HeadClock(),), "mode": lambda limits: "drain", "confirm_s": 0.03}
    return Check(id=check_id, judge=judge, **{**parts, **more})


@dataclass
class FakeProbes:
    """`value` is what a look brings. While `hang` is set, looks do not come back."""

    value: float = 0.0
    looks: int = 0
    hang: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def look(self, probe: Probe) -> Raw:
        self.looks += 1
        if self.hang.is_set():
            self.released.wait(10)
        return Raw(skew_s=self.value)


@dataclass
class FakeWatch:
    told: tuple[Finding, ...] = ()
    waiting: tuple[Finding, ...] = ()
    changed: Callable[[], None] | None = None
    look_again: Callable[[], None] | None = None

    def findings(self) -> tuple[Finding, ...]:
        return self.told

    def catch_up(self) -> None:
        self.told += self.waiting
        self.waiting = ()

    async def run(self, changed: Callable[[], None], look_again: Callable[[], None]) -> None:
        self.changed, self.look_again = changed, look_again
        await asyncio.Event().wait()


class Scene:
    def __init__(self, *checks: Check, interval_s: float = 30.0) -> None:
        self.checks = list(checks)
        self.refused: tuple[Finding, ...] = ()
        self.versions = {"site.own": "0badcafe"}
        self.probes = FakeProbes()
        self.watch = FakeWatch()
        self.sent: asyncio.Queue[Frame] = asyncio.Queue()
        self.clock = SystemClock()
        self.interval_s = interval_s
        whose = Incarnation(instance=InstanceId("i-1"), boot=BootId("b-1"))
        self.memory = CheckMemory(Path(tempfile.mkdtemp()) / "checks.json", incarnation=whose, clock=self.clock)
        self.senses = Senses(
            catalogue=lambda: (tuple(self.checks), self.refused),
            track=self._track,
            watches=(self.watch,),
            post=self.sent.put_nowait,
            refresh_s=min(interval_s, 0.1),
            versions=lambda: dict(self.versions),
        )

    def _track(self, check: Check) -> Track:
        rule = Rule(clear_after_s=0.0)
        return Track(
            check,
            facts=FACTS,
            probes=self.probes,
            clock=self.clock,
            rule=rule,
            interval_s=self.interval_s,
            memory=self.memory,
        )

    async def report(self) -> tuple[dict[str, Finding], str | None]:
        report = report_of(await self.sent.get())
        quiet = [(Outcome.PASSED, name) for name in report.passed] + [
            (Outcome.SKIPPED, name) for name in report.skipped
        ]
        named = {name: Finding(check=name, outcome=outcome) for outcome, name in quiet}
        return named | {finding.check: finding for finding in report.findings}, report.checked

    async def report_with(self, check: str, outcome: Outcome) -> dict[str, Finding]:
        while True:
            findings, _ = await self.report()
            if check in findings and findings[check].outcome is outcome:
                return findings


def run(scene_of: Callable[[], Scene], story: Callable[[Scene], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(15):
            scene = scene_of()
            running = asyncio.ensure_future(scene.senses.run())
            try:
                await story(scene)
            finally:
                scene.probes.released.set()
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    asyncio.run(within())


def test_the_first_report_comes_when_every_check_has_a_result() -> None:
    async def story(scene: Scene) -> None:
        assert scene.senses.frames() == ()
        findings, checked = await scene.report()
        assert {check: one.outcome for check, one in findings.items()} == {"a": Outcome.PASSED, "b": Outcome.PASSED}
        assert checked is None
        assert len(scene.senses.frames()) == 1

    run(lambda: Scene(a_check("a"), a_check("b")), story)


def test_a_bad_look_is_repeated_soon_and_then_told_as_a_failure() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        scene.probes.value = 1.0
        began = scene.clock.now()
        findings = await scene.report_with("disk", Outcome.FAILED)
        assert findings["disk"].advice is Advice.REBOOT
        assert scene.clock.now() - began < 3

    run(lambda: Scene(a_check(), interval_s=0.2), story)


def test_a_bad_first_look_is_not_left_until_the_next_round() -> None:
    async def story(scene: Scene) -> None:
        began = scene.clock.now()
        await scene.report_with("disk", Outcome.FAILED)
        assert scene.clock.now() - began < 3

    def scene_of() -> Scene:
        scene = Scene(a_check(), interval_s=30.0)
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
        scene.senses.check_now("r1", 2.0)
        findings, checked = await scene.report()
        assert checked == "r1"
        assert findings["disk"].outcome is Outcome.FAILED, "it looked until it was sure"

    run(lambda: Scene(a_check()), story)


def test_a_check_now_is_answered_in_time_although_a_check_hangs() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        scene.probes.hang.set()
        began = scene.clock.now()
        scene.senses.check_now("r1", 0.6)
        _, checked = await scene.report()
        assert checked == "r1"
        assert scene.clock.now() - began < 0.6

    run(lambda: Scene(a_check()), story)


def test_a_check_now_leaves_slow_checks_out_once_they_have_a_result() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        looks = scene.probes.looks
        scene.senses.check_now("r1", 1.0)
        await scene.report()
        assert scene.probes.looks == looks

    run(lambda: Scene(a_check(is_quick=False)), story)


def test_a_check_now_before_the_first_look_does_not_answer_without_one() -> None:
    async def story() -> None:
        scene = Scene(a_check(), a_check("slow", is_quick=False))
        scene.senses.check_now("r1", 2.0)
        findings, checked = await scene.report()
        assert checked == "r1"
        assert {one.outcome for one in findings.values()} == {Outcome.PASSED}

    asyncio.run(story())


def test_a_check_now_takes_in_the_events_that_lie_there_already() -> None:
    async def story(scene: Scene) -> None:
        await scene.report()
        event = Finding(check="kernel_log.xid79", outcome=Outcome.FAILED, severity=Severity.FATAL, event=True)
        scene.watch.waiting = (event,)
        scene.senses.check_now("r1", 1.0)
        findings, _ = await scene.report()
        assert findings["kernel_log.xid79"].event

    run(lambda: Scene(a_check()), story)


def test_an_event_is_told_at_once_even_before_the_first_report() -> None:
    async def story(scene: Scene) -> None:
        while scene.watch.changed is None:
            await asyncio.sleep(0.005)
        scene.watch.told = (
            Finding(check="kernel_log.xid79", outcome=Outcome.FAILED, severity=Severity.FATAL, event=True),
        )
        began = scene.clock.now()
        scene.watch.changed()
        findings, _ = await scene.report()
        assert findings["kernel_log.xid79"].is_bad
        assert findings["disk"].outcome is Outcome.UNKNOWN, "its look still hangs"
        assert scene.clock.now() - began < 1

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
        scene.checks.append(a_check("site.new"))
        await scene.report_with("site.new", Outcome.PASSED)
        scene.checks.pop()
        scene.refused = (Finding(check="site", outcome=Outcome.UNKNOWN, text="not run: x"),)
        while True:
            findings, _ = await scene.report()
            if "site" in findings:
                assert "site.new" not in findings
                return

    run(lambda: Scene(a_check()), story)


def test_a_check_is_told_at_its_next_look_what_it_noted_and_after_a_restart_too() -> None:
    def note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
        return {"looks": (*past.notes.get("looks", ()), float(len(past.notes)))}

    def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
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
        await scene.senses.start_anew(5.0)
        findings = await scene.report_with("disk", Outcome.PASSED)
        assert not findings["disk"].is_bad

    async def still_bad(scene: Scene) -> None:
        scene.probes.value = 1.0
        await scene.report_with("disk", Outcome.FAILED)
        await scene.senses.start_anew(5.0)
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
