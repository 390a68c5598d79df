"""Deep checks on a real Slurm: nodes that no job uses are loaded and measured, and users come first."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from steward_bed.bed import Bed
from steward_bed.beds import reset
from steward_bed.faults import FaultKind
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.story import Story

OURS = "steward-deep-"


@pytest.fixture(scope="module")
def deep_bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """n1..n4; a repaired machine must pass a deep check before it serves."""
    settings = {"deep": {"budget_s": 30.0, "on_start": ["InstanceStress"]}}
    yield from brought_up(request, nodes=4, steward=True, settings=settings)


@pytest.fixture
def deep_story(deep_bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    reset(deep_bed)
    with own_place(deep_bed, request) as place:
        yield Story(deep_bed, place)


def reservations(story: Story) -> list[str]:
    answer = story.bed.run(["scontrol", "--oneliner", "show", "reservations"], check=False).text
    return [line.split()[0] for line in answer.splitlines() if OURS in line]


def partitions(story: Story) -> list[str]:
    answer = story.bed.run(["scontrol", "--all", "--oneliner", "show", "partitions"]).text
    return [line.split()[0] for line in answer.splitlines() if OURS in line]


def runs(story: Story) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = story.get("/v1/checks/deep")
    return found


def results(run: dict[str, Any]) -> dict[str, str]:
    return {name: node["result"] for name, node in run["nodes"].items()}


def ask(story: Story, *nodes: str) -> str:
    answer = story.bed.run(["steward", "--json", "check", "deep", *nodes]).text
    return str(json.loads(answer)["runs"][0])


def the_run(story: Story, id: str) -> dict[str, Any]:
    return next(run for run in runs(story) if run["id"] == id)


def has_begun(run: dict[str, Any]) -> bool:
    """Its runner says on each node what it does. Before that, Slurm may lose the signal that ends its job."""
    told = {node["progress"] for node in run["nodes"].values()}
    return run["state"] == "running" and not told & {"", "running"}


def nothing_is_left(story: Story) -> bool:
    return not reservations(story) and not partitions(story)


def test_idle_nodes_pass_a_deep_check_that_was_asked_for_and_nothing_is_left(deep_story: Story) -> None:
    story = deep_story
    done = story.bed.run(["steward", "check", "deep", "n[1-2]", "--kind", "InstanceConnectivity", "--wait"])

    assert "Passed" in done.text
    assert results(runs(story)[0]) == {"n1": "Passed", "n2": "Passed"}
    story.wait("nothing is left", lambda: nothing_is_left(story))
    shown = story.bed.run(["steward", "check", "show", runs(story)[0]["id"]]).text
    assert "tcp.bandwidth" in shown


def test_a_waiting_job_that_needs_the_nodes_runs_first(deep_story: Story) -> None:
    story = deep_story
    id = ask(story, "n3", "n4")
    story.wait("it runs", lambda: has_begun(the_run(story, id)))
    job = story.submit(story.script("all.sh", "sleep 2\n"), "-N4", "--exclusive")
    story.wait_state(job, ("RUNNING", "COMPLETED"))

    assert the_run(story, id)["state"] != "done"
    assert story.wait_end(job).state == "COMPLETED"
    story.wait("it came after the job", lambda: the_run(story, id)["state"] == "done", 90.0)
    assert "Failed" not in results(the_run(story, id)).values()
    story.wait("nothing is left", lambda: nothing_is_left(story))


def test_a_busy_node_keeps_its_job_while_the_check_waits(deep_story: Story) -> None:
    story = deep_story
    job = story.submit(story.script("one.sh", f"while [ ! -e {story.dir}/go ]; do sleep 0.1; done\n"), "-w", "n1")
    story.wait_state(job, "RUNNING")
    id = ask(story, "n1")
    time.sleep(4.0)

    assert the_run(story, id)["state"] == "waiting"
    assert reservations(story) == []
    assert story.job(job).state == "RUNNING"
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    story.wait("it was checked", lambda: the_run(story, id)["state"] == "done", 60.0)


def test_a_replaced_machine_serves_after_its_deep_check(deep_story: Story) -> None:
    story = deep_story
    hurt_at = story.hurt(FaultKind.KILL_NODE, "n2")
    story.wait("its deep check runs", lambda: any(r["cause"] == "on start" for r in runs(story)), 60.0)
    case = story.wait_case("n2", "closed", 120.0, since=hurt_at)

    mine = [run for run in runs(story) if run["cause"] == "on start" and run["asked"] >= hurt_at]
    assert len(mine) <= 2  # one that could not tell is made once more
    run = max(mine, key=lambda run: run["asked"])
    assert results(run)["n2"] in ("Passed", "Inconclusive")
    assert run["ended"] <= case["returned"]
    story.wait("it serves", lambda: story.node_state("n2") == "IDLE")
    story.wait("nothing is left", lambda: nothing_is_left(story))
