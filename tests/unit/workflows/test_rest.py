"""Turns of one recovery follow each other at once; turns that never end leave a fifth of the time to others."""

import pytest

from steward.workflows.cycle import LONGEST_S, Rest


def test_the_turns_of_a_recovery_follow_each_other_at_once() -> None:
    rest, now = Rest(), 100.0
    for _ in range(20):
        assert rest.after(now, now + 0.05) == 0.0
        now += 0.05


def test_turns_that_never_stop_take_four_fifths_of_the_time_at_most() -> None:
    rest, now, worked = Rest(), 0.0, 0.0
    for _ in range(1000):
        worked += 0.1
        now += 0.1 + rest.after(now, now + 0.1)
    assert worked / now == pytest.approx(0.8, abs=0.02)


def test_quiet_time_pays_what_is_owed() -> None:
    rest = Rest()
    rest.after(0.0, 8.0)
    assert rest.after(8.3, 8.4) == LONGEST_S
    assert rest.after(20.0, 20.1) == 0.0


def test_a_turn_that_took_long_is_not_followed_by_a_long_rest() -> None:
    assert Rest().after(0.0, 60.0) == LONGEST_S
