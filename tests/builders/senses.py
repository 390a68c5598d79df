"""A node's checks with looks that a test decides, and what its head would hear."""

import asyncio
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steward.adapters.clock import SystemClock
from steward.adapters.node.probe import SharedLooks
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.messages import report_of
from steward.agent.catalogue import SiteChecks
from steward.agent.senses import Senses
from steward.agent.track import CheckMemory, Track
from steward.checks.check import Check, Facts, Judgement, Past, failed, passed
from steward.checks.limits import Limits
from steward.model.agent_tables import HealthPolicy
from steward.model.health import Advice, Finding, Incarnation, Outcome, Severity
from steward.model.ids import BootId, InstanceId, NodeName
from steward.model.probe import HeadClock, Probe, Raw
from tests.fakes.until import FACT_S, comes_true

FACTS = Facts(node=NodeName("n1"), limits=Limits())


def a_check(check_id: str = "disk", **more: Any) -> Check:
    """Judges the number that the probe brings: from 1 on it is bad; "crash" crashes."""

    def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
        skew = raws[0].skew_s
        if skew is not None and skew < 0:
            raise ZeroDivisionError("a bug")
        return failed("bad", Severity.DEGRADED, Advice.REBOOT) if skew else passed("fine")

    parts: dict[str, Any] = {
        "probes": lambda facts: (HeadClock(),),
        "confirm_s": 0.03,
        "timeout_s": FACT_S,
    }
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
            self.released.wait(2 * FACT_S)
        return Raw(skew_s=self.value)


@dataclass
class Shared:
    """Looks that are shared as the agent's real probes share theirs."""

    look: SharedLooks


@dataclass
class FakeWatch:
    told: tuple[Finding, ...] = ()
    waiting: tuple[Finding, ...] = ()
    changed: Callable[[], None] | None = None
    look_again: Callable[[], None] | None = None
    is_read: bool = True

    def findings(self) -> tuple[Finding, ...]:
        return self.told

    def catch_up(self) -> None:
        self.told += self.waiting
        self.waiting = ()

    async def run(self, changed: Callable[[], None], look_again: Callable[[], None]) -> None:
        self.changed, self.look_again = changed, look_again
        await asyncio.Event().wait()


class Scene:
    """`site` are the site's own checks, `gate` holds back a list of them while it is closed."""

    def __init__(
        self,
        *checks: Check,
        interval_s: float = 30.0,
        is_shared: bool = False,
        list_s: float = FACT_S,
        clear_after_s: float = 0.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.site: list[Check] = []
        self.gate = threading.Event()
        self.gate.set()
        self.refused: tuple[Finding, ...] = ()
        self.versions = {"site.own": "0badcafe"}
        self.probes = FakeProbes()
        self._eyes = Shared(SharedLooks(self.probes.look, now)) if is_shared else self.probes
        self.watch = FakeWatch()
        self.sent: asyncio.Queue[Frame] = asyncio.Queue()
        self.clock = SystemClock()
        self.interval_s = interval_s
        self.health = HealthPolicy(clear_after_s=clear_after_s)
        whose = Incarnation(instance=InstanceId("i-1"), boot=BootId("b-1"))
        self.memory = CheckMemory(Path(tempfile.mkdtemp()) / "checks.json", incarnation=whose, clock=self.clock)
        self.senses = Senses(
            built_in=checks,
            site=self._listed,
            track=self._track,
            watches=(self.watch,),
            post=self.sent.put_nowait,
            next_list=lambda now: now + min(interval_s, 0.1),
            list_s=list_s,
        )

    def _listed(self) -> SiteChecks:
        self.gate.wait(2 * FACT_S)
        return SiteChecks(checks=tuple(self.site), versions=dict(self.versions), refused=self.refused)

    def _track(self, check: Check) -> Track:
        return Track(
            check,
            facts=FACTS,
            probes=self._eyes,
            clock=self.clock,
            health=self.health,
            interval_s=self.interval_s,
            memory=self.memory,
        )

    async def hang(self, list_s: float) -> None:
        """Lists of site checks hang from now on, and are waited for that long."""
        await comes_true("no list is under way", lambda: "list of site checks" not in self.senses._tasks)
        self.senses._list_s = list_s
        self.gate.clear()

    def go_on(self) -> None:
        self.senses._list_s = FACT_S
        self.gate.set()

    async def report(self) -> tuple[dict[str, Finding], str | None]:
        report = report_of(await self.sent.get())
        quiet = [(Outcome.PASSED, name) for name in report.passed] + [
            (Outcome.SKIPPED, name) for name in report.skipped
        ]
        named = {name: Finding(check=name, outcome=outcome) for outcome, name in quiet}
        return named | {finding.check: finding for finding in report.findings}, report.checked

    async def answer(self) -> tuple[dict[str, Finding], str]:
        """The report that answers a request; others may come before it."""
        while True:
            findings, checked = await self.report()
            if checked is not None:
                return findings, checked

    async def report_with(self, check: str, outcome: Outcome) -> dict[str, Finding]:
        while True:
            findings, _ = await self.report()
            if check in findings and findings[check].outcome is outcome:
                return findings


def run(scene_of: Callable[[], Scene], story: Callable[[Scene], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(FACT_S):
            scene = scene_of()
            running = asyncio.ensure_future(scene.senses.run())
            try:
                await story(scene)
            finally:
                scene.probes.released.set()
                scene.gate.set()
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    asyncio.run(within())
