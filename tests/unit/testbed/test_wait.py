"""Waiting ends with the answer, or with a message that says what was seen."""

import time
from collections.abc import Callable, Iterator

import pytest

from steward.ports import Retryable
from steward.testbed.wait import NotInTime, wait_until, wait_until_empty


def answers(*values: object) -> Callable[[], object]:
    left: Iterator[object] = iter(values)

    def look() -> object:
        value = next(left)
        if isinstance(value, Exception):
            raise value
        return value

    return look


def test_the_first_true_answer_is_returned() -> None:
    assert wait_until("it is there", answers(0, "", "yes"), 5, every_s=0) == "yes"


def test_a_failed_look_counts_as_not_yet() -> None:
    assert wait_until("it is there", answers(Retryable("no slurmctld"), 7), 5, every_s=0) == 7


def test_what_came_true_during_a_look_that_took_all_of_the_time_is_seen() -> None:
    seen = answers(False, True)

    def slow() -> object:
        before = seen()
        time.sleep(0.02)
        return before

    assert wait_until("it is there", slow, 0.01, every_s=0) is True


def test_the_message_says_what_was_awaited_and_seen_last() -> None:
    with pytest.raises(NotInTime, match=r"not within 0 s: n1 is idle; last seen: 'down'"):
        wait_until_empty("n1 is idle", answers("down"), 0)


def test_the_message_ends_with_what_the_teller_saw() -> None:
    with pytest.raises(NotInTime, match=r"(?s)n1 is idle.*the whole queue"):
        wait_until("n1 is idle", answers(None), 0, seen=lambda: "the whole queue")


def test_nothing_left_is_the_end_of_waiting_for_empty() -> None:
    wait_until_empty("no job is left", answers([1], []), 5, every_s=0)


def test_what_goes_on_is_waited_for_beyond_its_time() -> None:
    """On a busy machine a daemon starts late, but it starts."""
    steps = iter(range(1000))

    def look() -> bool:
        time.sleep(0.01)
        return next(steps) >= 4

    moving: Iterator[int] = iter(range(1000))
    assert wait_until("it is up", look, 0.02, every_s=0, moves=lambda: next(moving))


def test_what_stands_still_has_only_its_time() -> None:
    with pytest.raises(NotInTime, match=r"not within 0\.01 s: it is up"):
        wait_until("it is up", lambda: False, 0.01, every_s=0, moves=lambda: "the same")


def test_what_goes_on_for_ever_is_not_waited_for_for_ever() -> None:
    moving: Iterator[int] = iter(range(10**9))
    with pytest.raises(NotInTime):
        wait_until("it is up", lambda: False, 0.005, every_s=0, moves=lambda: next(moving))
