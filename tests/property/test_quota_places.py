"""Where Steward itself makes room: whoever is evicted lets the waiting job start, and nobody goes in vain."""

from collections.abc import Set

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.model.action import RequeueJob, SignalJob
from tests.builders.quota import WEAK, own
from tests.builders.quota_site import a_site, done, runs, waits

JOB = st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("gbb"), st.integers(1, 9000))
REASONS = ("None", "Resources")


@settings(max_examples=60, deadline=None)
@given(st.lists(JOB, max_size=9), st.integers(1, 4), st.integers(1, 3), st.sampled_from(REASONS))
def test_those_who_are_evicted_let_the_job_start(
    jobs: list[tuple[int, int, str, int]], gpus: int, nodes: int, reason: str
) -> None:
    held: list[dict[int, tuple[int, str]]] = [{}, {}, {}]
    for id, (at, size, end, _) in enumerate(jobs, 1):
        if sum(each for each, _ in held[at].values()) + size <= 4:
            held[at][id] = size, end
    owned = sum(size for each in held for size, end in each.values() if end == "g")
    if 12 - owned < gpus * nodes:
        return
    site = a_site(WEAK, own("a", owned), own("b", 12 - owned), machines=3)
    for at, each in enumerate(held, 1):
        for id, (size, end) in each.items():
            site = runs(site, id, "a", size, end, f"n{at}", started=float(jobs[id - 1][3]))
    site, _ = done(waits(site, 99, "b", gpus * nodes, node_count=nodes, reason=reason))
    going = {id for id, memory in site.memory.quota_jobs.items() if memory.yielding}

    def start_without(gone: Set[int]) -> bool:
        free = [4 - sum(size for id, (size, _) in each.items() if id not in gone) for each in held]
        return sum(each >= gpus for each in free) >= nodes

    borrowed = {id for each in held for id, (_, end) in each.items() if end == "b"}
    assert going <= borrowed
    if going:
        assert start_without(going)
        assert not any(start_without(going - {id}) for id in going)
    elif reason == "Resources" or 12 - sum(size for each in held for size, _ in each.values()) < gpus * nodes:
        assert start_without(set()) or not start_without(borrowed)
    _, actions = done(site)
    assert not {each.job for each in actions if isinstance(each, SignalJob | RequeueJob)} - going
