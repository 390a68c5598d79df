"""The bound on what a property test may cost."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.conftest import bounded


def spend(cpu_s: float) -> None:
    until = time.process_time() + cpu_s
    while time.process_time() < until:
        pass


def test_an_example_that_fails_when_the_bound_is_reached_is_told_and_not_called_flaky() -> None:
    """The failure itself uses up the time: what Hypothesis repeats comes after the bound."""
    seen: list[int] = []

    def body(number: int) -> None:
        seen.append(number)
        if number == 7:
            spend(0.02)
            raise AssertionError("seven is refused")

    search = given(number=st.just(7))(body)
    search.hypothesis.inner_test = bounded(body, always=0, cpu_s=0.01)  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match="seven is refused"):
        settings(database=None)(search)()


def test_after_the_bound_examples_that_passed_until_then_are_no_longer_looked_at() -> None:
    seen: list[int] = []

    def body(number: int) -> None:
        seen.append(number)
        spend(0.03)

    within = bounded(body, always=1, cpu_s=0.05)
    for number in range(10):
        within(number)
    assert len(seen) == 2
