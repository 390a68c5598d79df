"""Every second of a simulated training is in exactly one use."""

import random

import pytest

from steward.simulate.training import NO_FAULT, Habits, Training, Use

HABITS = Habits(nodes=4, interval_s=100.0, save_s=10.0, durable_s=5.0, start_s=60.0)


def trained(until_hit: float) -> Training:
    training = Training(habits=HABITS, began=0.0)
    training.start(3.0)
    training.hit("gpu", 3.0 + until_hit)
    training.end(3.0 + until_hit + 7.0)
    return training


def test_work_since_the_last_save_that_counts_is_done_again() -> None:
    spent = trained(60.0 + 2 * 110.0 + 50.0).spent
    assert spent[Use.START, NO_FAULT] == 60.0
    assert spent[Use.WORK, NO_FAULT] == 200.0
    assert spent[Use.REDO, "gpu"] == 50.0
    assert spent[Use.SAVE, NO_FAULT] == 20.0
    assert spent[Use.DETECT, "gpu"] == 7.0


def test_a_save_counts_only_when_it_is_written() -> None:
    assert trained(60.0 + 110.0 + 4.0).spent[Use.WORK, NO_FAULT] == 0.0
    assert trained(60.0 + 110.0 + 5.0).spent[Use.WORK, NO_FAULT] == 100.0


def test_a_run_that_is_hit_while_it_starts_has_done_nothing() -> None:
    training = trained(20.0)
    assert training.spent[Use.START, NO_FAULT] == 20.0
    assert training.saves == 0
    training.start(100.0)
    training.close(200.0)
    assert training.spent[Use.START, "gpu"] == 60.0  # the second start is the fault's cost
    assert training.spent[Use.WORK, NO_FAULT] == 40.0


@pytest.mark.parametrize("seed", range(20))
def test_no_second_is_lost_or_counted_twice(seed: int) -> None:
    dice, now = random.Random(seed), 0.0
    training = Training(habits=HABITS, began=0.0)
    for _ in range(10):
        now += dice.uniform(0, 300)
        training.start(now)
        now += dice.uniform(0, 1000)
        if dice.random() < 0.7:
            training.hit("gpu", now)
            now += dice.uniform(0, 50)
        training.end(now)
    now += 10.0
    training.close(now)
    assert sum(training.spent.values()) == pytest.approx(now)
