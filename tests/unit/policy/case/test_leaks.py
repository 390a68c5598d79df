"""An idle node whose GRES Slurm counts as used is no free node, and is told with its cure."""

from dataclasses import replace

import pytest

from steward.adapters.slurm.text_nodes import gres_used
from steward.model.ids import NodeName
from steward.model.job import JobState
from steward.policy.draft import Draft
from steward.policy.leaks import CURE
from tests.builders.picture import Picture, a_cluster

N1 = NodeName("n1")


def leaking() -> Picture:
    picture = a_cluster(3)
    return picture.see(gres_used={N1: "gpu:8"}, gres_at=picture.now - 30)


def leaks_of(picture: Picture) -> set[NodeName]:
    return set(Draft(picture.seen, picture.want, picture.memory, picture.now).overview.leaks)


def told(picture: Picture) -> list[str]:
    return [event.text for event in picture.plan().events if event.kind == "node.gres_leak"]


def test_it_is_told_once_with_its_cure_and_again_when_it_comes_back() -> None:
    (text,) = told(leaking())
    assert "n1" in text
    assert CURE in text
    later = leaking().then(40)
    assert told(later) == []
    assert told(later.see(gres_used={}).then(40).see(gres_used={N1: "gpu:8"})) != []


def test_it_is_no_free_node() -> None:
    picture = leaking()
    overview = Draft(picture.seen, picture.want, picture.memory, picture.now).overview
    assert N1 not in overview.idle_of("main")
    assert N1 not in overview.free_among(frozenset({N1}))


def test_a_node_with_a_job_or_one_that_ended_lately_leaks_nothing() -> None:
    picture = leaking()
    assert leaks_of(picture) == {N1}
    runs = picture.job(on=("n1",))
    assert leaks_of(runs) == set()
    ended = runs.change_job(state=JobState.COMPLETED, ended=picture.now - 10)
    assert leaks_of(ended) == set()
    assert leaks_of(runs.change_job(state=JobState.COMPLETED, ended=picture.now - 100)) == {N1}
    assert leaks_of(replace(runs).change_job(flags=frozenset({"COMPLETING"}), state=JobState.COMPLETED)) == set()


def test_what_sinfo_prints_is_read() -> None:
    lines = (
        "gpu:0|idle|n[1-2]|",
        "gpu:(null):8(IDX:0-7)|idle|n3|",
        "gpu:a100:4(IDX:0,2-4),shard:0|planned|b[09-10]|",
        "|idle|x|",
        "N/A|idle|y|",
        "gpu:l4:0(IDX:N/A),mps:l4:100(0/0)|idle*|m1|",
    )
    assert gres_used("\n".join(lines)) == {"n3": "gpu:8", "b09": "gpu:a100:4", "b10": "gpu:a100:4", "m1": "mps:l4:100"}


@pytest.mark.parametrize("state", ["allocated", "allocated+", "mixed", "mixed-", "completing", "draining", "draining*"])
def test_what_jobs_use_is_not_told_whenever_they_are_read(state: str) -> None:
    """Two looks may see two jobs, and the first one may wait again by the time that jobs are read."""
    assert gres_used(f"gpu:8|{state}|n1|") == {}


def test_a_suspended_job_has_its_gres_on_an_idle_node() -> None:
    picture = leaking().job(on=("n1",)).change_job(state=JobState.SUSPENDED)
    assert leaks_of(picture) == set()
