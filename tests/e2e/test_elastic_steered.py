"""A person steers an elastic run by the command line: how large it may be, and whether it grows."""

import pytest

from steward.adapters.process import Failed
from tests.e2e.elastic_runs import LIVE, a_run
from tests.e2e.story import Story

pytestmark = pytest.mark.timeout(300)
FEW = "--exclude=n5,n6"


def elastic(story: Story, *words: object) -> str:
    """What `steward elastic ...` says."""
    return story.bed.run(["steward", "elastic", *map(str, words)]).text


def refusal(story: Story, *words: object) -> str:
    """What it says where it does nothing."""
    with pytest.raises(Failed) as failed:
        elastic(story, *words)
    return str(failed.value)


def test_a_person_makes_a_run_smaller_keeps_it_so_and_lets_it_grow_again(story: Story) -> None:
    run = a_run(story, "-N2", FEW, sizes="4")
    run.trains_at(2)
    run.trains_at(4, after=1)

    assert f"Run {run.job}: at most 3 nodes" in elastic(story, "resize", run.job, 3)
    run.trains_at(3, after=2)
    story.wait("one node is given back", lambda: len(run.replicas(LIVE)) == 1, 60.0)
    run.goes_on(steps=30)
    assert run.sizes[-1] == 3, "an idle node does not make it larger than a person wants"

    assert f"Run {run.job} does not grow" in elastic(story, "pause", run.job)
    elastic(story, "resize", run.job, 0)
    story.wait("it is shown as paused", lambda: f"{run.job}" in elastic(story, "list") and run.shown()["paused"], 10.0)
    run.goes_on(steps=30)
    assert run.sizes[-1] == 3
    assert "paused" in elastic(story, "show", run.job)

    elastic(story, "pause", run.job, "--off")
    run.trains_at(4, after=3)
    assert run.lost_steps() == 0


def test_what_cannot_be_asked_of_a_run_is_refused_in_one_line_and_changes_nothing(story: Story) -> None:
    run = a_run(story, "-N2", FEW, sizes="3")
    run.trains_at(3, after=1)
    said = [refusal(story, "resize", run.job, 1), refusal(story, "resize", 999999, 2), refusal(story, "pause", 999999)]
    assert all(text.count("Error: ") == 1 for text in said), said
    run.goes_on()
    assert run.sizes[-1] == 3


def test_a_job_that_waits_has_the_nodes_of_a_run_that_a_person_makes_smaller_while_its_replicas_come_and_go(
    story: Story,
) -> None:
    run = a_run(story, "-N2", FEW, sizes="4")
    run.trains_at(2)
    story.wait("its replicas begin", lambda: len(run.replicas()) >= 1, 30.0)
    mine = story.submit(story.script("sleep.sh", "sleep 300\n"), "-N2", FEW, "--exclusive")
    story.bed.run(["scancel", str(min(run.replicas()))])
    elastic(story, "resize", run.job, 2)
    story.wait_state(mine, "RUNNING", 30.0)
    assert run.replicas(LIVE) == {}
    run.goes_on()
    assert run.sizes[-1] == 2
    assert "steward" not in story.bed.run(["scontrol", "show", "reservation"], check=False).text
    assert story.job(run.job).state == "RUNNING"
