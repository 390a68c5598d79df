"""Events and log lines of one kind are bounded over time, and nobody's many push another's out."""

import logging

from hypothesis import given
from hypothesis import strategies as st

from steward.adapters import log_lines
from steward.adapters.log_lines import Paced
from steward.model.events import Event, Level
from steward.model.ids import JobId
from steward.workflows.journal import EVENTS_AT_ONCE, EVENTS_EACH_S, Calm


def event(job: int, text: str = "", level: Level = Level.INFO) -> Event:
    return Event(at=0.0, kind="job.decided", text=text or f"job {job}", job=JobId(job), level=level)


def test_many_events_about_one_job_leave_room_for_those_about_another() -> None:
    now = [0.0]
    calm = Calm(lambda: now[0])
    told = calm.filter_events([event(7, f"step {step}") for step in range(5_583)] + [event(8)])
    assert len(told) == EVENTS_AT_ONCE + 1
    assert told[-1].job == 8
    now[0] += EVENTS_EACH_S
    (late,) = calm.filter_events([])
    assert late.text == f"step 5582 (and {5_583 - EVENTS_AT_ONCE - 1:,} more like it)"
    assert calm.filter_events([]) == []


def test_an_error_is_always_told() -> None:
    assert len(Calm(lambda: 0.0).filter_events([event(7, level=Level.ERROR)] * 1000)) == 1000


@given(st.lists(st.tuples(st.integers(1, 3), st.floats(0.0, 30.0)), max_size=300))
def test_what_is_told_of_a_job_is_bounded_over_time_and_nothing_is_uncounted(steps: list[tuple[int, float]]) -> None:
    now = [0.0]
    calm, told = Calm(lambda: now[0]), []
    for job, later in steps:
        now[0] += later
        told += calm.filter_events([event(job)] * 20)
    for job in {job for job, _ in steps}:
        about = [one for one in told if one.job == job]
        assert len(about) <= EVENTS_AT_ONCE + now[0] / EVENTS_EACH_S + 2


def line(text: str, place: int = 1, **fields: object) -> logging.LogRecord:
    record = logging.LogRecord("steward.head.hub", logging.WARNING, "hub.py", place, "%s", (text,), None)
    record.__dict__.update(fields)
    return record


def test_log_lines_of_one_kind_are_bounded_and_the_next_one_says_how_many_were_left_out() -> None:
    now = [0.0]
    paced = Paced(now=lambda: now[0])
    flood = [line(f"a connection from 10.0.0.{number} was refused") for number in range(6_580)]
    assert sum(map(paced.filter, flood)) == log_lines.AT_ONCE
    assert paced.filter(line("another kind", place=2))
    assert paced.filter(line("an action of another kind", action="DownNode"))
    now[0] += 10.0
    last = line("one more")
    assert paced.filter(last)
    assert last.getMessage() == "one more (and 5,580 more of this kind)"
