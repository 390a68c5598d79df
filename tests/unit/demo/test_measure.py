"""The demo's figures, from made-up logs."""

import pytest

from examples.demo.measure import CaseTimes, FaultStory, Happening, Made, figures, parse, recovery

MADE = Made(story=FaultStory.SPARE_INSIDE, node="n2", at=100.0)


def step(at: float, number: int) -> Happening:
    return Happening(at=at, what="step", step=number)


def begun(at: float, number: int, born: float) -> Happening:
    return Happening(at=at, what="begun", step=number, facts={"born": born})


LOG = [begun(90.0, 0, 89.0), step(99.0, 17), step(100.1, 18), begun(102.0, 10, 101.0), step(102.5, 11)]


def test_times_count_from_the_fault_and_steps_after_the_checkpoint_are_lost() -> None:
    found = figures(MADE, LOG, CaseTimes(detected=100.2, marked=100.4, replaced=103.0, returned=104.0))
    times = (found.detected_s, found.marked_s, found.running_s, found.first_step_s, found.replaced_s, found.returned_s)
    assert times == pytest.approx((0.2, 0.4, 1.0, 2.5, 3.0, 4.0))
    assert found.steps_lost == 8


def test_a_start_that_made_no_step_is_no_recovery() -> None:
    assert recovery(MADE, LOG[:4]) is None
    again = [*LOG[:4], begun(105.0, 10, 104.0), step(106.0, 11)]
    assert figures(MADE, again, CaseTimes()).running_s == pytest.approx(4.0)


def test_a_step_of_the_dying_attempt_is_no_recovery() -> None:
    assert recovery(MADE, [*LOG[:3]]) is None


def test_a_torn_line_of_the_log_is_not_a_happening() -> None:
    lines = ['{"at": 1.0, "what": "step", "step": 1}', '{"at": 2.0, "wh', "[]", '{"at": 1, "what": "x", "step": 1}']
    assert [each.step for each in parse(lines)] == [1]
