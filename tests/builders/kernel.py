"""A node's kernel log that a test writes, and what its watch makes of it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from steward.agent.kernel_watch import KernelWatch
from steward.checks.limits import Limits
from steward.model.health import Finding, Incarnation
from tests.fakes.clock import FakeClock
from tests.fakes.until import FACT_S
from tests.fakes.wires import WHO

XID = "NVRM: Xid (PCI:0000:05:00): "


class Scene:
    def __init__(self, folder: Path, who: Incarnation = WHO, limits: Limits | None = None) -> None:
        self.log = folder / "kernel.log"
        self.log.touch()
        self.state = folder / "kernel.json"
        self.watch = KernelWatch(self.log, state=self.state, incarnation=who, clock=FakeClock(), limits=limits)
        self.changes = self.looks_again = 0

    def write(self, line: str) -> None:
        with self.log.open("a") as log:
            log.write(f"{line}\n")

    def changed(self) -> None:
        self.changes += 1

    def look_again(self) -> None:
        self.looks_again += 1

    def events(self) -> dict[str, Finding]:
        return {finding.check: finding for finding in self.watch.findings() if finding.event}


def run(scene: Scene, story: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        running = asyncio.ensure_future(scene.watch.run(scene.changed, scene.look_again))
        await asyncio.sleep(0.05)
        try:
            async with asyncio.timeout(2 * FACT_S):
                await story()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(within())
