"""An answer that is not whole is never taken for a smaller one."""

import json
from pathlib import Path
from typing import Any

import pytest

from steward.adapters.slurm import records
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.ports import Retryable

RECORDING = Path(__file__).parents[2] / "recordings" / "24.11.5"


def whole(name: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((RECORDING / f"{name}.stdout").read_bytes().decode("utf-8", "replace"))
    return answer


@pytest.mark.parametrize("text", ["", "garbage", "[]", "null", "{}", '{"jobs": 7}', '{"jobs": [7]}', '{"jobs": [{}]}'])
def test_garbage_is_not_an_empty_queue(text: str) -> None:
    with pytest.raises(Retryable):
        records.jobs(text)


def test_an_answer_that_was_cut_off_is_not_read() -> None:
    text = json.dumps(whole("jobs"))
    for end in range(0, len(text), 997):
        with pytest.raises(Retryable):
            records.jobs(text[:end])


def test_no_job_at_all_is_believed_of_a_controller_that_answered() -> None:
    assert records.jobs(json.dumps({**whole("jobs"), "jobs": []})) == {}


@pytest.mark.parametrize("key", ["job_id", "job_state", "user_id", "requeue", "restart_cnt", "exit_code", "nodes"])
def test_one_job_without_what_decides_is_left_out_and_hides_no_other(
    key: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = whole("jobs")
    others = records.jobs(json.dumps({**answer, "jobs": answer["jobs"][:3] + answer["jobs"][4:]}))
    del answer["jobs"][3][key]

    assert records.jobs(json.dumps(answer)) == others
    assert key in caplog.text


def test_an_answer_without_one_job_that_can_be_read_is_not_an_empty_queue() -> None:
    answer = whole("jobs")
    for record in answer["jobs"]:
        del record["job_state"]

    with pytest.raises(Retryable, match="job_state"):
        records.jobs(json.dumps(answer))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1,", {"n1"}),
        ("n1,,n2", {"n1", "n2"}),
        ("n1 n2", {"n1", "n2"}),
        ("n1\nn2,\tn3", {"n1", "n2", "n3"}),
        ("n[1-]", {"n1"}),
        (",", set()),
        (" ", set()),
        ("n[", set()),
        ("n1;n2", set()),
        ("n[1-99999999]", set()),
        ("\ud800", set()),
    ],
)
def test_a_list_that_a_user_typed_costs_that_field_at_most(text: str, names: set[str]) -> None:
    answer = whole("jobs")
    answer["jobs"][3] |= {"excluded_nodes": text, "name": "(null)"}
    found = records.jobs(json.dumps(answer))

    assert len(found) == len(answer["jobs"])
    assert found[JobId(answer["jobs"][3]["job_id"])].excluded == names


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ({"set": True, "infinite": False, "number": 90}, 5400.0),
        ({"set": False, "infinite": True, "number": 0}, None),
        (90, 5400.0),
        (None, None),
    ],
)
def test_a_time_limit_is_seconds_or_none(limit: object, seconds: float | None) -> None:
    answer = whole("jobs")
    answer["jobs"][0] |= {"time_limit": limit, "qos": "high", "resv_name": "maint"}
    job = next(iter(records.jobs(json.dumps(answer)).values()))

    assert (job.time_limit_s, job.qos, job.reservation) == (seconds, "high", "maint")


def test_a_state_that_is_not_known_is_kept_and_called_unknown() -> None:
    nodes, jobs = whole("nodes"), whole("jobs")
    nodes["nodes"][0]["state"] = ["MELTED", "DRAIN", "SOGGY"]
    jobs["jobs"][0]["job_state"] = ["DREAMING"]
    node = next(iter(records.nodes(json.dumps(nodes)).values()))
    job = next(iter(records.jobs(json.dumps(jobs)).values()))

    assert (node.base, node.flags) == (NodeBase.UNKNOWN, frozenset({"MELTED", "DRAIN", "SOGGY"}))
    assert (job.state, job.flags) == (JobState.UNKNOWN, frozenset({"DREAMING"}))
    assert not node.is_schedulable


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (["COMPLETING"], JobState.UNKNOWN),
        (["CONFIGURING"], JobState.RUNNING),
        (["REQUEUE_HOLD"], JobState.PENDING),
        (["FAILED", "COMPLETING"], JobState.FAILED),
        (["PENDING", "REQUEUED"], JobState.PENDING),
        (["PENDING", "EXPEDITING"], JobState.PENDING),
    ],
)
def test_a_flag_does_not_become_a_state(words: list[str], state: JobState) -> None:
    found, flags = records.job_state(*words)

    assert found is state
    assert flags == set(words) - {state.value}


