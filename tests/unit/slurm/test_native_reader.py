"""What pyslurm tells, read as the commands' answers are, and its gaps mended."""

from types import SimpleNamespace
from typing import Any

import pytest

from steward.adapters.slurm import native_reader
from steward.model.job import JobState
from steward.model.node import NodeBase


def a_node(**changes: Any) -> SimpleNamespace:
    values: dict[str, Any] = {
        "name": "n1",
        "state": "IDLE+DRAIN+NOT_RESPONDING",
        "reason": "bad disk",
        "reason_user": "ann",
        "reason_time": 77,
        "partitions": ["main"],
        "available_features": ["a"],
        "active_features": ["a"],
        "address": "10.0.0.1",
        "total_cpus": 4,
        "real_memory": 500,
        "configured_gres": {"gpu": 8},
        "boot_time": 5,
        "slurmd_start_time": None,
        "slurm_version": "25.11.2",
    }
    return SimpleNamespace(**{**values, **changes})


def a_job(**changes: Any) -> Any:
    values: dict[str, Any] = dict.fromkeys(
        ("batch_host", "excluded_nodes", "array_id", "array_task_id", "array_tasks_waiting", "heterogeneous_id",
         "account", "end_time", "admin_comment", "allocated_nodes", "exit_code", "exit_code_signal",
         "qos", "time_limit", "reservation", "priority", "nice", "submit_host", "comment")
    )  # fmt: skip
    values |= {"id": 7, "name": "train", "state": "RUNNING", "user_id": 0, "state_reason": None, "is_batch_job": True}
    values |= {"requeue_count": 2, "is_requeueable": True, "partition": "main", "num_nodes": 2, "submit_time": 1}
    values |= {"eligible_time": 2, "start_time": 3}
    return SimpleNamespace(**{**values, **changes})


def test_a_node_is_read_with_its_flags_and_owner() -> None:
    node = native_reader.node(a_node())

    assert (node.base, node.flags) == (NodeBase.IDLE, frozenset({"DRAIN", "NOT_RESPONDING"}))
    assert node.reason is not None
    assert (node.reason.text, node.reason.user, node.reason.at) == ("bad disk", "ann", 77.0)
    assert (node.gres, node.boot_time, node.slurmd_started, node.responding) == ("gpu:8", 5.0, None, False)


def test_a_node_in_service_has_no_reason_left() -> None:
    assert native_reader.node(a_node(state="IDLE")).reason is None


def test_a_running_job_is_read() -> None:
    job = native_reader.job(a_job(allocated_nodes="n[1-2]", batch_host="n1", excluded_nodes="n9", end_time=99))

    assert (job.state, job.nodes, job.excluded) == (JobState.RUNNING, frozenset({"n1", "n2"}), frozenset({"n9"}))
    assert (job.restarts, job.reason, job.ended, job.array_job_id) == (2, "None", None, None)


def test_exit_code_and_signal_make_a_wait_status() -> None:
    failed = native_reader.job(a_job(state="FAILED", exit_code=3, end_time=99))
    killed = native_reader.job(a_job(state="FAILED", exit_code_signal=11, end_time=99))

    assert (failed.exit_status, killed.exit_status, failed.ended) == (3 << 8, 11, 99.0)


def test_task_0_of_an_array_has_an_index_and_the_pending_rest_has_none() -> None:
    task = native_reader.job(a_job(array_id=5, array_task_id=None))
    rest = native_reader.job(a_job(array_id=5, array_task_id=None, array_tasks_waiting="1-3"))

    assert (task.array_job_id, task.array_task) == (5, 0)
    assert (rest.array_job_id, rest.array_task) == (5, None)


def test_a_name_that_is_no_utf8_is_replaced() -> None:
    class Job(SimpleNamespace):
        @property
        def name(self) -> str:
            return b"\xff".decode()

    values = vars(a_job())
    del values["name"]
    assert native_reader.job(Job(**values)).name == "\N{REPLACEMENT CHARACTER}"


def test_slurms_last_hold_is_called_by_its_word() -> None:
    held = native_reader.job(a_job(state="PENDING", state_reason="launch failure limit exceeded requeued held"))

    assert held.reason == "JobHoldMaxRequeue"


def test_its_qos_time_limit_and_reservation_are_read() -> None:
    job = native_reader.job(a_job(qos="high", time_limit=90, reservation="maint"))
    unlimited = native_reader.job(a_job(time_limit=None))

    assert (job.qos, job.time_limit_s, job.reservation) == ("high", 5400.0, "maint")
    assert (unlimited.qos, unlimited.time_limit_s, unlimited.reservation) == ("", None, "")


@pytest.mark.parametrize(
    ("told", "word"),
    [
        ("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", "Resources"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-3]", "ReqNodeNotAvail"),
        ("launch failed requeued held", "launch failed requeued held"),
        ("Priority", "Priority"),
    ],
)
def test_prose_becomes_the_word_that_the_commands_tell(told: str, word: str) -> None:
    assert native_reader.job(a_job(state="PENDING", state_reason=told)).reason == word


def test_its_comment_and_the_tasks_that_wait_are_read() -> None:
    """The comment says which run a replica job is of."""
    job = native_reader.job(a_job(comment="priority-class=low", array_id=7, array_tasks_waiting="2-9:2"))
    assert (job.comment, job.waiting_tasks) == ("priority-class=low", 4)
