"""What the bench says of its samples."""

import pytest

from tests.bench.summary import Sample, percentile, ratio, summarize

NAME = "kill to batch, spare outside"


def sample(seconds: float | None) -> Sample:
    return Sample(scenario=NAME, goal_s=3.0, seconds=seconds)


@pytest.mark.parametrize(
    ("values", "expected"), [([4.0], 4.0), ([1.0, 2.0], 2.0), ([float(n) for n in range(1, 101)], 95.0)]
)
def test_the_95th_percentile_is_a_value_that_was_measured(values: list[float], expected: float) -> None:
    assert percentile(values, 95) == expected


def test_one_slow_run_of_ten_misses_the_goal() -> None:
    (summary,) = summarize([sample(1.0)] * 9 + [sample(9.0)], [])
    assert (summary.median_s, summary.p95_s, summary.is_good) == (1.0, 9.0, False)


def test_a_run_that_did_not_come_back_misses_the_goal() -> None:
    (summary,) = summarize([sample(1.0), sample(None)], [])
    assert (summary.runs, summary.missed, summary.is_good) == (2, 1, False)


def test_plain_slurm_is_compared_by_medians_and_has_no_goal() -> None:
    summaries = summarize([sample(2.0), sample(4.0)], [300.0, 600.0])
    assert ratio(summaries) == pytest.approx(150.0)
    assert summaries[-1].is_good
