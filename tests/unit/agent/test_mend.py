"""Light repairs on the node: once per token and boot, whatever dies or is told twice, and only what may be done."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from steward.adapters.offload import Threads
from steward.adapters.wire.frames import Malformed
from steward.adapters.wire.order_messages import mend_of, mended_frame, mended_of, order_frames
from steward.agent.mend import CUT_OFF, AfterMend, Mending
from steward.model.agent_action import MendNode
from steward.model.health import Advice, Incarnation
from steward.model.ids import BootId, InstanceId, Key, NodeName
from steward.model.mend import MendReport
from steward.model.why import Why
from steward.ports import Permanent
from tests.fakes.agent_parts import FakeHead
from tests.fakes.clock import FakeClock
from tests.fakes.until import FACT_S, comes_true

GPU = "GPU-0b1b63b9-6f0a-4d0e-9d06-2d6f0f6b7a11"
N1 = NodeName("n1")
WHY = Why(rule="r", text="t")
RESTART = MendNode(key=Key("k"), why=WHY, node=N1, rung=Advice.RESTART_SERVICE, target="munge", token="c1-restart")
RESET = MendNode(key=Key("k"), why=WHY, node=N1, rung=Advice.RESET_GPU, target=GPU, token="c1-reset")


@dataclass
class FakeMender:
    """`until`: a repair that hangs until it is set."""

    did: list[str] = field(default_factory=list)
    error: str = ""
    until: threading.Event | None = None

    def restart(self, unit: str) -> None:
        self._do(f"restart {unit}")

    def reset(self, gpu: str) -> tuple[str, ...]:
        self._do(f"reset {gpu}")
        return (gpu, "00000000:4B:00.0")

    def _do(self, what: str) -> None:
        self.did.append(what)
        if self.until is not None:
            self.until.wait(FACT_S)
        if self.error:
            raise Permanent(self.error)


@dataclass
class Bench:
    path: Path
    head: FakeHead = field(default_factory=FakeHead)
    mender: FakeMender = field(default_factory=FakeMender)
    forgotten: list[tuple[str, ...]] = field(default_factory=list)
    anew: int = 0

    def mending(self, boot: str = "b1") -> Mending:
        return Mending(
            self.path,
            incarnation=Incarnation(instance=InstanceId("i-1"), boot=BootId(boot)),
            head=self.head,
            mender=self.mender,
            after=AfterMend(forget=lambda names, before: self.forgotten.append(names), start_anew=self._start_anew),
            threads=Threads(1),
            clock=FakeClock(),
        )

    async def _start_anew(self, within_s: float) -> None:
        self.anew += 1

    def reports(self) -> list[MendReport]:
        return [mended_of(frame) for frame in self.head.told]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(path=tmp_path / "mend.json")


def in_loop(story: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await story()

    asyncio.run(run())


async def carried_out(mending: Mending, order: MendNode) -> None:
    mending.obey(order)
    await mending.rest()


def test_a_service_is_restarted_and_the_checks_look_anew_before_the_head_hears_of_it(bench: Bench) -> None:
    in_loop(lambda: carried_out(bench.mending(), RESTART))
    assert (bench.mender.did, bench.anew, bench.forgotten) == (["restart munge"], 1, [("munge",)])
    assert [(one.token, one.error) for one in bench.reports()] == [(RESTART.token, "")]


def test_after_a_reset_what_the_log_told_of_that_gpu_is_over(bench: Bench) -> None:
    in_loop(lambda: carried_out(bench.mending(), RESET))
    assert bench.forgotten == [(GPU, "00000000:4B:00.0")]


def test_a_repair_that_fails_is_told_with_its_error_and_changes_nothing(bench: Bench) -> None:
    bench.mender.error = "held by process 7"
    in_loop(lambda: carried_out(bench.mending(), RESET))
    assert (bench.forgotten, bench.anew) == ([], 0)
    assert bench.reports()[0].error == "held by process 7"


def test_an_order_that_is_told_again_is_answered_and_not_repeated(bench: Bench) -> None:
    async def story() -> None:
        mending = bench.mending()
        await carried_out(mending, RESTART)
        await carried_out(mending, RESTART)

    in_loop(story)
    assert bench.mender.did == ["restart munge"]
    assert len(bench.reports()) == 2


def test_orders_that_come_while_one_is_carried_out_are_left_to_the_heads_next_try(bench: Bench) -> None:
    async def story() -> None:
        bench.mender.until = threading.Event()
        mending = bench.mending()
        mending.obey(RESTART)
        await asyncio.sleep(0.05)
        mending.obey(RESTART)
        mending.obey(RESET)
        bench.mender.until.set()
        await mending.rest()

    in_loop(story)
    assert bench.mender.did == ["restart munge"]


def test_a_new_agent_of_the_same_boot_remembers_and_one_of_another_boot_does_not(bench: Bench) -> None:
    async def story() -> None:
        await carried_out(bench.mending(), RESTART)
        again = bench.mending()
        assert mended_of(again.frames()[0]).token == RESTART.token
        await carried_out(again, RESTART)
        assert bench.mender.did == ["restart munge"]
        rebooted = bench.mending("b2")
        assert rebooted.frames() == ()
        await carried_out(rebooted, RESTART)

    in_loop(story)
    assert bench.mender.did == ["restart munge"] * 2


def test_an_agent_that_was_killed_meanwhile_says_so_and_does_not_do_it_again(bench: Bench) -> None:
    async def killed() -> None:
        bench.mender.until = threading.Event()
        mending = bench.mending()
        mending.obey(RESET)
        await comes_true("it is begun", lambda: bench.mender.did)
        assert json.loads(bench.path.read_text())["report"]["error"] == CUT_OFF

    async def again() -> None:
        mending = bench.mending()
        await carried_out(mending, RESET)
        assert [mended_of(frame).error for frame in mending.frames()] == [CUT_OFF]

    in_loop(killed)
    in_loop(again)
    assert bench.mender.did == [f"reset {GPU}"]
    assert bench.mender.until is not None
    bench.mender.until.set()


def test_what_cannot_be_written_down_is_not_begun(bench: Bench) -> None:
    bench.path.mkdir()
    in_loop(lambda: carried_out(bench.mending(), RESTART))
    assert bench.mender.did == []
    assert "cannot write" in bench.reports()[0].error


def test_a_state_that_is_garbage_is_no_state(bench: Bench) -> None:
    for text in (
        "{",
        "[]",
        '{"whose": ["i-1", "b1"], "report": 7}',
        '{"whose": ["i-1", "b1"], "report": {"token": "../x"}}',
    ):
        bench.path.write_text(text)
        in_loop(lambda: nothing_known(bench))


async def nothing_known(bench: Bench) -> None:
    assert bench.mending().frames() == ()


@pytest.mark.parametrize(
    ("rung", "target"),
    [
        ("restart_service", "--help"),
        ("restart_service", "munge; reboot"),
        ("restart_service", "../munge"),
        ("restart_service", ""),
        ("reset_gpu", "munge"),
        ("reset_gpu", "-r"),
        ("reset_gpu", "GPU-1"),
        ("reboot", "munge"),
        ("none", ""),
        ("replace", GPU),
    ],
)
def test_an_order_that_makes_no_sense_is_refused_on_both_sides(rung: str, target: str) -> None:
    with pytest.raises(Malformed):
        mend_of({"t": "mend", "rung": rung, "target": target, "token": "c1"}, N1)
    with pytest.raises(Permanent):
        order_frames(replace(RESET, rung=Advice(rung), target=target))


def test_orders_and_reports_come_out_as_they_went_in() -> None:
    (frame,) = order_frames(RESET)
    order = mend_of(frame, N1)
    assert order == replace(RESET, key=order.key, why=order.why)
    report = MendReport(token="c1-x", error="held", at=3.0)
    assert mended_of(mended_frame(report)) == report


def test_what_the_agent_does_by_its_own_will_waits_its_turn_and_leaves_the_heads_orders_as_they_were(
    bench: Bench,
) -> None:
    async def story() -> None:
        bench.mender.until = threading.Event()
        mending = bench.mending()
        mending.obey(RESET)
        own = asyncio.ensure_future(mending.restart("munge.service"))
        await comes_true("the head's is begun", lambda: bench.mender.did)
        assert bench.mender.did == [f"reset {GPU}"]
        bench.mender.until.set()
        assert await own == ""
        assert [mended_of(frame).token for frame in mending.frames()] == [RESET.token]
        bench.mender.error = "not allowed"
        assert await mending.restart("munge.service") == "not allowed"

    in_loop(story)
    assert bench.mender.did == [f"reset {GPU}"] + ["restart munge.service"] * 2
    assert len(bench.reports()) == 1
