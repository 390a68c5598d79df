"""Lines that the kernel threw away before they were read: whatever they said, the checks find it."""

import asyncio
from pathlib import Path

from steward.adapters.node.kmsg import Batch, KernelLine
from steward.agent.kernel_watch import CALM_S, KernelWatch
from steward.model.health import Outcome
from tests.builders.kernel import XID, Scene, run
from tests.fakes.clock import FakeClock
from tests.fakes.until import comes_true
from tests.fakes.wires import WHO


class Ring:
    """A log whose ring went round while nobody read. More than `batches` comes with `bring`."""

    def __init__(self, *batches: Batch) -> None:
        self.batches = list(batches)
        self.more = asyncio.Event()

    def bring(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.more.set()

    def read(self) -> Batch | None:
        self.more.clear()
        return self.batches.pop(0) if self.batches else None

    async def wait(self) -> None:
        await self.more.wait()

    def close(self) -> None:
        pass


LOST = Batch(lines=(KernelLine(at=1.0, text=XID + "79, x"),), position=9, lost=3)
QUIET = Batch(lines=(), position=10)


def on_ring(folder: Path, ring: Ring, *, calm_s: float = CALM_S) -> Scene:
    scene = Scene(folder)
    scene.watch = KernelWatch(
        scene.log, state=scene.state, incarnation=WHO, clock=FakeClock(), opens=lambda *_: ring, calm_s=calm_s
    )
    return scene


def test_lines_that_were_lost_are_told_and_every_check_looks_again(tmp_path: Path) -> None:
    scene = on_ring(tmp_path, Ring(LOST))

    async def story() -> None:
        await comes_true("it is told", lambda: scene.looks_again == 1)
        log = scene.watch.findings()[0]
        assert (log.outcome, "lines were lost" in log.text) == (Outcome.UNKNOWN, True)
        assert "kernel_log.xid79" in scene.events()

    run(scene, story)


def test_lines_found_lost_by_who_asks_what_lies_there_make_every_check_look_again_too(tmp_path: Path) -> None:
    """A check-now, or a repair that is over, may read the log before the one who follows it does."""
    ring = Ring()
    scene = on_ring(tmp_path, ring)

    async def story() -> None:
        ring.batches.append(LOST)
        scene.watch.catch_up()
        ring.bring(QUIET)
        await comes_true("all is read", lambda: not ring.batches)
        assert scene.looks_again == 1
        assert "kernel_log.xid79" in scene.events()

    run(scene, story)


def test_in_a_flood_the_checks_look_again_once_and_it_is_told_once(tmp_path: Path) -> None:
    ring = Ring(*(LOST, QUIET) * 200)
    scene = on_ring(tmp_path, ring)

    async def story() -> None:
        await comes_true("all is read", lambda: not ring.batches)
        assert scene.looks_again == 1
        assert scene.changes == 1
        assert "lines were lost" in scene.watch.findings()[0].text

    run(scene, story)


def test_after_a_flood_the_checks_look_once_more_and_the_log_is_sound_though_it_says_nothing(tmp_path: Path) -> None:
    ring = Ring(*(LOST, QUIET) * 3)
    scene = on_ring(tmp_path, ring, calm_s=0.2)

    async def story() -> None:
        await comes_true("all is read", lambda: not ring.batches)
        await comes_true("the checks look again", lambda: scene.looks_again == 2)
        await comes_true("the log is sound", lambda: scene.watch.findings()[0].outcome is Outcome.PASSED)
        assert (scene.looks_again, scene.changes) == (2, 2)

    run(scene, story)
