"""What the views of the pages choose and say: nodes by name, state, check and user; places; the last 24 hours."""

from dataclasses import replace
from typing import Any

import pytest

from steward.api.page.charts import day_of_node, hourly, job_time, open_counts
from steward.api.page.jobs import jobs
from steward.api.page.look import Look, Paged, PageRequest
from steward.api.page.nodes import node, nodes, place
from steward.api.page.overview import overview
from steward.api.page.trouble import check, events
from steward.model.ids import JobId
from steward.model.node_names import unfold
from tests.builders.page_site import HOUR, a_busy_site, told_of
from tests.builders.picture import T0, Picture, a_cluster, n
from tests.fakes.api_bench import ApiBench
from tests.fakes.page_bench import show_as_it_is


def a_look(picture: Picture) -> Look:
    bench = ApiBench()
    bench.want = picture.want
    show_as_it_is(bench, picture)
    bench.store.add_events(told_of())
    assert bench.latest is not None
    return Look(source=bench.source(), snapshot=bench.latest, now=picture.now)


@pytest.fixture(scope="module")
def look() -> Look:
    return a_look(a_busy_site(120))


def asked(name: str = "", **query: str) -> PageRequest:
    return PageRequest.of({"name": name}, query)


def found(look: Look, **query: str) -> list[str]:
    return [row.name for row in nodes(look, asked(**query)).nodes.rows]


def test_nodes_are_chosen_by_name_state_check_user_and_place(look: Look) -> None:
    assert found(look, q="n[7-8],n11") == ["n11", "n7", "n8"]
    assert found(look, q="N11") == ["n11", *(f"n11{digit}" for digit in range(10))]
    assert found(look, state="wrong") == ["n3", "n16", "n5", "n11"]
    assert found(look, state="drained by admin") == []
    assert found(look, state="foreign") == ["n9"]
    assert found(look, check="gpu.ecc") == ["n3"]
    assert found(look, q="n[1-60000][1-60000]") == [], "a list of so many is not written out"
    assert found(look, place="cpu, debug") == [f"n{number}" for number in range(115, 121)]
    assert found(look, user="nobody-of-this-name", place="gpu") == []
    uid = look.snapshot.seen.jobs[JobId(111)].user_id
    user = next(one.user for one in node(look, asked("n45")).jobs if one.id == JobId(111))
    assert {"n45", "n46", "n47", "n48"} <= set(found(look, user=user)), uid


def test_the_jobs_that_come_back_are_first_and_times_are_in_hours(look: Look) -> None:
    rows = jobs(look, asked()).jobs.rows
    assert [row.id for row in rows][:3] == [100, 111, 110]
    assert overview(look, asked()).jobs[0].id == JobId(100)
    assert rows[1].time.spent == "start 90 s, work 6 h"


def test_the_most_urgent_nodes_come_first_and_long_lists_have_pages(look: Look) -> None:
    first = nodes(look, asked())
    assert [row.word for row in first.nodes.rows[:3]] == ["degraded", "held", "suspect"]
    every = Paged.of(list(range(450)), asked(q="x", page="2"))
    assert (every.rows[0], every.rows[-1], every.total) == (200, 399, 450)
    assert (every.before, every.after) == ("?q=x&page=1", "?q=x&page=3")
    assert Paged.of(list(range(450)), asked(page="99")).rows[-1] == 449
    assert Paged.of([], asked()).after == ""


@pytest.mark.parametrize("page", ["", "-1", "x", "1e9", "0", "99999999", "²"])
def test_a_page_that_is_no_number_is_the_first(page: str) -> None:
    assert asked(page=page).page == 1


def test_what_is_asked_for_is_bounded_and_printable() -> None:
    said = asked(q="a\u202e" * 500, other="x")
    assert len(said.word("q")) == 100
    assert said.word("q").isprintable()
    assert asked(q="größe-学習").word("q") == "größe-学習"
    assert said.word("other") == ""


