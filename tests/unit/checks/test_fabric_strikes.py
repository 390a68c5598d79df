"""Strikes: what holds however links go down."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from steward.checks.check import Past
from steward.checks.fabric import ib_ports
from steward.checks.fabric.links import Strikes
from steward.model.health import Advice, Severity
from tests.builders.looks import Looks

STRIKES = Strikes(downs=ib_ports.DOWNS, trips=ib_ports.TRIPS)
FACTS = Looks(ib_ports.FLAP).facts
PORT = "mlx5_0/1"
HOUR_S, DAY_S = 3600.0, 86400.0
LOOKS = st.lists(st.tuples(st.floats(1, 20_000), st.integers(0, 5)), max_size=60)
"""(seconds since the look before, downs since then)."""


def lived(looks: list[tuple[float, int]]) -> list[Past]:
    """What is noted after each look."""
    past, seen = Past(now=1e9), []
    for pause_s, downs in looks:
        past = dataclasses.replace(past, now=past.now + pause_s)
        past = dataclasses.replace(past, notes=STRIKES.note({PORT: downs}, FACTS, past))
        seen.append(past)
    return seen


def is_bad(past: Past) -> bool:
    verdict = STRIKES.judge(FACTS, past, Severity.DEGRADED)
    return verdict is not None and verdict.advice is Advice.REPLACE


@given(looks=LOOKS)
def test_a_day_without_a_down_frees_the_port(looks: list[tuple[float, int]]) -> None:
    for past in lived([*looks, (DAY_S, 0)])[-1:]:
        assert not is_bad(past)


@given(looks=LOOKS)
def test_nothing_is_bad_with_less_than_twelve_downs_in_a_day(looks: list[tuple[float, int]]) -> None:
    seen = lived(looks)
    for past in filter(is_bad, seen):
        first = past.now - DAY_S - HOUR_S  # the downs of the first trip may be an hour older than it
        downs = sum(n for (_, n), at in zip(looks, seen, strict=True) if first < at.now <= past.now)
        assert downs >= 12


@given(looks=LOOKS)
def test_links_that_never_go_down_are_never_judged(looks: list[tuple[float, int]]) -> None:
    for past in lived([(pause_s, 0) for pause_s, _ in looks]):
        assert past.notes == {}
        assert STRIKES.judge(FACTS, past, Severity.DEGRADED) is None


@given(looks=LOOKS)
def test_notes_stay_small(looks: list[tuple[float, int]]) -> None:
    assert all(len(times) <= 32 for past in lived(looks) for times in past.notes.values())
