"""A dead munged is restarted by the agent itself: only when it is dead for good, only twice an hour, whoever asks."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from steward.adapters.munge import ToldMunge
from steward.adapters.offload import Threads
from steward.agent.munge_care import UNIT, MungeCare
from steward.ports import Permanent, Retryable
from tests.fakes.clock import FakeClock
from tests.fakes.munge import FakeMunge, FakeMunged
from tests.fakes.until import comes_true

BETWEEN_S = 0.01


@dataclass
class Bench:
    path: Path
    munged: FakeMunged = field(default_factory=FakeMunged)
    clock: FakeClock = field(default_factory=FakeClock)
    restarted: list[str] = field(default_factory=list)
    helps: bool = True
    error: str = ""

    async def restart(self, unit: str) -> str:
        self.restarted.append(unit)
        self.munged.up = self.munged.up or self.helps
        return self.error

    def care(self) -> MungeCare:
        """Of a new agent."""
        munge = FakeMunge(self.munged)
        return MungeCare(self.path, munge=munge, threads=Threads(1), clock=self.clock, between_s=BETWEEN_S)

    async def told(self, times: int = 1) -> None:
        """A new agent heard that often that munged did not answer somebody, and has done what it does."""
        care = self.care()
        for _ in range(times):
            await care.turn(self.restart)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(path=tmp_path / "munge.json")


def test_a_dead_munged_is_restarted(bench: Bench) -> None:
    bench.munged.up = False
    asyncio.run(bench.told())
    assert bench.restarted == [UNIT]


def test_one_that_answers_again_is_left_alone(bench: Bench) -> None:
    asyncio.run(bench.told())
    assert bench.restarted == []


def test_one_that_comes_back_within_seconds_was_restarted_by_somebody_else(bench: Bench) -> None:
    bench.munged.up = False

    async def story() -> None:
        asyncio.get_running_loop().call_later(BETWEEN_S * 1.5, lambda: setattr(bench.munged, "up", True))
        await bench.told()

    asyncio.run(story())
    assert bench.restarted == []


def test_what_does_not_help_is_done_twice_an_hour_and_said_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.munged.up, bench.helps = False, False
    asyncio.run(bench.told(times=5))
    assert bench.restarted == [UNIT] * 2
    assert sum("look at munged" in line.getMessage() for line in caplog.records) == 1


def test_a_new_agent_remembers_and_an_hour_later_it_is_tried_again(bench: Bench) -> None:
    bench.munged.up, bench.helps = False, False
    asyncio.run(bench.told(times=2))
    asyncio.run(bench.told())
    assert bench.restarted == [UNIT] * 2
    bench.clock.at += 3601.0
    asyncio.run(bench.told())
    assert bench.restarted == [UNIT] * 3


def test_a_restart_that_cannot_be_written_down_is_not_begun(bench: Bench) -> None:
    bench.path.mkdir()
    bench.munged.up = False
    asyncio.run(bench.told())
    assert bench.restarted == []


@pytest.mark.parametrize("text", ["{", "{}", '["x", null]', "7"])
def test_a_state_that_is_garbage_is_no_restart(bench: Bench, text: str) -> None:
    bench.path.write_text(text)
    bench.munged.up = False
    asyncio.run(bench.told())
    assert bench.restarted == [UNIT]


@pytest.mark.parametrize("ask", [lambda munge: munge.encode(b""), lambda munge: munge.decode("MUNGE:0:")])
def test_whoever_gets_no_answer_is_heard_of_and_a_refusal_is_an_answer(ask: Callable[[ToldMunge], object]) -> None:
    munged, heard = FakeMunged(up=False), list[str]()
    munge = ToldMunge(FakeMunge(munged), heard.append)
    with pytest.raises(Retryable):
        ask(munge)
    assert len(heard) == 1
    munged.up = True
    with pytest.raises(Permanent):
        munge.decode("forged")
    assert len(heard) == 1


def test_a_thread_may_say_so(bench: Bench) -> None:
    bench.munged.up = False

    async def story() -> None:
        care = bench.care()
        caring = asyncio.ensure_future(care.run(bench.restart))
        threading.Thread(target=lambda: care.no_answer("no munged")).start()
        await comes_true("it is restarted", lambda: bench.restarted)
        caring.cancel()

    asyncio.run(story())
    assert bench.restarted == [UNIT]
