"""A job's time cut into phases: all of it, once, whatever is known."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.model.ids import JobId, NodeName
from steward.model.ledger import Ending, Pause, Phase, Run, Segment, Sums
from steward.views.report import Window as ReportWindow
from steward.views.report import by_month, clip_segments, job_ledgers, month_window, timeline, unknown

FIRST = Run(
    job=JobId(7),
    opted_at=90.0,
    restart=0,
    uid=1000,
    started=100.0,
    nodes=frozenset({NodeName("n1"), NodeName("n2")}),
    first_step=110.0,
    step=50,
    checkpoint_step=40,
    checkpointed=180.0,
    fault=200.0,
    detected=201.0,
    marked=201.5,
    decided=202.0,
    ended=203.0,
    eligible=205.0,
    ending=Ending.REQUEUED,
)
SECOND = Run(
    job=JobId(7),
    opted_at=90.0,
    restart=1,
    uid=1000,
    started=210.0,
    nodes=frozenset({NodeName("n1"), NodeName("n3")}),
    first_step=220.0,
    ended=300.0,
    ending=Ending.OVER,
    end_text="COMPLETED",
)
INSTANTS = ("fault", "detected", "marked", "decided", "eligible", "first_step", "checkpointed")


def spent(*runs: Run, now: float = 1000.0) -> dict[str, float]:
    return {phase.value: s for phase, s in Sums.of(timeline(runs, now)).seconds.items() if s}


def test_every_instant_that_is_known_ends_its_phase() -> None:
    assert spent(FIRST, SECOND) == {
        "start": 20.0,
        "work": 70.0 + 80.0,
        "redo": 20.0,
        "detect": 1.0,
        "decide": 1.0,
        "release": 3.0,
        "queue": 5.0,
    }


def test_an_instant_that_nobody_saw_gives_its_time_to_the_next_phase_and_is_named() -> None:
    blind = replace(FIRST, detected=None, checkpoint_step=None)
    assert spent(blind, SECOND) == {
        "start": 20.0,
        "work": 90.0 + 80.0,
        "decide": 2.0,
        "release": 3.0,
        "queue": 5.0,
    }
    assert unknown(blind, SECOND) == ("detected",)


def test_a_run_that_goes_on_is_work_until_now() -> None:
    going = replace(SECOND, ended=None, ending=None)
    assert spent(going, now=250.0) == {"start": 10.0, "work": 30.0}


def test_a_run_that_slurm_calls_over_before_its_fault_held_its_nodes_until_the_fault() -> None:
    """Slurm's ends are whole seconds; a job had a goodput of 102 % by that."""
    rounded = replace(FIRST, ended=199.0)
    assert Sums.of(timeline((rounded, SECOND), 1000.0)).held_node_seconds == 2 * (100.0 + 90.0)


def test_nodes_are_held_until_the_run_has_ended() -> None:
    held = Sums.of(timeline((FIRST, SECOND), 1000.0))
    assert held.held_node_seconds == 2 * (103.0 + 90.0)
    assert held.all_node_s == 2 * 200.0
    assert held.ettr == pytest.approx(150 / 200)
    assert held.goodput == pytest.approx(150 / 193)


times = st.one_of(st.none(), st.floats(min_value=0.0, max_value=2000.0))


@st.composite
def runs_of_a_job(draw: st.DrawFn) -> list[Run]:
    """Instants in any order, some lacking, some of them nonsense (users tell of their checkpoints)."""
    begins = sorted(draw(st.lists(st.floats(min_value=0.0, max_value=1500.0), min_size=1, max_size=5)))
    found = []
    for number, begin in enumerate(begins):
        told: dict[str, Any] = {name: draw(times) for name in INSTANTS}
        last = number == len(begins) - 1
        ending = draw(st.sampled_from([None, Ending.OVER] if last else [Ending.RETRIED, Ending.REQUEUED]))
        ended = draw(times) if ending is not Ending.OVER else begin + draw(st.floats(min_value=0.0, max_value=500.0))
        nodes = frozenset(NodeName(f"n{one}") for one in range(draw(st.integers(1, 4))))
        found.append(replace(FIRST, restart=number, started=begin, ended=ended, ending=ending, nodes=nodes, **told))
    return found


def total(segments: tuple[Segment, ...]) -> float:
    return sum(one.seconds for one in segments)


@given(runs_of_a_job(), st.floats(min_value=1500.0, max_value=3000.0))
def test_phases_touch_each_other_and_their_sums_are_the_jobs_time(runs: list[Run], now: float) -> None:
    segments = timeline(runs, now)
    last = runs[-1]
    end = max(last.ended or 0.0, last.started) if last.ending is Ending.OVER else now

    assert [one.begin for one in segments[1:]] == [one.end for one in segments[:-1]]
    assert all(one.begin < one.end for one in segments)
    assert all(one.held for one in segments if one.phase is Phase.WORK), "no work without nodes: goodput is 1 at most"
    sums = Sums.of(segments)
    assert sums.all_s == pytest.approx(end - runs[0].started)
    assert sums.all_node_s == pytest.approx(sum(one.node_seconds for one in segments))
    assert 0 <= sums.node_seconds[Phase.WORK] <= sums.all_node_s + 1e-6
    assert sums.held_node_seconds <= sums.all_node_s + 1e-6


@given(runs_of_a_job(), st.floats(min_value=0.0, max_value=2000.0))
def test_what_is_before_and_after_a_moment_is_all_there_is(runs: list[Run], cut: float) -> None:
    segments = timeline(runs, 2000.0)
    parts = total(clip_segments(segments, 0.0, cut)) + total(clip_segments(segments, cut, 1e9))
    assert parts == pytest.approx(total(segments))


@given(runs_of_a_job())
def test_months_add_up_to_the_whole(runs: list[Run]) -> None:
    month = month_window("2026-11")[1] - 500.0
    moved = [replace(one, started=one.started + month, ended=one.ended and one.ended + month) for one in runs]
    ledgers = job_ledgers(moved, ReportWindow(until=month + 3000.0), month + 3000.0)
    whole = sum(one.sums.all_s for one in ledgers)
    assert sum(sums.all_s for sums in by_month(ledgers).values()) == pytest.approx(whole)
    assert set(by_month(ledgers)) <= {"2026-11", "2026-12"}


def test_what_a_change_of_size_threw_away_is_no_work() -> None:
    """An elastic run that was killed before it had saved: its goodput is not 100 %."""
    pauses = (Pause(kept=240.0, stopped=260.0, stepped=265.0, steps=9), Pause(kept=280.0, stopped=280.0, stepped=281.0))
    run = replace(SECOND, pauses=pauses)
    assert spent(run) == {"start": 10.0 + 5.0 + 1.0, "work": 54.0, "redo": 20.0}
    [ledger] = job_ledgers([run], ReportWindow(until=1000.0), 1000.0)
    assert ledger.steps_redone == 9
