"""The figures of the capacity bench: which goals were missed, and what the table says."""

from collections import Counter
from typing import Any

from tests.bench.capacity_summary import Phase, Quiet, as_json, misses, share

QUIET = Quiet(slots=2001, plans=(0.020, 0.025, 0.030))


def a_phase(**fields: Any) -> Phase:
    default: dict[str, Any] = {
        "name": "grow to 2000",
        "began": 0.0,
        "ended": 50.0,
        "turns": (),
        "orders": (0.1,),
        "commands": Counter({"read nodes": 200, "drain": 20, "resume": 22}),
        "launches": 1000,
        "ends": 0,
        "end_calls": 0,
        "needed": 1000,
        "reads": {"DescribeCluster": (0.02,) * 99 + (0.09,)},
    }
    return Phase(**{**default, **fields})


def test_a_bench_that_reached_all_goals_misses_none() -> None:
    assert misses([a_phase()], QUIET) == []


def test_a_launch_too_many_and_an_end_too_many_are_told() -> None:
    assert "1001 launches" in misses([a_phase(launches=1001)], QUIET)[0]
    assert "1 ends for +1000" in misses([a_phase(ends=1)], QUIET)[0]
    assert misses([a_phase(needed=-1900, launches=0, ends=1900)], QUIET) == []


def test_slow_reads_and_slow_quiet_plans_are_told() -> None:
    slow = a_phase(reads={"ListClusterNodes": (0.02,) * 90 + (0.2,) * 10})
    assert misses([slow], QUIET) == ["grow to 2000: ListClusterNodes p99 200 ms, goal 100"]
    assert "took 60 ms" in misses([a_phase()], Quiet(slots=2001, plans=(0.06,)))[0]


def test_slurms_reads_and_writes_are_counted_apart() -> None:
    figures = as_json([a_phase()], QUIET)["phases"]["grow to 2000"]
    assert (figures["Slurm reads"], figures["Slurm writes"]) == ("200", "42")


def test_a_share_is_the_nearest_rank() -> None:
    assert [share([4.0, 1.0, 3.0, 2.0], part) for part in (0.5, 0.99, 1.0)] == [2.0, 4.0, 4.0]
