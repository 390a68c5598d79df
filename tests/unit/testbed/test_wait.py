"""Waiting ends with the answer, or with a message that says what was seen."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from steward.ports import Retryable
from steward_bed import wait
from steward_bed.wait import NotInTime, calm, wait_until
from tests.fakes.until import FACT_S


def answers(*values: object) -> Callable[[], object]:
    left: Iterator[object] = iter(values)

    def look() -> object:
        value = next(left)
        if isinstance(value, Exception):
            raise value
        return value

    return look


@dataclass
class Ticking:
    """A clock on which each look at it takes time."""

    by_s: float
    now: float = 0.0

    def monotonic(self) -> float:
        self.now += self.by_s
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def one() -> float:
    return 1.0


def test_a_failed_look_counts_as_not_yet() -> None:
    assert wait_until("it is there", answers(Retryable("no slurmctld"), 7), FACT_S, every_s=0) == 7


def test_what_came_true_during_a_look_that_took_all_of_the_time_is_seen() -> None:
    seen = answers(False, True)

    def slow() -> object:
        before = seen()
        time.sleep(0.02)
        return before

    assert wait_until("it is there", slow, 0.01, every_s=0) is True


def test_what_goes_on_is_waited_for_beyond_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a daemon starts late, but it starts."""
    now = Ticking(by_s=0.005)
    steps = iter(range(1000))
    moving: Iterator[int] = iter(range(1000))
    monkeypatch.setattr(wait, "time", now)
    assert wait_until("it is up", lambda: next(steps) >= 10, 0.02, every_s=0, moves=lambda: next(moving), share=one)


def test_what_stands_still_has_only_its_time() -> None:
    with pytest.raises(NotInTime, match=r"not within 0\.01 s: it is up"):
        wait_until("it is up", lambda: False, 0.01, every_s=0, moves=lambda: "the same")


def test_of_a_second_in_which_others_wait_for_a_processor_a_part_counts() -> None:
    began = time.monotonic()
    with pytest.raises(NotInTime, match=r"not within 0\.05 s"):
        wait_until("it is up", lambda: False, 0.05, every_s=0, share=lambda: 0.2)
    assert time.monotonic() - began >= 0.25


@pytest.mark.parametrize(("told", "share"), [("some avg10=0.00", 1.0), ("some avg10=25.00", 0.75), ("nothing", 1.0)])
def test_the_share_is_what_nobody_waited(told: str, share: float, tmp_path: Path) -> None:
    file = tmp_path / "cpu"
    assert calm(file) == 1.0, "no such file"
    file.write_text(f"{told} avg60=9.00 avg300=9.00 total=1\nfull avg10=99.00\n")
    assert calm(file) == share


def test_however_busy_a_machine_is_time_goes_on(tmp_path: Path) -> None:
    (tmp_path / "cpu").write_text("some avg10=100.00 avg60=100.00 avg300=100.00 total=1\n")
    assert calm(tmp_path / "cpu") > 0


def test_what_goes_on_for_ever_is_not_waited_for_for_ever() -> None:
    moving: Iterator[int] = iter(range(10**9))
    with pytest.raises(NotInTime):
        wait_until("it is up", lambda: False, 0.005, every_s=0, moves=lambda: next(moving))