def test_cells_stand_in_the_order_of_their_list_of_names(look: Look) -> None:
    gpu = place("gpu", look.places["gpu"], look)
    order = unfold(gpu.names)
    cells = gpu.cells.replace("</i>", "").replace("</a>", "").split("<")
    starts = [cell for cell in cells if cell.startswith(("i", "a "))]
    assert len(starts) == len(order) == gpu.total == 90
    named = {name: cell for name, cell in zip(order, starts, strict=True) if cell.startswith("a ")}
    assert sorted(named) == ["n11", "n16", "n3", "n5", "n7", "n9"]
    assert all(f'id="cell-{name}"' in cell for name, cell in named.items())
    assert gpu.odd == 6


def test_of_many_nodes_that_are_not_fine_only_the_first_are_named() -> None:
    picture = a_cluster(300)
    for number in range(1, 101):
        picture = picture.drained(f"n{number}", "power")
    many = a_look(picture)
    shown = place("main", many.places["main"], many)
    assert (shown.odd, shown.cells.count("<a "), shown.cells.count('<i class="foreign">')) == (100, 60, 40)


def test_names_that_are_no_list_have_cells_all_the_same() -> None:
    picture = a_cluster(2)
    odd = replace(picture.seen.nodes[n("n1")], name=n("a b?c"))
    shown_by = a_look(picture.see(nodes={**picture.seen.nodes, odd.name: odd}))
    shown = place("main", shown_by.places["main"], shown_by)
    assert (shown.total, shown.names) == (3, "")
    assert 'href="/node/a%20b%3Fc"' in shown.cells


def test_a_node_has_its_checks_jobs_repairs_and_events(look: Look) -> None:
    n3, n7 = node(look, asked("n3")), node(look, asked("n7"))
    assert [(one["id"], one["outcome"]) for one in n3.checks] == [("gpu.ecc", "failed"), ("disk.root", "unknown")]
    assert n3.checks[0]["text"] == "14 uncorrectable errors on GPU 3"
    assert {one["id"] for one in n3.quiet} >= {"clock", "memory"}
    assert [case.id for case in n7.cases] == ["c9-1"]
    assert [job.id for job in n7.jobs] == [101, 100], "the one that is there, and the one that lost it"
    assert [event.kind for event in n7.events] == ["case.opened", "node.fault"]
    assert [len(lane.bars) for lane in n7.lanes] == [1, 2, 2]


def test_a_check_names_the_nodes_on_which_it_fails(look: Look) -> None:
    one = check(look, asked("gpu.ecc"))
    assert [(row.node, row.severity) for row in one.failing.rows] == [("n3", "fatal")]
    assert [row.node for row in check(look, asked("disk.root")).unknown] == ["n3"]


def test_events_are_chosen_by_node_kind_and_level(look: Look) -> None:
    def kinds(**query: str) -> list[Any]:
        return [event.kind for event in events(look, asked(**query)).events.rows]

    assert kinds(node="n7") == ["case.opened", "node.fault"]
    assert kinds(level="error") == ["node.fault"]
    assert kinds(kind="case.") == ["case.opened", "case.closed"]


def test_boxes_say_how_many_more_there_are() -> None:
    picture = a_cluster(40).lost(*(f"n{number}" for number in range(1, 21)))
    wrong, _, _ = overview(a_look(picture), asked()).boxes
    assert (len(wrong.lines), wrong.rest, wrong.more) == (8, 12, "/nodes?state=wrong")


def test_the_counts_of_a_day_are_of_what_was_open_then() -> None:
    spans = [(T0 - 30 * HOUR, T0 - 23.9 * HOUR), (T0 - 2 * HOUR, T0 - HOUR), (T0 - 1.5 * HOUR, None)]
    counts = open_counts("out", [*spans, (T0 - 50 * HOUR, T0 - 40 * HOUR)], T0).counts
    assert (counts[0], counts[1], counts[88], counts[-5], counts[-1]) == (1, 0, 1, 2, 1)
    hours = hourly("told", [T0 - 25 * HOUR, T0 - 1, T0, T0 - 23.5 * HOUR], T0)
    assert (hours.counts[0], hours.counts[-1], sum(hours.counts)) == (1, 2, 3)
    assert len(hours.bars) == 2


def test_a_job_without_a_run_has_no_time_and_a_node_without_history_has_empty_lanes() -> None:
    assert job_time((), None, T0).bars == ()
    assert [lane.bars for lane in day_of_node((), (), (), T0)] == [(), (), ()]
