"""Kernel-log lines on their way to findings."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from steward.agent.kernel_watch import KernelWatch
from steward.model.health import Finding, Incarnation, Outcome
from steward.model.ids import BootId, InstanceId
from tests.fakes.clock import FakeClock
from tests.fakes.wires import WHO

XID = "NVRM: Xid (PCI:0000:05:00): "


class Scene:
    def __init__(self, folder: Path, who: Incarnation = WHO) -> None:
        self.log = folder / "kernel.log"
        self.log.touch()
        self.state = folder / "kernel.json"
        self.watch = KernelWatch(self.log, state=self.state, incarnation=who, clock=FakeClock())
        self.changes = 0

    def write(self, line: str) -> None:
        with self.log.open("a") as log:
            log.write(f"{line}\n")

    def changed(self) -> None:
        self.changes += 1

    def events(self) -> dict[str, Finding]:
        return {finding.check: finding for finding in self.watch.findings() if finding.event}

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.01)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def run(scene: Scene, story: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        running = asyncio.ensure_future(scene.watch.run(scene.changed, lambda: None))
        await asyncio.sleep(0.05)
        try:
            async with asyncio.timeout(10):
                await story()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(within())


def test_a_line_about_broken_hardware_is_told_soon(scene: Scene) -> None:
    async def story() -> None:
        scene.write(XID + "79, x")
        began = asyncio.get_running_loop().time()
        await scene.until(lambda: scene.changes > 0)
        assert asyncio.get_running_loop().time() - began < 3
        assert scene.events()["kernel_log.xid79"].is_bad

    run(scene, story)


def test_a_line_that_lies_there_is_taken_in_when_it_is_asked_for(scene: Scene) -> None:
    async def story() -> None:
        scene.write(XID + "79, x")
        scene.watch.catch_up()
        assert "kernel_log.xid79" in scene.events()

    run(scene, story)


def test_lines_that_say_nothing_are_no_news(scene: Scene) -> None:
    async def story() -> None:
        scene.write("eth0: link up")
        scene.watch.catch_up()
        assert scene.changes == 0
        assert scene.events() == {}

    run(scene, story)


def test_events_stay_over_a_restart_and_what_came_meanwhile_is_read(scene: Scene, tmp_path: Path) -> None:
    async def first() -> None:
        scene.write(XID + "79, x")
        await scene.until(lambda: bool(scene.events()))

    run(scene, first)
    scene.write(XID + "48, x")
    again = Scene(tmp_path)
    assert set(again.events()) == {"kernel_log.xid79"}

    async def second() -> None:
        await again.until(lambda: set(again.events()) == {"kernel_log.xid79", "kernel_log.xid48"})

    run(again, second)


@pytest.mark.parametrize(
    "who", [replace(WHO, boot=BootId("other")), replace(WHO, instance=InstanceId("other"))], ids=["boot", "machine"]
)
def test_events_of_another_incarnation_are_nothing_to_this_one(scene: Scene, tmp_path: Path, who: Incarnation) -> None:
    async def first() -> None:
        scene.write(XID + "79, x")
        await scene.until(lambda: bool(scene.events()))

    run(scene, first)
    again = Scene(tmp_path, who)

    async def second() -> None:
        await asyncio.sleep(0.3)
        assert again.events() == {}

    run(again, second)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"whose":["i-1","b0000001"],"events":[{}]}'])
def test_a_spoiled_state_is_forgotten(tmp_path: Path, content: str) -> None:
    (tmp_path / "kernel.json").write_text(content)
    assert Scene(tmp_path).events() == {}


def test_a_log_that_cannot_be_read_is_unknown_and_says_so(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    (tmp_path / "kernel.log").unlink()
    (tmp_path / "file").write_text("")
    scene.watch = KernelWatch(tmp_path / "file" / "x", state=scene.state, incarnation=WHO, clock=FakeClock())

    async def story() -> None:
        await scene.until(lambda: scene.changes > 0)
        (log,) = scene.watch.findings()
        assert (log.check, log.outcome) == ("kernel_log", Outcome.UNKNOWN)
        assert "cannot be read" in log.text

    run(scene, story)
