"""A task of an array and a part of a heterogeneous job have the number that squeue shows, wherever people read or type
a job."""

from dataclasses import replace

import pytest
import requests

from steward.model.events import Event
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.memory import Memory
from steward.model.notify import Message
from steward.views.notify import fields
from tests.builders.cli import steward
from tests.builders.picture import Picture, a_cluster
from tests.fakes.api_bench import ApiBench
from tests.fakes.until import FACT_S

ARRAY, TASK, HET = JobId(313), JobId(318), JobId(400)


def an_array() -> Picture:
    """Task 4 runs, 5 to 9 wait; beside them a heterogeneous job of two parts."""
    waiting = {"state": JobState.PENDING, "started": None, "array_tasks": "5-9%2", "waiting_tasks": 5}
    picture = a_cluster().job(TASK, on=("n1", "n2"), array_job_id=ARRAY, array_task=4)
    picture = picture.job(ARRAY, on=(), array_job_id=ARRAY, **waiting)
    return picture.job(HET, on=("n3",), het_job_id=HET).job(JobId(401), on=("n4",), het_job_id=HET)


@pytest.fixture
def resumed(api: ApiBench) -> ApiBench:
    """Task 4 has lost a node and was requeued."""
    begun = an_array().opted_in(TASK).opted_in(HET)
    running = begun.then(100.0)
    lost = running.lost("n2").then(0.1).marked("n2").then(0.1)
    again = lost.requeued(TASK).then(1.0)
    api.show(again)
    api.store.commit(again.plan().memory, [], [])
    api.store.add_events(begun.plan().events)
    api.store.add_events(lost.plan().events)
    return api


def forget(api: ApiBench) -> None:
    """Slurm and the head's memory have forgotten the jobs."""
    api.show(a_cluster())
    api.store.commit(Memory(), [], [])


def page(api: ApiBench, path: str) -> str:
    return requests.get(api.url + path, timeout=FACT_S).text


def test_lists_of_jobs_name_them_so(resumed: ApiBench) -> None:
    assert steward(resumed, "jobs").output.splitlines()[1].split()[0] == "400"
    assert steward(resumed, "jobs").output.splitlines()[2].split()[0] == "313_4"
    assert "313_4" in steward(resumed, "top", "--once").output
    assert {one["shown_id"]: one["id"] for one in resumed.client().array("/v1/jobs")} == {"400": 400, "313_4": 318}


def test_the_pages_name_them_so_and_find_them(resumed: ApiBench) -> None:
    for path in ("/", "/jobs", "/jobs?q=313_4", "/node/n1", "/report", "/events?job=313_4"):
        assert '<a href="/job/318">313_4</a>' in page(resumed, path).replace(' id="job-318"', ""), path
    assert "<h1>Job 313_4 train</h1>" in page(resumed, "/job/313_4")
    assert "400+1" in page(resumed, "/node/n4")
    for word in ("313_4", "313_[5-9%2]", "400+1", "318.batch"):
        assert (
            f"/job/{word[:3]}"
            in requests.get(resumed.url + "/search", params={"q": word}, timeout=FACT_S, allow_redirects=False).headers[
                "location"
            ]
        )


@pytest.mark.parametrize("word", ["313_4", "318", "313_4.batch"])
def test_a_report_and_a_history_are_asked_for_by_any_of_its_names(resumed: ApiBench, word: str) -> None:
    for _ in range(2):
        assert steward(resumed, "report", word).output.startswith("job 313_4 train of ")
        assert len(steward(resumed, "jobs", "history", word).output.splitlines()) == 2
        assert steward(resumed, "report", "--month", "2023-11").output.splitlines()[1].split()[0] in ("313_4", "400")
        forget(resumed)


def test_events_and_messages_name_them_so(resumed: ApiBench) -> None:
    told = steward(resumed, "events", "--job", "313_4").output
    assert "job=313_4 job 313_4 is resumed if a node fails" in told
    assert "318" not in told
    event = next(event for _, event in resumed.store.events(job=TASK))
    message = Message(number=1, key="", last=event, level=event.level, since=event.at)
    assert fields(message, "c")["job"] == "313_4"
    assert fields(replace(message, last=Event(at=1.0, kind="x", text="")), "c")["job"] == ""


def test_an_explanation_of_tasks_that_wait_names_them(resumed: ApiBench) -> None:
    assert steward(resumed, "explain", "313_7").output.startswith('Job 313_[5-9%2] "train": PENDING')
    assert steward(resumed, "explain", "313_4").output.startswith('Job 313_4 (job 318) "train": ')
    resumed.show(an_array().opted_in(TASK).then(1.0).then(1.0).see(jobs={}))
    assert steward(resumed, "explain", "313_4").output.startswith('Job 313_4 (job 318) "train", last on n[1-2]: Slurm')


@pytest.mark.parametrize("words", [("report",), ("jobs", "history"), ("events", "--job"), ("explain", "job")])
def test_a_word_that_is_no_job_is_refused_before_anybody_is_asked(words: tuple[str, ...]) -> None:
    found = steward(ApiBench(url="http://127.0.0.1:9"), *words, "seven")
    assert found.exit_code == 2
    assert "seven is no job: use 17, 17_1 of an array, 17+1 of a heterogeneous job" in found.output
