"""The figures of the scale bench: what the table says, and which goals were missed."""

import io
from dataclasses import replace

from rich.console import Console

from tests.bench.scale_summary import Size, as_json, as_table, misses

SMALL = Size(
    nodes=6,
    jobs=0,
    recoveries=(0.3, 0.4),
    idle_percent=1.0,
    rss_mib=100.0,
    rpcs={"REQUEST_NODE_INFO": 0.2, "REQUEST_JOB_INFO": 0.2},
    status_s=(0.2, 0.25, 0.2),
    pages_s={"/v1/status": (0.01,), "/v1/nodes": (0.02,)},
    drain_s=None,
)
LARGE = replace(SMALL, nodes=10_000, jobs=5_000, recoveries=(0.4, 0.48), drain_s=0.08)


def shown(*sizes: Size) -> str:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(as_table(sizes))
    return console.export_text()


def test_a_site_that_costs_as_much_as_an_empty_one_misses_nothing() -> None:
    assert misses([SMALL, LARGE]) == []


def test_a_recovery_is_measured_against_the_first_size() -> None:
    assert misses([SMALL, replace(LARGE, recoveries=(0.4, 0.53))]) == [
        "10,000 nodes, 5,000 jobs: kill to tasks, p95, s 0.53, goal 0.48"
    ]


def test_a_run_that_did_not_come_back_is_told() -> None:
    assert any("runs that did not come back 1" in line for line in misses([replace(SMALL, recoveries=(0.3, None))]))


def test_each_cost_has_its_goal() -> None:
    costly = replace(
        LARGE, idle_percent=4.0, rss_mib=160.0, rpcs={"ANY": 1.5}, status_s=(0.5,), pages_s={"/": (0.4,)}, drain_s=0.2
    )
    assert len(misses([SMALL, costly])) == 6


def test_new_jobs_that_came_are_named_beside_those_that_were_there() -> None:
    busy = replace(LARGE, new_jobs=20, recoveries=(0.4, 0.53))
    assert "20 new a minute" in shown(SMALL, busy)
    assert misses([SMALL, busy])[0].startswith("10,000 nodes, 5,000 jobs, 20 new a minute: kill to tasks, p95")


def test_the_table_has_every_figure_and_its_ratio() -> None:
    text = shown(SMALL, LARGE)
    assert "0.40 (1.3)" in text
    assert "1.2 times" in text
    assert "drain of 750 nodes" in text


def test_what_was_not_measured_is_null_in_json() -> None:
    found = as_json([SMALL])
    assert found["figures"]["6 nodes, 0 jobs"]["drain of 750 nodes, s"] is None
    assert found["sizes"][0]["drain_s"] is None
