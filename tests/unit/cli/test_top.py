"""`steward top`, events of a job, jobs of a user: what is asked for, with folded lists of nodes."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from steward.cli import main
from steward.model.events import Event
from steward.model.ids import JobId
from tests.builders.picture import Picture, a_cluster
from tests.builders.want import but
from tests.fakes.api_bench import ApiBench, an_api


def steward(api: ApiBench, *words: str) -> str:
    found = CliRunner().invoke(main, ["--url", api.url, *words])
    assert found.exit_code == 0, found.output
    return found.output


def with_a_lost_node_and_a_job() -> Picture:
    return a_cluster().job().opted_in().lost("n2")


def test_it_shows_what_the_status_page_shows(api: ApiBench) -> None:
    api.show(with_a_lost_node_and_a_job())
    api.store.add_events([Event(at=1_700_000_000.0, kind="node.lost", text="n2 is lost")])
    shown = steward(api, "top", "--once")
    assert [line for line in shown.splitlines() if line != line.rstrip()] == []
    assert "1 open repair, 1 job with --auto-resume" in shown
    for part in ("5 of 6 agents", "fine 5: n[1,3-6]", "lost 1: n2", "Repairs", "n[1-3]", "node.lost"):
        assert part in shown


def test_jobs_are_chosen_by_user_and_state(api: ApiBench) -> None:
    api.show(with_a_lost_node_and_a_job())
    assert "RUNNING" in steward(api, "jobs", "--state", "running")
    assert "No such job" in steward(api, "jobs", "--state", "pending")
    assert "No such job" in steward(api, "jobs", "--user", "nobody-at-all")


@pytest.mark.parametrize(
    ("words", "found"), [(["--job", "7"], ["b"]), (["--since", "1h"], ["c"]), ([], ["a", "b", "c"])]
)
def test_events_are_chosen_by_job_and_age(api: ApiBench, words: list[str], found: list[str]) -> None:
    api.store.add_events(
        [
            Event(at=1.0, kind="a", text="x"),
            Event(at=1.0, kind="b", text="x", job=JobId(7)),
            Event(at=32_000_000_000.0, kind="c", text="x"),
        ]
    )
    assert [line.split()[3] for line in steward(api, "events", *words).splitlines()] == found


def test_events_of_a_job_that_is_none_are_refused_in_one_line(api: ApiBench) -> None:
    found = CliRunner().invoke(main, ["--url", api.url, "events", "--job", "x"])
    assert found.exit_code == 2
    assert "x is no job: use 17, 17_1 of an array, 17+1 of a heterogeneous job" in found.output


def test_a_job_that_slurm_forgot_keeps_its_name_and_nodes(api: ApiBench) -> None:
    api.show(a_cluster().job(name="train").opted_in().then(1.0).then(1.0).see(jobs={}))
    assert "train" in steward(api, "jobs")
    assert "n[1-3]" in steward(api, "jobs")
    assert '"train", last on n[1-3]' in steward(api, "explain", "7")


def test_where_resuming_is_off_it_is_not_said_that_the_job_did_not_ask() -> None:
    bench = ApiBench()
    bench.want = replace(bench.want, resume=but(bench.want.resume, enabled=False))
    with an_api(bench) as api:
        api.show(a_cluster().job())
        assert "Resuming is off on this cluster" in steward(api, "explain", "7")
