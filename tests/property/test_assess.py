"""Whatever sacct and sacctmgr print: no crash, and nothing is counted twice or lost."""

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from steward.assess.answer import answer
from steward.assess.estimate import ASSUMPTIONS, draws, medians
from steward.assess.history import History
from steward.assess.lines import lines
from steward.assess.log import LogFacts
from steward.assess.page import page
from steward.assess.records import EVENT_FIELDS, JOB_FIELDS, JobRun, Rows, job_runs, node_events, node_names, shapes
from steward.model.node_names import unfold
from tests.builders.assessed import BY_KEY, DAY_S, MARK, SINCE, SITE, a_past, a_run, an_event

TEXT = st.text(max_size=30)
WORDS = st.one_of(
    TEXT,
    st.sampled_from(
        ["Unknown", "None", "NODE_FAIL", "FAILED", "TIMEOUT", "REQUEUED", "COMPLETED", "n[1-4]", "n1", "DOWN*"]
    ),
    st.integers(-1, 1 << 40).map(str),
    st.integers(SINCE, SITE.until).map(str),
)
STATES = ("COMPLETED", "NODE_FAIL", "FAILED", "TIMEOUT", "REQUEUED", "BOOT_FAIL", "PREEMPTED", "CANCELLED")


def rows_of(fields: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    row = st.lists(WORDS, min_size=len(fields), max_size=len(fields)).map(MARK.join)
    return st.lists(st.one_of(row, TEXT), max_size=20).map(lambda found: [MARK.join(fields), *found])


@given(rows_of(JOB_FIELDS), rows_of(EVENT_FIELDS), st.lists(TEXT, max_size=5), st.lists(TEXT, max_size=5))
def test_no_text_is_too_odd(jobs: list[str], events: list[str], sizes: list[str], log: list[str]) -> None:
    site = SITE._replace(shapes=shapes(sizes))
    history = History(site, node_events(Rows(events, EVENT_FIELDS)), LogFacts(log))
    for run in job_runs(Rows(jobs, JOB_FIELDS)):
        history.add(run)
    found = answer(history.finish(), BY_KEY, 1.0, [])
    assert "\n".join(lines(found))
    assert page(found).endswith("</html>\n")


def a_site() -> st.SearchStrategy[list[JobRun]]:
    run = st.builds(
        lambda job, state, start, seconds, user, node, nodes: a_run(
            job, state, start, seconds, user=user, partition=user, nodelist=f"n{node}", nodes=nodes
        ),
        st.integers(1, 6),
        st.sampled_from(STATES),
        st.integers(0, 80 * DAY_S),
        st.integers(0, 9 * DAY_S),
        st.sampled_from("ab"),
        st.integers(1, 3),
        st.integers(1, 4),
    )
    return st.lists(run, max_size=25)


@given(a_site(), st.lists(st.integers(0, 89 * DAY_S), max_size=5))
def test_what_setbacks_cost_is_the_same_sum_by_every_key(runs: list[JobRun], downs: list[int]) -> None:
    past = a_past(*runs, events=[an_event(f"n{1 + at % 3}", start=at) for at in downs])
    found = answer(past, BY_KEY, None, [])
    assert found["runs"] == len(runs)
    assert sum(count for count, _ in past.states.values()) == len(runs)
    assert len({id(one.run) for one in past.setbacks}) == len(past.setbacks)
    for way in ("user", "partition", "node"):
        rows = found[f"by_{way}"]
        assert sum(one["count"] for one in rows) == len(past.setbacks)
        assert abs(sum(one["node_hours"] for one in rows) - found["lost_node_hours"]) < 0.1 * (1 + len(rows))
    for one in (*found["costs"], *found["savings"], *found["saved"].values()):
        assert 0 <= one["low"] <= one["middle"] <= one["high"]
    lost = sum(one.weight * one.run.seconds for one in past.setbacks) / 3600
    assert found["lost_node_hours"] <= lost + 1


@given(st.text(alphabet="n0123456789[]-, ", max_size=16))
def test_lists_of_nodes_are_read_as_by_the_rest_of_steward(text: str) -> None:
    try:
        names = unfold(text)
    except ValueError:
        names = ()
    assume(len(names) <= 65_536 and not re.search(r"\d{5}", text))
    assert node_names(text) == names


def test_an_assumption_lies_between_its_ends_in_eight_of_ten_draws() -> None:
    drawn = draws(BY_KEY)
    for one in ASSUMPTIONS:
        inside = sum(one.low <= draw[one.key] <= one.high for draw in drawn) / len(drawn)
        assert 0.7 < inside < 0.9, one.key
        assert one.low < medians(BY_KEY)[one.key] < one.high
