"""`steward elastic` and `steward explain` about a run, against a served API whose orders are carried out at once."""

import json
from collections.abc import Iterator
from dataclasses import replace

import click
import pytest
from click.testing import Result

from steward.api.explain_pages import run_report
from steward.cli.elastic import elastic
from steward.model.elastic import Activity, RunPhase
from steward.model.ids import JobId
from steward.policy.plan import plan
from steward.views.explain import explain_job
from tests.builders.cli import Run, as_root
from tests.fakes.api_bench import ApiBench, an_api
from tests.fakes.elastic_world import RUN, ElasticWorld


@pytest.fixture
def api() -> Iterator[ApiBench]:
    with an_api(ApiBench()) as served:
        yield served


@pytest.fixture
def run(api: ApiBench) -> Run:
    """Runs `steward elastic`, or another `command`, as root."""
    root = as_root(api)

    def invoke(*words: str, command: click.Command = elastic) -> Result:
        return root(command, *words)

    return invoke


@pytest.fixture(scope="module")
def grown() -> ElasticWorld:
    world = ElasticWorld()
    world.go(40)
    assert world.run.phase is RunPhase.RUNNING
    return world


def test_without_runs_the_list_says_how_to_start_one(run: Run) -> None:
    assert "sbatch --elastic=8" in run("list").output


def test_the_list_has_a_line_a_run(api: ApiBench, run: Run, grown: ElasticWorld) -> None:
    api.show(grown.picture)
    head, row = run("list").output.splitlines()
    assert head.split()[:4] == ["RUN", "SIZE", "BASE", "SPEC"]
    assert row.split()[:5] == ["7", "5", "2", "5", "running"]
    assert json.loads(run("list", "--json").output)[0]["node_hours_beyond_base"] > 0


def test_one_run_is_shown_with_its_sizes_over_time(api: ApiBench, run: Run, grown: ElasticWorld) -> None:
    api.show(grown.picture)
    text = run("show", "7").output
    assert "has 5 nodes (sizes: 2, 3, 4, 5)" in text
    assert "2 -> 5" in text
    missing = run("show", "8")
    assert missing.exit_code == 1
    assert "steward elastic list" in missing.output


def test_a_size_and_a_pause_are_remembered_and_a_size_that_there_is_not_is_refused(
    api: ApiBench, run: Run, grown: ElasticWorld
) -> None:
    api.show(grown.picture)
    assert run("resize", "7", "3").exit_code == 0
    assert run("pause", "7").exit_code == 0
    assert api.latest is not None
    found = api.latest.memory.elastic[RUN]
    assert (found.wish, found.paused) == (3, True)
    refused = run("resize", "7", "9")
    assert refused.exit_code == 1
    assert "sizes 2, 3, 4, 5" in refused.output
    assert run("resize", "9", "3").exit_code == 1


def test_explain_tells_of_base_and_replica(grown: ElasticWorld) -> None:
    picture = grown.picture
    memory = plan(picture.seen, picture.want, picture.memory, picture.now).memory

    def told(id: JobId) -> str:
        return "\n".join(explain_job(id, picture.seen, picture.want, memory, picture.now))

    assert "grows from 2 to 5 nodes" in told(RUN)
    of_replica = told(grown.replicas()[0].id)
    assert "Replica of elastic run 7" in of_replica
    assert "its run goes on" in of_replica
    assert "never touches" not in of_replica


def test_explain_tells_why_a_run_has_no_coordinator() -> None:
    world = ElasticWorld()
    world.word = replace(world.word, state=Activity.WAITING, alone="its script began too early")
    world.go(2)
    picture = world.picture
    text = "\n".join(explain_job(RUN, picture.seen, picture.want, picture.memory, picture.now))
    assert "stays at its size: it has no coordinator (its script began too early)" in text


def test_the_report_of_a_run_draws_its_size_and_throughput_over_time(api: ApiBench, run: Run) -> None:
    world = ElasticWorld()
    world.go(40)
    world.die(max(world.run.members - world.jobs()[RUN].nodes))
    world.go(30)
    api.show(world.picture)
    assert api.latest is not None

    found = run_report(api.latest, world.run)

    trained = [one for one in found["stretches"] if one["nodes"]]
    assert [one["nodes"] for one in trained[:3]] == [2, 5, 4], "it grew, and lost a node"
    rates = [one["samples_per_s"] for one in trained[:3]]
    assert sorted(rates) == [rates[0], rates[2], rates[1]], "more nodes, more samples a second"
    assert found["picture"][1].startswith("    5 │")
    assert "samples/s" in found["picture"][-1]