@pytest.mark.parametrize(("flags", "expedited"), [(["USING_DEFAULT_QOS", "EXPEDITED_REQUEUE"], True), ([], False)])
def test_a_job_submitted_for_an_expedited_requeue_is_known_by_its_flag(flags: list[str], expedited: bool) -> None:
    jobs = whole("jobs")
    jobs["jobs"][0]["flags"] = flags
    assert next(iter(records.jobs(json.dumps(jobs)).values())).expedited is expedited


def test_what_a_job_asks_for_and_has_is_read_as_slurm_writes_it() -> None:
    answer = whole("jobs")
    answer["jobs"][0] |= {
        "tres_req_str": "cpu=2,gres/gpu=8",
        "tres_alloc_str": "cpu=4,gres/gpu=8",
        "max_nodes": {"set": True, "infinite": False, "number": 4},
        "job_size_str": ["1", "2", "4"],
        "comment": "priority-class=high",
    }
    job = next(iter(records.jobs(json.dumps(answer)).values()))
    assert (job.requested, job.allocated) == ("cpu=2,gres/gpu=8", "cpu=4,gres/gpu=8")
    assert (job.most_nodes, job.node_sizes, job.comment) == (4, "1,2,4", "priority-class=high")


@pytest.mark.parametrize(("asked", "most"), [({"tres_per_job": "gres:gpu:2"}, 1), ({"tasks": 1}, 0)])
def test_on_how_many_nodes_a_total_may_be_is_kept(asked: dict[str, Any], most: int) -> None:
    answer = whole("jobs")
    answer["jobs"][0] |= {"node_count": 1, "max_nodes": 1, **asked}
    assert next(iter(records.jobs(json.dumps(answer)).values())).most_nodes == most


@pytest.mark.parametrize(
    ("told", "total"),
    [
        ({}, False),
        ({"tres_per_job": "gres/gpu:8"}, True),
        ({"tres_per_job": "gres:gpu:8", "tres_per_node": "gres:gpu:4"}, True),
        ({"tasks": 64}, True),
        ({"tasks": {"set": True, "infinite": False, "number": 64}}, True),
        ({"tasks": 64, "tasks_per_node": 32}, False),
        ({"tasks": 64, "tres_per_node": "gres/gpu:4"}, False),
        ({"tasks": 2, "node_count": 2, "tres_per_task": "cpu:8"}, False),
    ],
)
def test_a_job_asks_for_so_much_in_all_or_on_each_node(told: dict[str, Any], total: bool) -> None:
    answer = whole("jobs")
    answer["jobs"][0] |= told
    assert next(iter(records.jobs(json.dumps(answer)).values())).is_total == total


@pytest.mark.parametrize(("state", "nodes"), [("PENDING", ""), ("PENDING", "n1"), ("CANCELLED", "")])
def test_a_job_that_has_no_nodes_has_nothing_allocated_whatever_slurmctld_keeps_of_its_last_run(
    state: str, nodes: str
) -> None:
    answer = whole("jobs")
    answer["jobs"][0] |= {"job_state": [state], "nodes": nodes, "tres_alloc_str": "cpu=4,billing=4"}
    assert next(iter(records.jobs(json.dumps(answer)).values())).allocated == ""


@pytest.mark.parametrize(
    ("text", "tasks", "most"),
    [
        ("", 1, 0),
        ("7", 1, 0),
        ("0-9%2", 10, 2),
        ("1,3-5,20-30:5", 7, 0),
        ("1-3,...", 3, 0),
        ("1-3,...%8", 3, 8),
        ("x-y%z", 1, 0),
    ],
)
def test_a_record_stands_for_the_tasks_of_an_array_that_wait(text: str, tasks: int, most: int) -> None:
    answer = whole("jobs")
    answer["jobs"][0]["array_task_string"] = text
    job = next(iter(records.jobs(json.dumps(answer)).values()))
    assert (job.waiting_tasks, job.most_tasks) == (tasks, most)
