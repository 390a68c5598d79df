"""What checks noted outlives the agent, and not the boot."""

from pathlib import Path

import pytest

from steward.agent.track import MAX_NAMES, MAX_TIMES, CheckMemory
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId
from tests.fakes.clock import FakeClock


def memory_of(path: Path, clock: FakeClock, *, boot: str = "b-1") -> CheckMemory:
    return CheckMemory(path, incarnation=Incarnation(instance=InstanceId("i-1"), boot=BootId(boot)), clock=clock)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checks-n1.json"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000.0)


def test_notes_outlive_a_killed_agent(path: Path, clock: FakeClock) -> None:
    memory_of(path, clock).keep("ib.flap", {"trips": (1.0, 2.5)})
    assert memory_of(path, clock).of("ib.flap") == {"trips": (1.0, 2.5)}


@pytest.mark.parametrize("boot", ["b-2", ""])
def test_notes_of_another_boot_are_nothing_to_us(path: Path, clock: FakeClock, boot: str) -> None:
    memory_of(path, clock).keep("ib.flap", {"trips": (1.0,)})
    assert memory_of(path, clock, boot=boot).of("ib.flap") == {}


def test_the_file_is_written_every_ten_seconds_at_most_and_nothing_is_lost(path: Path, clock: FakeClock) -> None:
    memory = memory_of(path, clock)
    memory.keep("a", {"n": (1.0,)})
    memory.keep("a", {"n": (2.0,)})
    assert memory_of(path, clock).of("a") == {"n": (1.0,)}
    clock.at += 10
    memory.keep("a", {"n": (2.0,)})
    assert memory_of(path, clock).of("a") == {"n": (2.0,)}


def test_notes_that_do_not_change_write_nothing(path: Path, clock: FakeClock) -> None:
    memory = memory_of(path, clock)
    memory.keep("a", {"n": (1.0,)})
    written = path.stat().st_ino
    clock.at += 100
    memory.keep("a", {"n": (1.0,)})
    assert path.stat().st_ino == written


def test_removing_the_file_makes_the_checks_forget(path: Path, clock: FakeClock) -> None:
    memory = memory_of(path, clock)
    memory.keep("ib.flap", {"trips": (1.0,)})
    path.unlink()
    assert memory.of("ib.flap") == {}


def test_a_directory_that_cannot_be_written_forgets_nothing(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "state").write_text("no directory")
    memory = memory_of(tmp_path / "state" / "checks.json", clock)
    memory.keep("ib.flap", {"trips": (1.0,)})
    assert memory.of("ib.flap") == {"trips": (1.0,)}


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "[1]",
        "{",
        '{"whose": ["i-1", "b-1"]}',
        '{"whose": ["i-1", "b-1"], "notes": [1]}',
        '{"whose": ["i-1", "b-1"], "notes": {"a": {"n": ["x"]}}}',
    ],
)
def test_garbage_in_the_file_is_forgotten(path: Path, clock: FakeClock, garbage: str) -> None:
    path.write_text(garbage)
    assert memory_of(path, clock).of("a") == {}


def test_a_check_cannot_fill_the_memory(path: Path, clock: FakeClock) -> None:
    memory = memory_of(path, clock)
    memory.keep("a", {f"n{n}": tuple(float(t) for t in range(100)) for n in range(1000)})
    kept = memory.of("a")
    assert len(kept) == MAX_NAMES
    assert kept["n0"] == tuple(float(t) for t in range(100 - MAX_TIMES, 100))
