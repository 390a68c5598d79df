"""`steward report` and `steward jobs history`: what people see, and what programs may rely on."""

import json
import re
from dataclasses import replace

import pytest

from steward.api.report_pages import report_page
from steward.model.memory import Memory
from tests.builders.cli import steward
from tests.builders.ledger import BEGIN, JOB, a_memory
from tests.fakes.api_bench import ApiBench
from tests.fakes.elastic_world import ElasticWorld


@pytest.fixture
def ledger(api: ApiBench) -> ApiBench:
    """Slurm and the head's memory have forgotten the job."""
    api.store.commit(a_memory(), [], [])
    api.store.commit(Memory(), [], [])
    api.clock.at = BEGIN + 9100
    return api


def test_a_report_of_a_job_says_where_its_time_went_and_what_each_incident_took(ledger: ApiBench) -> None:
    found = steward(ledger, "report", "7").output
    assert "runs      3, resumed 2 times; steps made again: 50" in found
    assert "time      2.5 h: start 3.1 min, work 2.4 h, redo 3.3 min, detect 1.0 s, decide 3.0 s" in found
    assert "ETTR      95.2 %    goodput 95.4 %" in found
    (first, second) = (line.split() for line in found.splitlines() if line.startswith(("n3 ", "n4 ")))
    assert " ".join(first[5:]) == "1.0 s 3.0 s 2.0 s 6.0 s 20.0 s 100.0 s 200.0 s 300.0 s 50 requeue"
    assert second[2] == "by"
    assert " ".join(second[6:]) == "0.0 s 1.0 s ? - 1.0 s 50.0 s - - ? retry"
    assert "?: the instant is not known" in found


def test_goodput_of_runs_that_reported_no_steps_is_shown_as_a_bound(api: ApiBench) -> None:
    (runs,) = a_memory().ledger.values()
    untold = tuple(replace(run, first_step=None, step=None, stepped=None, checkpoint_step=None) for run in runs)
    api.store.commit(Memory(ledger={JOB: untold}), [], [])
    api.clock.at = BEGIN + 9100
    assert re.search(r"ETTR +<= [0-9.]+ % +goodput <= [0-9.]+ %", steward(api, "report", "7").output)


def test_the_sums_of_a_report_are_the_timeline_in_the_document_too(ledger: ApiBench) -> None:
    found = json.loads(steward(ledger, "report", "7", "--json").output)
    (job,) = found["jobs"]
    spent = sum(one["end"] - one["begin"] for one in job["timeline"])
    assert sum(job["sums"]["seconds"].values()) == job["sums"]["all_s"] == spent == job["ended"] - job["started"]
    assert job["sums"] == found["totals"] == found["by_month"]["2023-11"] == found["by_partition"]["main"]
    assert job["incidents"][1]["unknown"] == ["fault", "marked"]
    assert [one["out_s"] for one in found["repairs"]] == [300.0]


def test_a_report_of_an_elastic_run_draws_it_and_shows_another_users_run_of_that_number_to_nobody(
    ledger: ApiBench,
) -> None:
    world = ElasticWorld()
    world.go(40)
    ledger.show(world.picture)

    found = steward(ledger, "report", "7").output

    assert "elastic   2 changes of size" in found
    assert "samples/s (full height: 5)" in found
    assert "2 -> 5" in found
    assert ledger.latest is not None
    (run,) = ledger.latest.memory.elastic.values()
    assert run.uid != 0
    page = report_page(ledger.source(), {"job": "7"}, only=0)
    assert "elastic" not in page


def test_a_report_of_many_jobs_is_chosen_by_time_user_and_partition(ledger: ApiBench) -> None:
    by_month = steward(ledger, "report", "--month", "2023-11").output
    assert "repairs   1; nodes were out of service for 5.0 min in all" in by_month
    assert "user root" in by_month
    assert "No job" in steward(ledger, "report", "--month", "2023-10").output
    assert "No job" in steward(ledger, "report", "--month", "2023-11", "--user", "nobody").output
    assert "No job" in steward(ledger, "report", "--month", "2023-11", "--partition", "gpu").output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "8"), "not in the ledger"),
        (("jobs", "history", "8"), "not in the ledger"),
        (("report", "--month", "tomorrow"), "use a month such as 2026-11"),
        (("report", "--since", "7x"), "use 30m, 12h, 7d or 4w"),
    ],
)
def test_what_cannot_be_told_is_one_clear_line(ledger: ApiBench, words: tuple[str, ...], said: str) -> None:
    found = steward(ledger, *words)
    assert found.exit_code != 0
    assert said in found.output


def test_the_history_of_a_job_has_a_line_for_each_run(ledger: ApiBench) -> None:
    found = json.loads(steward(ledger, "jobs", "history", "7", "--json").output)
    said = [(one["number"], one["restart"], one["attempt"], one["ending"], one["slurm_state"]) for one in found]
    assert said == [(1, 0, 0, "requeued", ""), (2, 1, 0, "retried", ""), (3, 1, 1, "over", "COMPLETED")]
    assert found[0]["rule"] == "resume.requeue"
    lines = steward(ledger, "jobs", "history", "7").output.splitlines()
    assert len(lines) == 4
    assert lines[1].endswith("requeue: a node failed (n3)")
