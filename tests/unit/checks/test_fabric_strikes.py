"""Strikes: what holds however links go down."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from steward.checks.check import Past
from steward.checks.fabric import ib_ports
from steward.checks.fabric.links import Strikes
from steward.model.health import Severity
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


def is_locked(past: Past) -> bool:
    return f"{PORT} locked" in past.notes


@given(looks=LOOKS)
def test_a_lock_is_never_lifted(looks: list[tuple[float, int]]) -> None:
    locks = [is_locked(past) for past in lived(looks)]
    assert locks == sorted(locks)


@given(looks=LOOKS)
def test_nothing_is_locked_with_less_than_twelve_downs_in_a_day(looks: list[tuple[float, int]]) -> None:
    seen = lived(looks)
    for number, past in enumerate(seen):
        if is_locked(past) and (number == 0 or not is_locked(seen[number - 1])):
            first = past.now - DAY_S - HOUR_S  # the downs of the first trip may be an hour older than it
            downs = sum(n for (_, n), at in zip(looks, seen, strict=True) if first < at.now <= past.now)
            assert downs >= 12


@given(looks=LOOKS)
def test_links_that_never_go_down_are_never_judged(looks: list[tuple[float, int]]) -> None:
    for past in lived([(pause_s, 0) for pause_s, _ in looks]):
        assert past.notes == {}
        assert STRIKES.judge(past, Severity.DEGRADED) is None


@given(looks=LOOKS)
def test_notes_stay_small(looks: list[tuple[float, int]]) -> None:
    assert all(len(times) <= 32 for past in lived(looks) for times in past.notes.values())
