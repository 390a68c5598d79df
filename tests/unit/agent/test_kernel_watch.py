"""Kernel-log lines on their way to findings."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from steward.agent.kernel_watch import KernelWatch
from steward.checks.limits import Limits
from steward.model.health import Advice, Incarnation, Outcome, Scope
from steward.model.ids import BootId, InstanceId
from tests.builders.kernel import XID, Scene, run
from tests.fakes.clock import FakeClock
from tests.fakes.until import comes_true
from tests.fakes.wires import WHO


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_line_about_broken_hardware_is_told(scene: Scene) -> None:
    async def story() -> None:
        scene.write(XID + "79, x")
        await comes_true("it is told", lambda: scene.changes > 0)
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
        await comes_true("it is told", lambda: bool(scene.events()))

    run(scene, first)
    scene.write(XID + "48, x")
    again = Scene(tmp_path)
    assert set(again.events()) == {"kernel_log.xid79"}

    async def second() -> None:
        await comes_true("it is told", lambda: set(again.events()) == {"kernel_log.xid79", "kernel_log.xid48"})

    run(again, second)


@pytest.mark.parametrize(
    "who", [replace(WHO, boot=BootId("other")), replace(WHO, instance=InstanceId("other"))], ids=["boot", "machine"]
)
def test_events_of_another_incarnation_are_nothing_to_this_one(scene: Scene, tmp_path: Path, who: Incarnation) -> None:
    async def first() -> None:
        scene.write(XID + "79, x")
        await comes_true("it is told", lambda: bool(scene.events()))

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
        await comes_true("it is told", lambda: scene.changes > 0)
        (log,) = scene.watch.findings()
        assert (log.check, log.outcome) == ("kernel_log", Outcome.UNKNOWN)
        assert "cannot read the kernel log" in log.text

    run(scene, story)


def test_what_a_user_writes_into_the_log_is_not_the_kernels_word(scene: Scene) -> None:
    """Whatever he writes, the kernel gives it another facility than its own (0): 12 is a warning (4) of a user (1)."""

    async def story() -> None:
        scene.write("12,100,5000,-;" + XID + "79, GPU has fallen off the bus")
        scene.write("8,101,5001,-;Kernel panic - not syncing: not at all")
        scene.write("4,102,5002,-;" + XID + "43, x")
        scene.watch.catch_up()
        assert set(scene.events()) == {"kernel_log.xid43"}

    run(scene, story)


def test_a_signature_that_the_site_switched_off_says_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limits=Limits(modes={"kernel_log.xid43": "off"}))

    async def story() -> None:
        scene.write(XID + "43, x")
        scene.write(XID + "31, x")
        scene.watch.catch_up()
        assert set(scene.events()) == {"kernel_log.xid31"}

    run(scene, story)


def test_a_number_of_times_that_the_site_chose_counts(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limits=Limits(values={"kernel_log.nvme_timeout.times": 1.0}))

    async def story() -> None:
        scene.write("nvme nvme1: I/O 12 QID 3 timeout, aborting")
        scene.watch.catch_up()
        assert scene.events()["kernel_log.nvme_timeout"].advice is Advice.REPLACE

    run(scene, story)


def test_scope_and_hardware_stay_over_a_restart(scene: Scene, tmp_path: Path) -> None:
    async def story() -> None:
        scene.write("nfs: server home1 not responding, still trying")
        scene.write(XID + "149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x1 0x0)")
        await comes_true("it is told", lambda: len(scene.events()) == 2)

    run(scene, story)
    again = Scene(tmp_path).events()
    assert again == scene.events()
    assert again["kernel_log.nfs_stall"].scope is Scope.CLUSTER
    assert again["kernel_log.xid149"].hardware == "0000:05:00"


def test_a_flood_leaves_most_of_the_core_to_others(scene: Scene) -> None:
    async def story() -> None:
        scene.log.write_text(("nvme nvme0: 8/0/0 default/read/poll queues of this device, quietly\n") * 40_000)
        began, cpu = asyncio.get_running_loop().time(), time.thread_time()
        while (passed := asyncio.get_running_loop().time() - began) < 1.0:
            await asyncio.sleep(0.05)
        assert time.thread_time() - cpu < 0.5 * passed

    run(scene, story)


def test_a_gpu_that_was_reset_is_rid_of_what_a_reset_cures_and_of_nothing_else(scene: Scene) -> None:
    async def story() -> None:
        scene.write(XID + "95, x")
        scene.write("NVRM: Xid (PCI:0000:06:00): 95, x")
        scene.write(XID + "79, x")
        await comes_true("it is told", lambda: len(abouts(scene)) == 3)
        scene.watch.forget(("GPU-1", "00000000:05:00.0"), before=0.0)
        assert len(abouts(scene)) == 3
        scene.watch.forget(("GPU-1", "00000000:05:00.0"), before=1e12)

    run(scene, story)
    left = {("kernel_log.xid95", "0000:06:00"), ("kernel_log.xid79", "0000:05:00")}
    assert abouts(scene) == left
    assert abouts(Scene(scene.log.parent)) == left


def abouts(scene: Scene) -> set[tuple[str, str]]:
    return {(finding.check, finding.hardware) for finding in scene.watch.findings() if finding.event}


SLURMD_KILLED = (
    "Out of memory: Killed process 812 (slurmd) total-vm:9kB, anon-rss:9kB, file-rss:8kB, shmem-rss:0kB, UID:0 x"
)


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (("slurmd",), {"kernel_log.xid79", "kernel_log.xid154"}),
        (("munge",), {"kernel_log.xid79", "kernel_log.xid154", "kernel_log.oom_daemon"}),
        (("GPU-1", "00000000:05:00.0"), {"kernel_log.oom_daemon"}),
    ],
)
def test_a_repair_ends_the_events_that_it_cures(scene: Scene, names: tuple[str, ...], left: set[str]) -> None:
    """Also where only the driver said that a reset is enough (Xid 154)."""

    async def story() -> None:
        changed = "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
        for line in (XID + "79, x", XID + changed, SLURMD_KILLED):
            scene.write(line)
        scene.watch.catch_up()
        scene.watch.forget(names, before=1e12)
        assert set(scene.events()) == left

    run(scene, story)
